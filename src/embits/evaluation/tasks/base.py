"""What a task is: it scores vectors or codes, and owns its rows and its table."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryRows
from embits.coders import Coder
from embits.evaluation.data import DataFolder
from embits.evaluation.results import Entry, Grid, Score, Table, at, percent
from embits.evaluation.spaces import FloatSpace, Space
from embits.evaluation.statistics import Samples

FitCoder: TypeAlias = Callable[[NDArray[np.float32]], Coder]
"""Returns a coder fitted on the corpus of a retrieval set."""
T = TypeVar("T")


class RowSplit(NamedTuple):
    """The rows of a matrix that a coder is fitted on, and the others; both ascending."""

    fitted: NDArray[np.int64]
    unseen: NDArray[np.int64]


@dataclass(frozen=True)
class Context:
    """What the entries of an evaluation share."""

    tasks: Sequence[Task]  # to run
    data: DataFolder | None
    has_raw: bool  # whether the raw vectors are scored, too
    say: Callable[[str], None]  # called with the name of each step
    notes: dict[str, None] = field(default_factory=dict)  # a line for each thing skipped
    _cache: dict[Hashable, tuple[object, Any]] = field(default_factory=dict)

    def once(self, name: Hashable, make: Callable[[], T], source: object = None) -> T:
        """The result of `make`, cached until the `source` is another object."""
        if name not in self._cache or self._cache[name][0] is not source:
            self._cache[name] = source, make()
        value: T = self._cache[name][1]
        return value


@dataclass(frozen=True)
class Subject:
    """Vectors or codes to score."""

    context: Context
    space: Space
    samples: Samples  # receives the values of single items, for bootstraps
    file: Path | None = None  # of `space`
    bits: BinaryRows | None = None  # codes beside the raw vectors of the same rows
    raw: FloatSpace | None = None
    split: RowSplit | None = None  # the rows of the fit of `bits`, and those measured; None: all
    fit: FitCoder | None = None  # on the corpus of a retrieval set; None takes the codes' coder

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

    def run(self, subject: Subject) -> Entry | None:
        """The scores of vectors or codes in the shape of `evaluate --json`, None if not scored."""
        raise NotImplementedError

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        """The scores in these entries, in the order of tables."""
        raise NotImplementedError

    def table(self, grid: Grid) -> Table | None:
        """The table of its section in a report: its scores by method and width."""
        scores = self.scores(grid.entries)
        caption = self.caption.format(rows=_measured_rows(grid, self.name))
        return grid.table(scores, caption, rebuilt=self.of_rebuilt) if scores else None

    def score(
        self,
        label: str,
        *path: str,
        as_text: Callable[[float | None], str] = percent,
        heading: str = "",
    ) -> Score:
        """A score at this path below the name of the task, also of the raw vectors."""
        return Score(label, (self.name, *path), (self.name, *path), as_text, heading)

    def datasets(self, subject: Subject) -> Any:
        """The data sets of the task, read once."""
        return subject.context.once(self.name, getattr(subject.context.data, self.name))


def _measured_rows(grid: Grid, task: str) -> str:
    """Whether the rows of a task are outside the fit, in a sentence."""
    fits = {at(entry, task, "fit_rows") or 0 for entry in grid.coded if at(entry, task)}
    kinds = [
        f"outside the fit (unseen); the fit used {n:,} rows" if n else "rows of the fit (seen)"
        for n in sorted(fits)
    ]
    return f"The rows are {', or '.join(kinds)}."
