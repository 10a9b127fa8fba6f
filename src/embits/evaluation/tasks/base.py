"""What a task is: it scores vectors or codes, and owns its rows, its tables and its figures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.evaluation.data import DataFolder
from embits.evaluation.results import Entry, Figure, Grid, Score, Table, at
from embits.evaluation.spaces import FloatSpace, Space
from embits.evaluation.statistics import Samples

FitCoder: TypeAlias = Callable[[NDArray[np.float32]], Coder]
"""Returns a coder fitted on the corpus of a retrieval set."""
Made = TypeVar("Made")


class RowSplit(NamedTuple):
    """The rows of a matrix that a coder is fitted on, and the others; both ascending."""

    fitted: NDArray[np.int64]
    unseen: NDArray[np.int64]


@dataclass(frozen=True)
class Subject:
    """Vectors or codes to score, and what the entries of an evaluation share."""

    space: Space
    samples: Samples  # receives the values of single items, for bootstraps
    tasks: Sequence[Task]  # to run
    data: DataFolder | None
    has_raw: bool  # whether the raw vectors are scored, too
    say: Callable[[str], None]  # called with the name of each step
    note: Callable[[str], None]  # called with a line for each thing skipped
    kept: dict[Hashable, tuple[object, Any]]  # by `once`
    file: Path | None = None  # of `space`
    bits: BinaryVectors | None = None  # codes beside the raw vectors of the same rows
    raw: FloatSpace | None = None
    split: RowSplit | None = None  # the rows of the fit of `bits`, and those measured; None: all
    fit: FitCoder | None = None  # on the corpus of a retrieval set; None takes the codes' coder
    dims: int | None = None  # retrieval sets of other dimensions are left out; None takes all

    def once(self, name: Hashable, make: Callable[[], Made], of: object = None) -> Made:
        """The result of `make`, which is kept until it is asked for another object `of`."""
        if name not in self.kept or self.kept[name][0] is not of:
            self.kept[name] = of, make()
        made: Made = self.kept[name][1]
        return made

    @property
    def about_rows(self) -> Entry:
        """Whether the measured rows are outside the fit, and how many rows were fitted on."""
        if self.split is None:
            return {"rows": "seen"}
        return {"rows": "unseen", "fit_rows": len(self.split.fitted)}


class Task:
    """A task. To add one, write a subclass in a module of its own and list it in `TASKS`."""

    name: str  # on the command line and in JSON
    title: str  # of its section in a report
    caption: str  # of its table; {rows} says whether the rows are outside the fit
    reads_data = False  # whether it reads data sets: the method of `DataFolder` with its name
    needs_raw = False  # whether it measures codes against the raw vectors
    of_rebuilt = False  # whether floats rebuilt from codes are scored as well
    counted = ""  # what its scores count beside "oov", such as "pairs"

    def run(self, subject: Subject) -> Entry | None:
        """The scores of vectors or codes in the shape of `evaluate --json`, None if not scored."""
        raise NotImplementedError

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        """The scores in these entries, in the order of tables."""
        raise NotImplementedError

    def figures(self, grid: Grid) -> list[Figure]:
        return []

    def tables(self, grid: Grid, *more: Score) -> list[Table]:
        """The tables of its section in a report: its scores with `more`, and what it counts."""
        scores = [*self.scores(grid.entries), *more]
        if not scores:
            return []
        caption = self.caption.format(rows=_measured_rows(grid, self.name))
        tables = [grid.table(scores, caption, rebuilt=self.of_rebuilt)]
        counts = [
            [score.label, str(found[self.counted]), str(found["oov"])]
            for score in scores
            if self.counted and "oov" in (found := at(grid.entries[0], *score.path[:-1]) or {})
        ]
        if counts:
            caption = f"{self.counted} that were scored, and skipped because of an unknown word."
            header = ["", "scored", "skipped"]
            tables.append(Table(header, counts, caption.capitalize(), has_number=False))
        return tables

    def score(self, label: str, *path: str, **how: Any) -> Score:
        """A score at this path below the name of the task, also of the raw vectors."""
        return Score(label, (self.name, *path), (self.name, *path), **how)

    def datasets(self, subject: Subject) -> Any:
        """The data sets of the task, read once."""
        return subject.once(self.name, getattr(subject.data, self.name))


def _measured_rows(grid: Grid, task: str) -> str:
    """Whether the rows of a task are outside the fit, in a sentence."""
    found = [at(entry, task) or {} for entry in grid.coded]
    fitted = {int(about["fit_rows"]) for about in found if about.get("rows") == "unseen"}
    if not fitted:
        return "The rows are rows of the fit (seen)."
    rows = " or ".join(f"{number:,}" for number in sorted(fitted))
    if all(about.get("rows") == "unseen" for about in found if about):
        return f"The rows are outside the fit (unseen); the fit used {rows} rows."
    unseen = "The rows of files without words are outside the fit (unseen)"
    return f"{unseen}, the others are rows of the fit (seen)."
