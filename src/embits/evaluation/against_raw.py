"""Neighbors and reconstruction: the tasks that compare codes with the raw vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.errors import EmbitsError
from embits.evaluation.held_out import RowSplit, split_rows
from embits.evaluation.lookup import MISSING, Lookup
from embits.evaluation.resampling import Samples
from embits.evaluation.spaces import BitSpace, FloatSpace, same_words
from embits.evaluation.tasks.neighbors import (
    evaluate_neighbors,
    float_neighbors,
    query_rows,
    unseen_query_rows,
)
from embits.evaluation.tasks.reconstruction import evaluate_reconstruction
from embits.ids.keys import RowNumbers

RAW_TASKS = frozenset({"neighbors", "reconstruction"})
"""Tasks that are measured against the raw vectors."""
_MAX_NEIGHBORS = 100


class AgainstRaw:
    """Measures codes against the raw vectors; the true neighbors are computed once.

    Args:
        raw: The raw vectors, or None.
        tasks: Which of `RAW_TASKS`; others are ignored.
        fit_rows: As for `split_rows`.
        say: Called with the name of each step.
        note: Called with a line for each thing that is skipped.
    """

    def __init__(
        self,
        raw: FloatSpace | None,
        tasks: Sequence[str],
        fit_rows: int | None,
        say: Callable[[str], None],
        note: Callable[[str], None],
    ) -> None:
        self._raw = raw
        self._tasks = RAW_TASKS & set(tasks)
        self._fit_rows = fit_rows
        self._say, self._note = say, note
        self._aligned: FloatSpace | None = None
        self._truth: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def measure(
        self,
        space: BitSpace,
        rebuilt: FloatSpace | None,
        file: Path | None,
        split: RowSplit | None,
        samples: Samples,
    ) -> dict[str, Any]:
        """The scores of one file, by task.

        Args:
            space: The codes.
            rebuilt: The vectors rebuilt from them, for reconstruction.
            file: Their file, for notes.
            split: The rows that the coder was fitted on, and those to measure. None fits a new
                coder on a part of the rows if `fit_rows` says so.
            samples: Receives the values of each query and row.
        """
        raw = self._raw_of(space, file)
        if raw is None:
            return {}
        bits = space.bits
        if split is None:
            bits, split = self._refitted(bits, raw)
        scores: dict[str, Any] = {}
        rows = query_rows(len(raw)) if split is None else unseen_query_rows(split.unseen)
        if "neighbors" in self._tasks:
            self._say("neighbors")
            truth = self._true_neighbors(raw, rows)
            scores["neighbors"] = evaluate_neighbors(
                bits, raw, rows=rows, truth=truth, samples=samples
            )
        if "reconstruction" in self._tasks:
            self._say("reconstruction")
            measured = None if split is None else split.unseen
            if rebuilt is None or bits is not space.bits:
                rebuilt = FloatSpace(space.words, bits.decode(), space.lookup)
            scores["reconstruction"] = evaluate_reconstruction(raw, rebuilt, measured, samples)
        return {task: found | _about(split) for task, found in scores.items()}

    def _refitted(
        self, bits: BinaryVectors, raw: FloatSpace
    ) -> tuple[BinaryVectors, RowSplit | None]:
        """Codes of a new coder with the same parameters that is fitted on a part of the rows."""
        has_words = not isinstance(bits.words, RowNumbers)
        split = split_rows(len(raw), self._fit_rows, has_words=has_words)
        if split is None:
            return bits, None
        self._say(f"fitting on {len(split.fitted):,} rows")
        try:
            coder = type(bits.coder)(**bits.coder.get_params()).fit(raw.matrix[split.fitted])
        except EmbitsError as error:
            self._note(f"no rows outside the fit are measured: {error}")
            return bits, None
        return BinaryVectors(None, coder.encode(raw.matrix), coder), split

    def _true_neighbors(self, raw: FloatSpace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        if self._truth is None or not np.array_equal(self._truth[0], rows):
            k = min(_MAX_NEIGHBORS, len(raw) - 1)
            self._truth = rows, float_neighbors(raw, rows, k)
        return self._truth[1]

    def _raw_of(self, space: BitSpace, file: Path | None) -> FloatSpace | None:
        """The raw vectors with the rows of a file; None, and a note, if there are none."""
        reason = _other_dims(self._raw, space)
        if not self._tasks:
            if reason:
                self._note(f"{file or 'a file'}: {reason}; the column raw is of other vectors")
            return None
        if self._raw is None:
            self._note("neighbors and reconstruction need the raw vectors: give --raw")
            return None
        known = self._aligned
        if not reason and known is not None and same_words(known.words, space.words):
            return known
        aligned = reason or _aligned(self._raw, space)
        if isinstance(aligned, str):
            self._note(f"{file or 'a file'}: neighbors and reconstruction are skipped: {aligned}")
            return None
        self._aligned, self._truth = aligned, None
        return aligned


def _about(split: RowSplit | None) -> dict[str, Any]:
    """Whether the measured rows are outside the fit, and how many rows were fitted on."""
    if split is None:
        return {"rows": "seen"}
    return {"rows": "unseen", "fit_rows": len(split.fitted)}


def _other_dims(raw: FloatSpace | None, space: BitSpace) -> str:
    """Why the codes cannot be of the raw vectors; "" if they have the same dimensions."""
    if raw is None or raw.matrix.shape[1] == space.bits.dims:
        return ""
    return f"raw vectors of {raw.matrix.shape[1]} dimensions, expected {space.bits.dims}"


def _aligned(raw: FloatSpace, space: BitSpace) -> FloatSpace | str:
    """`raw` with the rows of `space`, or the reason why that is impossible."""
    if same_words(raw.words, space.words):
        return raw
    exact = Lookup(raw.words, case_insensitive=False)
    rows = exact.rows(space.words)
    missing = int((rows == MISSING).sum())
    if missing:
        word = space.words[int(rows.argmin())]
        return f"{missing:,} of its words have no raw vector, such as {word!r}"
    return FloatSpace(space.words, raw.matrix[rows], space.lookup)
