"""Collections of texts: made, and added to."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterable
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress
from embits.coders import NearLossless
from embits.collection import Collection
from embits.collection.opening import opened_or_undone
from embits.errors import InputError, TrainingWarning
from embits.file.contents import write_coder
from embits.text.answers import Encoder, keep_encoder, sentence_transformer, vectors_of
from embits.text.encoder import TextEncoder
from embits.text.passages import Passage, read_passages

_BATCH = 50_000  # passages at a time, and at most to fit on
_ENOUGH = 2000  # passages that a coder is fitted on alone

Paths = Iterable[str | os.PathLike[str]]


def index_texts(
    texts: Paths,
    target: str | os.PathLike[str],
    encoder: str | os.PathLike[str] | None = None,
    n_bits: int = 256,
    *,
    progress: Progress | None = None,
) -> tuple[Collection, dict[str, int]]:
    """Make a collection of the texts of files and folders.

    Args:
        target: The folder of the collection, which is empty or does not exist.
        encoder: A file or folder that `TextEncoder` opens, or the name of a model of
            sentence-transformers. None is WordLlama's table.
        n_bits: Bits of a passage.
        progress: Called with (done, total) while a coder is fitted.

    Returns the collection, and how many passages were "added" and "skipped".
    """
    target = Path(target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        hint = f"`embits add {target} TEXTS` adds to a collection"
        raise InputError(f"{target} exists: choose another output; {hint}")
    passages = _read(texts)
    if not passages:
        raise InputError("there is no text to index")
    chosen: Encoder
    if encoder is None:
        chosen = TextEncoder.from_static(progress=progress)
    elif Path(encoder).exists():
        chosen = TextEncoder(encoder).opened(progress)
    else:
        chosen = sentence_transformer(str(encoder))
    sample = [each.indexed for each in passages[:: -(-len(passages) // _BATCH)]]
    if isinstance(chosen, TextEncoder):
        if len(sample) < _ENOUGH:
            chosen.whiten = 0
        chosen.fit(sample)
    vectors = vectors_of(chosen, sample)
    vectors = vectors[vectors.any(axis=1)]
    if isinstance(chosen, TextEncoder) and len(vectors) < _ENOUGH:
        vectors = np.concatenate([vectors, chosen.pseudo_vectors(_ENOUGH)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        coder = NearLossless(n_bits).fit(vectors, progress=progress)
    with tempfile.TemporaryDirectory() as folder:
        write_coder(Path(folder, "coder"), coder)
        with opened_or_undone(target, Path(folder, "coder")) as notes:
            keep_encoder(notes.path, chosen if isinstance(chosen, TextEncoder) else str(encoder))
            return notes, _add(notes, chosen, passages, update=False)


def add_texts(notes: Collection, texts: Paths, *, update: bool = False) -> dict[str, int]:
    """Add the texts of files and folders to a collection that `index_texts` made.

    With `update`, all passages of texts whose ids exist are replaced. Returns how many passages
    were "added" and "skipped", because they have no known token.
    """
    return _add(notes, notes.text_encoder, _read(texts), update)


def _read(texts: Paths) -> list[Passage]:
    paths = [Path(each) for each in texts]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
    return list(read_passages(paths))


def _add(
    notes: Collection, encoder: Encoder, passages: list[Passage], update: bool
) -> dict[str, int]:
    """Encode passages and add them; those without a known token are left out."""
    names = sorted({name for each in passages for name in each.fields})
    done, waiting = {"added": 0, "skipped": 0}, iter(passages)
    stale = _stale(notes, passages) if update else []
    while batch := list(islice(waiting, _BATCH)):
        vectors = vectors_of(encoder, [each.indexed for each in batch])
        kept = np.flatnonzero(vectors.any(axis=1))
        rows = [batch[row] for row in kept]
        columns: dict[str, list[Any]] = {"text": [each.text for each in rows]}
        columns |= {name: [each.fields.get(name) for each in rows] for name in names}
        if rows:
            put = notes.upsert if update else notes.add
            put(vectors[kept], [each.id for each in rows], columns=columns)
        done["added"] += len(rows)
        done["skipped"] += len(batch) - len(rows)
    if stale:
        notes.remove(stale)
    return done


def _stale(notes: Collection, passages: list[Passage]) -> list[str]:
    """Passages of earlier versions of texts that the new ones do not replace."""
    new = {each.id for each in passages}
    stale = []
    for text in {re.sub(r"#\d+$", "", id) for id in new}:
        passages_of = takewhile(notes.__contains__, (f"{text}#{n}" for n in count()))
        stale += [id for id in (text, *passages_of) if id in notes and id not in new]
    return stale
