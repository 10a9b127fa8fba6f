"""Reconstruction error of the float vectors rebuilt from codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks, row_cosines
from embits.errors import InputError
from embits.evaluation.results import Entry, Grid, Score, Table, names_at, number
from embits.evaluation.spaces import BitSpace, FloatSpace
from embits.evaluation.statistics import NO_SAMPLES, Samples
from embits.evaluation.tasks.base import Subject, Task


def evaluate_reconstruction(
    raw: FloatSpace,
    rebuilt: FloatSpace,
    rows: NDArray[np.int64] | None = None,
    samples: Samples = NO_SAMPLES,
) -> dict[str, Any]:
    """The mean cosine of raw and rebuilt rows, and the mean squared error per value.

    Args:
        raw: The float vectors.
        rebuilt: The vectors rebuilt from their codes.
        rows: The rows to measure; None measures all.
        samples: Receives the values of each row.

    Returns:
        `{"cosine", "mse"}`.
    """
    if raw.matrix.shape != rebuilt.matrix.shape:
        raise InputError(
            f"raw vectors of shape {raw.matrix.shape}, rebuilt of {rebuilt.matrix.shape}"
        )
    rows = np.arange(len(raw)) if rows is None else rows
    cosines, errors = np.empty(len(rows)), np.empty(len(rows))
    for block in blocks(len(rows)):
        x, y = (space.matrix[rows[block]].astype(np.float64) for space in (raw, rebuilt))
        cosines[block] = row_cosines(x, y)
        errors[block] = ((x - y) ** 2).mean(axis=1)
    if not len(rows):
        return {"cosine": 0.0, "mse": 0.0}
    samples.add_mean("reconstruction.cosine", cosines, "reconstruction")
    samples.add_mean("reconstruction.mse", errors, "reconstruction")
    return {"cosine": float(cosines.mean()), "mse": float(errors.mean())}


class Reconstruction(Task):
    """Cosine and error of the rebuilt floats, and their scores on other tasks."""

    name = "reconstruction"
    title = "Reconstruction"
    caption = "Floats rebuilt from the codes. Cosine and Fisher mean × 100. {rows}"
    needs_raw = True

    def run(self, subject: Subject) -> Entry | None:
        space, bits, split = subject.space, subject.bits, subject.split
        if not isinstance(space, BitSpace):
            return None
        found: Entry = {}
        if subject.raw is not None and bits is not None:
            rebuilt = space if bits is space.bits else BitSpace(bits, space.lookup)
            rows = None if split is None else split.unseen
            found = evaluate_reconstruction(subject.raw, rebuilt.rebuilt(), rows, subject.samples)
            found |= subject.about_rows
        floats = replace(
            subject, space=space.rebuilt(), samples=subject.samples.under(self.name), raw=None
        )
        found |= {task.name: task.run(floats) for task in subject.tasks if task.of_rebuilt}
        return found or None

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        cosine = Score("Cosine to raw, rebuilt", (self.name, "cosine"), column="rebuilt",
                       is_tested=True)  # fmt: skip
        error = Score("Mean squared error", (self.name, "mse"), shown=lambda x: number(x, 4))
        return [cosine, error] if "cosine" in names_at(entries, self.name) else []

    def tables(self, grid: Grid, *more: Score) -> list[Table]:
        if "similarity" in names_at(grid.entries, self.name):
            mean = ("similarity", "fisher_mean")
            more = (*more, Score("Fisher mean of similarity", (self.name, *mean), mean))
        return super().tables(grid, *more)
