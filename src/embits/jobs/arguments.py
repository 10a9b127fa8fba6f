"""The arguments of the jobs: vectors, files and coders in all accepted forms."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embits.binary_vectors import BinaryVectors
from embits.coders import DEFAULT_METHOD, Coder, new_coder
from embits.coders.registry import check_fit
from embits.collection import load_coder
from embits.errors import InputError
from embits.vectors import WordVectors

if TYPE_CHECKING:
    from embits.readers.source import OnBad, Repeats, Words
    from embits.streaming.input import Input


def chosen_coder(
    coder: Coder | None, n_bits: int | None, method: str | None, params: Mapping[str, Any]
) -> Coder:
    """The coder of the arguments of `binarize`."""
    if coder is None:
        return new_coder(DEFAULT_METHOD if method is None else method, n_bits, params)
    if not isinstance(coder, Coder):
        raise InputError(
            f"coder is {coder!r}, expected a coder such as embits.ITQ(n_bits=64); "
            "the name of a method is given as method="
        )
    given = {"n_bits": n_bits, "method": method, **params}
    if names := [name for name, value in given.items() if value is not None]:
        raise InputError(f"coder is given, so {', '.join(names)} would be ignored: leave it out")
    check_fit(type(coder))
    return coder


def fitted_coder(coder: Any) -> tuple[Coder, str, list[Path]]:
    """A fitted coder, its name in messages, and the file it was read from."""
    if isinstance(coder, Coder | BinaryVectors):
        fitted = coder if isinstance(coder, Coder) else coder.coder
        fitted.check_fitted()
        return fitted, "the coder", []
    return load_coder(coder), f"the coder in {coder}", [Path(coder)]


def input_file(
    vectors: str | os.PathLike[str],
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    repeats: Repeats | None = None,
) -> Input:
    from embits.readers import located
    from embits.streaming.input import Input

    if not isinstance(vectors, str | os.PathLike):
        raise InputError(f"vectors is {type(vectors).__name__}, expected the path of a file")
    return Input(located(vectors), limit, words, on_bad, repeats)


def holds_words(vectors: str | os.PathLike[str]) -> bool:
    """Whether a file is of a format that always has words in it."""
    from embits.readers import holds_words

    return holds_words(vectors)


def word_vectors(vectors: Any) -> WordVectors:
    """What `binarize` takes, other than a file, as one type."""
    if isinstance(vectors, WordVectors):
        return vectors
    if vectors is None:
        raise InputError("vectors is None, expected a matrix, WordVectors or the path of a file")
    if isinstance(vectors, str | os.PathLike):
        return input_file(vectors).read()
    if isinstance(vectors, Mapping):
        return WordVectors(list(vectors), list(vectors.values()))  # type: ignore[arg-type]
    if hasattr(vectors, "index_to_key") or hasattr(vectors, "wv"):
        from embits.readers.gensim_models import from_keyed_vectors

        return from_keyed_vectors(getattr(vectors, "wv", vectors))
    return WordVectors(None, vectors)
