"""Run all tasks on several files; what the tasks share is read and computed once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import InputError
from embits.evaluation.against_raw import RAW_TASKS, AgainstRaw
from embits.evaluation.data.files import Pairs, Questions
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.data.retrieval import RetrievalSet
from embits.evaluation.held_out import RowSplit
from embits.evaluation.lookup import Lookup
from embits.evaluation.resampling import Samples, intervals
from embits.evaluation.spaces import BitSpace, Space, float_space, same_words
from embits.evaluation.tasks import DATA_TASKS, TASKS
from embits.evaluation.tasks.analogy import evaluate_analogies
from embits.evaluation.tasks.classification import Task, evaluate_classification, prepare
from embits.evaluation.tasks.retrieval import evaluate_retrieval
from embits.evaluation.tasks.similarity import evaluate_similarity
from embits.evaluation.tasks.speed import evaluate_speed
from embits.vectors import WordVectors

Say = Callable[[str], None]
FitCoder = Callable[[NDArray[np.float32]], Coder]


class Evaluator:
    """Scores binary vectors, and the float vectors they were made from, on a set of tasks.

    Args:
        data: The folder of data sets, or its path. None takes the environment variable
            EMBITS_DATA if a task needs data sets.
        raw: The float vectors. They are scored as well, and neighbors and reconstruction are
            measured against them; None skips those two.
        tasks: Which of `TASKS`.
        raw_file: The file of `raw`, to measure its loading time.
        say: Called with the name of each step when it starts.
        fit_rows: Rows to fit a new coder on, to measure neighbors and reconstruction on the
            others. None is half of the rows of files without words, and measures the codes of
            other files as they are.
        n_resamples: Bootstrap replicates of each score; with any, entries have the 95 % intervals
            of their scores under "intervals".
        by_pairs: Weigh the sets of the Fisher mean by their numbers of pairs, not equally.

    Attributes:
        samples: The replicates of the last entry.

    Raises:
        InputError: A task is unknown, there is no folder of data sets, or all tasks need `raw` and
            it is None.
    """

    def __init__(
        self,
        data: DataFolder | str | os.PathLike[str] | None,
        raw: WordVectors | None = None,
        tasks: Iterable[str] = TASKS[:-1],
        raw_file: Path | None = None,
        say: Say | None = None,
        fit_rows: int | None = None,
        *,
        n_resamples: int = 0,
        by_pairs: bool = False,
    ) -> None:
        self.tasks = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        unknown = set(self.tasks) - set(TASKS)
        if unknown or not self.tasks:
            raise InputError(f"tasks are {list(self.tasks)}, expected some of {', '.join(TASKS)}")
        if raw is None and set(self.tasks) <= RAW_TASKS:
            raise InputError(f"{' and '.join(self.tasks)}: the raw vectors are needed (--raw)")
        self.data = _data_folder(data, self.tasks)
        if raw is not None and not isinstance(raw, WordVectors):
            raise InputError(f"raw is a {type(raw).__name__}, expected WordVectors")
        self.raw = None if raw is None else float_space(raw)
        self.raw_file = raw_file
        self._say = say or (lambda step: None)
        self._own_notes: list[str] = []
        self._prepared: tuple[Lookup, dict[str, Task]] | None = None
        self._against_raw = AgainstRaw(self.raw, self.tasks, fit_rows, self._say, self._note)
        self._by_pairs = by_pairs
        self.samples = Samples(n_resamples)

    @property
    def notes(self) -> list[str]:
        """One line for each score that could not be measured, with the reason."""
        return [*(self.data.problems if self.data else ()), *self._own_notes]

    def evaluate_raw(self, *, all_sets: bool = False) -> dict[str, Any]:
        """The entry of the float vectors.

        Args:
            all_sets: Score retrieval sets of other dimensions than the vectors, too.
        """
        if self.raw is None:
            raise InputError("no raw vectors were given, so they cannot be scored")
        self.samples = Samples(self.samples.n_resamples)
        entry: dict[str, Any] = {
            "file": None if self.raw_file is None else str(self.raw_file),
            "method": "raw",
            "bits": self.raw.n_bits,
            "words": len(self.raw),
        }
        dims = None if all_sets else self.raw.matrix.shape[1]
        entry |= self._scores(self.raw, self.samples)
        entry |= self._retrieval("raw", dims, lambda name, data: self._floats(data, name))
        return entry | self._speed(self.raw, self.raw_file) | self._intervals()

    def evaluate_bits(
        self,
        bits: BinaryVectors,
        file: Path | None = None,
        fit: FitCoder | None = None,
        split: RowSplit | None = None,
    ) -> dict[str, Any]:
        """The entry of one file of codes.

        Args:
            bits: The codes.
            file: Their file, to measure its loading time.
            fit: Returns a coder fitted on the corpus of a retrieval set; None takes the coder of
                `bits`, and leaves out sets of other dimensions.
            split: The rows that the coder of `bits` was fitted on, and the others, on which
                neighbors and reconstruction are measured. None fits a new coder if `fit_rows`
                says so.
        """
        bits = bits.merged()
        space = BitSpace(bits, self._lookup(bits.words))
        self.samples = Samples(self.samples.n_resamples)
        entry: dict[str, Any] = {
            "file": None if file is None else str(file),
            "method": bits.coder.method,
            "bits": bits.n_bits,
            "words": len(bits),
        }
        entry |= self._scores(space, self.samples)
        rebuilt = space.rebuilt() if "reconstruction" in self.tasks else None
        entry |= self._against_raw.measure(space, rebuilt, file, split, self.samples)
        if rebuilt is not None:
            scores = self._scores(rebuilt, self.samples.under("reconstruction"))
            entry["reconstruction"] = entry.get("reconstruction", {}) | scores
        entry |= self._retrieval(
            str(file or "the codes"),
            bits.dims if fit is None else None,
            lambda name, data: self._coded(
                data, name, fit(data.corpus.matrix) if fit else bits.coder
            ),
        )
        return entry | self._speed(space, file) | self._intervals()

    def _intervals(self) -> dict[str, Any]:
        found = intervals(self.samples.replicates)
        return {"intervals": found} if found else {}

    def _floats(self, data: RetrievalSet, name: str) -> dict[str, Any]:
        return evaluate_retrieval(data, None, self.samples, name)

    def _coded(self, data: RetrievalSet, name: str, coder: Coder) -> dict[str, Any]:
        """The retrieval scores of a coder; without raw vectors, those of the floats as well."""
        floats = self._floats(data, name) if self.raw is None else {}
        return floats | evaluate_retrieval(data, coder, self.samples, name)

    def _retrieval(
        self, name: str, dims: int | None, score: Callable[[str, RetrievalSet], dict[str, Any]]
    ) -> dict[str, Any]:
        """The scores of all retrieval sets of `dims` dimensions, or of any if it is None."""
        if "retrieval" not in self.tasks:
            return {}
        found = {}
        for title, data in self._retrieval_sets.items():
            if dims is not None and data.dims != dims:
                self._note(
                    f"{title} is skipped for {name}: embeddings of {data.dims} dimensions, "
                    f"expected {dims}"
                )
                continue
            self._say(f"retrieval: {title}")
            found[title] = score(title, data)
        return {"retrieval": found} if found else {}

    @cached_property
    def _retrieval_sets(self) -> dict[str, RetrievalSet]:
        return self.data.retrieval() if self.data else {}

    def _scores(self, space: Space, samples: Samples) -> dict[str, Any]:
        """The scores of the tasks that apply to both floats and codes."""
        scores: dict[str, Any] = {}
        if "similarity" in self.tasks:
            self._say("similarity")
            scores["similarity"] = evaluate_similarity(
                space, self.pairs, samples, by_pairs=self._by_pairs
            )
        if "analogy" in self.tasks:
            self._say("analogy")
            scores["analogy"] = evaluate_analogies(space, self._questions, samples)
        if "classification" in self.tasks:
            scores["classification"] = {}
            for name, task in self._texts(space.lookup).items():
                self._say(f"classification: {name}")
                scores["classification"][name] = evaluate_classification(
                    space, task, samples=samples, name=name
                )
        return scores

    def _speed(self, space: Space, file: Path | None) -> dict[str, Any]:
        if "speed" not in self.tasks:
            return {}
        self._say("speed")
        return {"speed": evaluate_speed(space, file)}

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        """The similarity data sets."""
        return self.data.similarity() if self.data else {}

    @cached_property
    def _questions(self) -> dict[str, Questions]:
        return self.data.analogy() if self.data else {}

    def _texts(self, lookup: Lookup) -> dict[str, Task]:
        """The tokenized texts, cached for the last vocabulary."""
        if self._prepared is None or self._prepared[0] is not lookup:
            self._say("reading texts")
            splits = self.data.classification() if self.data else ()
            self._prepared = lookup, {name: prepare(split, lookup) for name, split in splits}
        return self._prepared[1]

    def _lookup(self, words: Sequence[str]) -> Lookup | None:
        """The lookup of the raw vectors if the words are the same, else None."""
        if self.raw is not None and same_words(self.raw.words, words):
            return self.raw.lookup
        return None

    def _note(self, line: str) -> None:
        if line not in self._own_notes:
            self._own_notes.append(line)


def _data_folder(
    data: DataFolder | str | os.PathLike[str] | None, tasks: Sequence[str]
) -> DataFolder | None:
    """The folder of data sets; None if it is not given and no task reads it."""
    if isinstance(data, DataFolder) or (data is None and not DATA_TASKS & set(tasks)):
        return data
    if data is None or isinstance(data, str | os.PathLike):
        return DataFolder.at(data)
    raise InputError(f"data is a {type(data).__name__}, expected a DataFolder or a path")
