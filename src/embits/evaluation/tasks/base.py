"""What a task is: it scores vectors or codes, and owns its rows, its tables and its figures."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

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


@dataclass(frozen=True)
class RowSplit:
    """The rows of a matrix that a coder is fitted on, and the others; both ascending."""

    fitted: NDArray[np.int64]
    unseen: NDArray[np.int64]


@dataclass(frozen=True)
class AgainstRaw:
    """Codes beside the raw vectors of the same rows.

    Attributes:
        bits: The codes.
        raw: The raw vectors.
        split: The rows of the fit, and the others, which are measured; None measures all.
    """

    bits: BinaryVectors
    raw: FloatSpace
    split: RowSplit | None

    @property
    def about(self) -> Entry:
        """Whether the measured rows are outside the fit, and how many rows were fitted on."""
        if self.split is None:
            return {"rows": "seen"}
        return {"rows": "unseen", "fit_rows": len(self.split.fitted)}


@dataclass
class Shared:
    """What all entries of an evaluation share.

    Attributes:
        tasks: The tasks to run.
        data: The folder of data sets.
        has_raw: Whether the raw vectors are scored, too.
        by_pairs: Weigh the sets of the Fisher mean by their numbers of pairs.
        say: Called with the name of each step.
        note: Called with a line for each thing that is skipped.
    """

    tasks: Sequence[Task]
    data: DataFolder | None
    has_raw: bool
    by_pairs: bool
    say: Callable[[str], None]
    note: Callable[[str], None]
    _kept: dict[Hashable, tuple[object, Any]] = field(default_factory=dict)

    def once(self, name: Hashable, make: Callable[[], Made], of: object = None) -> Made:
        """The result of `make`, which is kept until it is asked for another object `of`."""
        if name not in self._kept or self._kept[name][0] is not of:
            self._kept[name] = of, make()
        made: Made = self._kept[name][1]
        return made


@dataclass(frozen=True)
class Subject:
    """Vectors or codes to score.

    Attributes:
        space: The vectors or codes.
        shared: What all entries share.
        samples: Receives the values of single items, for bootstraps.
        file: Their file.
        against: The codes beside the raw vectors, if there are any.
        fit: Fits a coder on the corpus of a retrieval set; None takes that of the codes.
        dims: Retrieval sets of other dimensions are left out; None takes all.
    """

    space: Space
    shared: Shared
    samples: Samples
    file: Path | None = None
    against: AgainstRaw | None = None
    fit: FitCoder | None = None
    dims: int | None = None


class Task:
    """A task. To add one, write a subclass in a module of its own and list it in `TASKS`.

    Attributes:
        name: Its name on the command line and in JSON.
        title: The heading of its section in a report.
        caption: The caption of its table.
        reads_data: Whether it reads data sets.
        needs_raw: Whether it measures codes against the raw vectors.
        of_rebuilt: Whether floats rebuilt from codes are scored as well.
        counted: What its scores count beside "oov", such as "pairs"; "" if nothing.
    """

    name: str
    title: str
    caption: str
    reads_data = False
    needs_raw = False
    of_rebuilt = False
    counted = ""

    def run(self, subject: Subject) -> Entry | None:
        """The scores of vectors or codes in the shape of `evaluate --json`, None if not scored."""
        raise NotImplementedError

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        """The scores in these entries, in the order of tables."""
        raise NotImplementedError

    def tables(self, grid: Grid) -> list[Table]:
        """The tables of its section in a report."""
        scores = self.scores(grid.entries)
        tables = [grid.table(scores, self.caption, rebuilt=self.of_rebuilt)] if scores else []
        counts = [
            [score.label, str(found[self.counted]), str(found["oov"])]
            for score in scores
            if self.counted and "oov" in (found := at(grid.entries[0], *score.path[:-1]) or {})
        ]
        caption = f"{self.counted} that were scored, and skipped because of an unknown word."
        header = ["", "scored", "skipped"]
        if counts:
            tables.append(Table(header, counts, caption.capitalize(), has_number=False))
        return tables

    def figures(self, grid: Grid) -> list[Figure]:
        """The figures of its section in a report."""
        return []
