"""Collections of texts: made, and added to."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress, blocks
from embits.coders import NearLossless
from embits.collection import Collection
from embits.collection.manifest import write_manifest
from embits.collection.opening import opened_or_undone
from embits.errors import EmbitsError, InputError, TrainingWarning, warn_caller
from embits.file.contents import write_coder
from embits.text.answers import (
    Encoder,
    indexed_texts,
    keep_encoder,
    sentence_transformer,
    vectors_of,
)
from embits.text.encoder import TextEncoder
from embits.text.passages import Passage, read_passages, text_of

_BATCH = 50_000  # passages at a time, and at most to fit on
_ENOUGH = 2000  # passages that a coder is fitted on alone
_TO_COUNT = 100  # passages whose frequencies of words say more than none
_REFIT, _GROWN = 5000, 10  # a coder of fewer passages is fitted again when there are so many times

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
    if isinstance(chosen, TextEncoder) and len(sample) >= _TO_COUNT:
        if len(sample) < _ENOUGH:
            chosen.whiten = 0
        chosen.fit(sample)
    vectors = vectors_of(chosen, sample)
    coder = _fitted(chosen, vectors, n_bits, progress)
    with tempfile.TemporaryDirectory() as folder:
        write_coder(Path(folder, "coder"), coder)
        with opened_or_undone(target, Path(folder, "coder")) as notes:
            keep_encoder(notes.path, chosen if isinstance(chosen, TextEncoder) else str(encoder))
            with notes._change() as latest:  # no change of rows: the generation stays 0
                write_manifest(notes.path, replace(latest.manifest, fitted_rows=len(vectors)))
            return notes, _add(notes, chosen, passages, update=False)


def add_texts(notes: Collection, texts: Paths, *, update: bool = False) -> dict[str, int]:
    """Add the texts of files and folders to a collection that `index_texts` made.

    It is one change: all of them, or none. With `update`, all passages of texts whose ids exist are
    replaced. Returns how many passages were "added", "skipped" (no known token) and, by an update,
    "updated" and "removed".
    """
    return _add(notes, notes.text_encoder, _read(texts, notes.manifest.columns), update)


def _read(texts: Paths, kinds: Mapping[str, str] | None = None) -> list[Passage]:
    """The passages of files, for a collection with columns of these kinds."""
    paths = [Path(each) for each in texts]
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
    passages = list(read_passages(paths))
    strings = {k for each in passages for k, v in each.fields.items() if isinstance(v, str)}
    strings |= {name for name, kind in (kinds or {}).items() if kind == "string"}
    for each in passages:
        for name in strings & each.fields.keys():
            if each.fields[name] == []:  # lists of objects are JSON, and so are empty ones
                each.fields[name] = "[]"
            elif each.fields[name] is not None:  # CSV: digits among strings are strings
                each.fields[name] = (each.written or {}).get(name, each.fields[name])
    return passages


def _fitted(encoder: Encoder, vectors: Any, n_bits: int, progress: Any = None) -> NearLossless:
    """A coder of passages; few of them are fitted together with vectors of random tokens."""
    vectors = vectors[vectors.any(axis=1)]
    if len(vectors) < _ENOUGH:
        others: Any = np.random.default_rng(0).normal(size=(_ENOUGH, vectors.shape[1]))
        if isinstance(encoder, TextEncoder):
            others = encoder.pseudo_vectors(_ENOUGH)
        vectors = np.concatenate([vectors, others.astype(np.float32)])
    with warnings.catch_warnings(action="ignore", category=TrainingWarning):
        return NearLossless(n_bits).fit(vectors, progress=progress)


def _add(
    notes: Collection, encoder: Encoder, passages: list[Passage], update: bool
) -> dict[str, int]:
    """Encode passages and add them in one change; those without a known token are left out."""
    if update and (numbered := [each.place for each in passages if each.is_numbered]):
        hint = "its line may be another text's in an update: give each text an id"
        raise InputError(f"{numbered[0]}: the text has no id, and {hint}")
    names = sorted({name for each in passages for name in each.fields})
    texts = {text_of(each.id) for each in passages}
    stale = {id for id in notes.ids().tolist() if text_of(id) in texts}
    known = len(stale)
    if known and not update:
        unnamed = any(each.is_numbered and each.id in stale for each in passages)
        hint = "give each text an id of its own" if unnamed else "`--update` replaces it"
        raise InputError(f"the id {text_of(min(stale))!r} already exists: {hint}")
    # Codes of batches: the vectors of all texts may be larger than memory.
    encode = np.asarray if notes.manifest.keep else notes.coder.encode
    rows: list[Passage] = []
    codes: list[Any] = []
    for batch in (passages[some] for some in blocks(len(passages), _BATCH)):
        vectors = vectors_of(encoder, [each.indexed for each in batch])
        kept = np.flatnonzero(vectors.any(axis=1))
        rows += [batch[row] for row in kept]
        codes.append(encode(vectors[kept]))
    columns: dict[str, list[Any]] = {"text": [each.text for each in rows]}
    columns |= {name: [each.fields.get(name) for each in rows] for name in names}
    ids = [each.id for each in rows]
    stale.difference_update(ids)
    if rows:
        change = "upsert" if update else "add"
        try:
            notes._put(change, np.concatenate(codes), ids, columns, stale=[*stale])
        except InputError as error:
            if error.row is not None:
                error.path, error.row = rows[error.row].place, None
            raise
    elif stale:
        notes.remove([*stale])
    done = {"added": len(rows), "skipped": len(passages) - len(rows)}
    if update:
        done["removed"] = len(stale)
        done["updated"] = known - len(stale)
        done["added"] -= done["updated"]
    n, fitted = len(notes), notes.manifest.fitted_rows
    if fitted is not None and fitted < _REFIT and n >= _GROWN * fitted and done["added"]:
        try:
            _refit(notes, encoder)
        except (EmbitsError, OSError) as error:
            failed = f"the texts were added, but the coder could not be fitted again: {error}"
            warn_caller(failed, TrainingWarning)
    return done


def _refit(notes: Collection, encoder: Encoder) -> None:
    """Fit the coder again, on all texts; rows that were added as vectors have none."""
    bits = notes.snapshot()
    if all(texts := indexed_texts(bits)):
        vectors = vectors_of(encoder, texts)
        sample = vectors[:: -(-len(vectors) // _BATCH)]
        notes.refit(vectors, bits.ids(), coder=_fitted(encoder, sample, bits.n_bits))
