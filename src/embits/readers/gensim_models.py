"""gensim's vectors: objects in memory, and the models of its downloader by name.

Downloads are in $GENSIM_DATA_DIR. Only the file of vectors is read; the Python module that comes
with a model is not run, as `gensim.downloader.load` would do.
"""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from embits.errors import ReadError, from_extra
from embits.ids.subwords import Subwords
from embits.vectors import WordVectors

PREFIX = "gensim:"


class KeyedVectors(Protocol):
    """The attributes of gensim's `KeyedVectors` that are used; gensim is not imported."""

    index_to_key: Sequence[Any]
    vectors: NDArray[Any]


def from_keyed_vectors(keyed: KeyedVectors) -> WordVectors:
    """The words and vectors of a `KeyedVectors`, and the subwords of a fastText model.

    Keys that are numbers become words, unless they are the row numbers. Rows without a key, which
    were allocated and never filled, are left out.
    """
    keys = list(keyed.index_to_key)
    filled = [row for row, key in enumerate(keys) if key is not None]
    matrix = keyed.vectors[: len(keys)]
    if len(filled) < len(keys):
        keys, matrix = [keys[row] for row in filled], matrix[filled]
    words = None if keys == list(range(len(keys))) else [str(key) for key in keys]
    buckets, subwords = getattr(keyed, "vectors_ngrams", None), None
    minn, maxn = int(getattr(keyed, "min_n", 0)), int(getattr(keyed, "max_n", 0))
    if buckets is not None and len(buckets) and maxn >= 1:
        subwords = Subwords(buckets, minn=minn, maxn=maxn)
    return WordVectors(words, matrix, subwords)


def model_name(path: str | os.PathLike[str]) -> str | None:
    """The NAME of `gensim:NAME`; None for a path, also for a file of exactly that name."""
    text = os.fspath(path)
    is_name = text.startswith(PREFIX) and not Path(text).exists()
    return text.removeprefix(PREFIX) if is_name else None


def download_model(name: str) -> Path:
    """The file of vectors of a model, download_model by gensim if necessary."""
    with from_extra(f"{PREFIX}{name}", "gensim"):
        import gensim.downloader as gensim
    logger = logging.getLogger("gensim.downloader")
    before, logger.disabled = logger.disabled, True  # it logs tracebacks without a network
    try:
        with contextlib.redirect_stdout(sys.stderr):  # gensim prints its progress
            known = gensim.info(show_only_latest=False)
            if name in known.get("models", {}):
                path = Path(gensim.load(name, return_path=True))
    except Exception as error:  # noqa: BLE001 - gensim raises plain Exception
        raise _read_error(name, f"gensim could not download it: {error}") from None
    finally:
        logger.disabled = before
    if name not in known.get("models", {}):
        near = difflib.get_close_matches(name, known.get("models", {}), cutoff=0.5)
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        raise _read_error(name, f"gensim has no model of that name{hint}")
    if not path.is_file():
        reason = f"there is no {path}; delete its folder, and gensim downloads it again"
        raise _read_error(name, reason)
    return path


def _read_error(name: str, reason: str) -> ReadError:
    return ReadError(f"{PREFIX}{name}: {' '.join(reason.split())}")
