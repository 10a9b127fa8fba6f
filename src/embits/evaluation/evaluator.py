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
from embits.evaluation.data.files import Pairs, Questions
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.data.retrieval import RetrievalSet
from embits.evaluation.lookup import MISSING, Lookup
from embits.evaluation.spaces import BitSpace, FloatSpace, Space, float_space, same_words
from embits.evaluation.tasks.analogy import evaluate_analogies
from embits.evaluation.tasks.classification import Task, evaluate_classification, prepare
from embits.evaluation.tasks.neighbors import evaluate_neighbors, float_neighbors, query_rows
from embits.evaluation.tasks.reconstruction import evaluate_reconstruction
from embits.evaluation.tasks.retrieval import evaluate_retrieval
from embits.evaluation.tasks.similarity import evaluate_similarity
from embits.evaluation.tasks.speed import evaluate_speed
from embits.vectors import WordVectors

TASKS = (
    "similarity",
    "analogy",
    "neighbors",
    "reconstruction",
    "classification",
    "retrieval",
    "speed",
)
"""All tasks, in the order of the reports."""
DATA_TASKS = frozenset({"similarity", "analogy", "classification", "retrieval"})
"""Tasks that read data sets."""
RAW_TASKS = frozenset({"neighbors", "reconstruction"})
"""Tasks that are measured against the raw vectors."""
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
        self._aligned: FloatSpace | None = None
        self._truth: NDArray[np.int64] | None = None

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
        entry = {
            "file": None if self.raw_file is None else str(self.raw_file),
            "method": "raw",
            "bits": self.raw.n_bits,
            "words": len(self.raw),
        }
        dims = None if all_sets else self.raw.matrix.shape[1]
        entry |= self._scores(self.raw) | self._retrieval("raw", dims, evaluate_retrieval)
        return entry | self._speed(self.raw, self.raw_file)

    def evaluate_bits(
        self, bits: BinaryVectors, file: Path | None = None, fit: FitCoder | None = None
    ) -> dict[str, Any]:
        """The entry of one file of codes.

        Args:
            bits: The codes.
            file: Their file, to measure its loading time.
            fit: Returns a coder fitted on the corpus of a retrieval set; None takes the coder of
                `bits`, and leaves out sets of other dimensions.
        """
        bits = bits.merged()
        space = BitSpace(bits, self._lookup(bits.words))
        entry: dict[str, Any] = {
            "file": None if file is None else str(file),
            "method": bits.coder.method,
            "bits": bits.n_bits,
            "words": len(bits),
        }
        entry |= self._scores(space)
        raw = self._raw_of(space, file)
        if "neighbors" in self.tasks and raw is not None:
            self._say("neighbors")
            rows = query_rows(len(raw))
            if self._truth is None:
                self._truth = float_neighbors(raw, rows, min(100, len(raw) - 1))
            entry["neighbors"] = evaluate_neighbors(bits, raw, rows=rows, truth=self._truth)
        if "reconstruction" in self.tasks:
            self._say("reconstruction")
            rebuilt = space.rebuilt()
            measured = {} if raw is None else evaluate_reconstruction(raw, rebuilt)
            entry["reconstruction"] = measured | self._scores(rebuilt)
        entry |= self._retrieval(
            str(file or "the codes"),
            bits.dims if fit is None else None,
            lambda data: self._coded(data, fit(data.corpus.matrix) if fit else bits.coder),
        )
        return entry | self._speed(space, file)

    def _coded(self, data: RetrievalSet, coder: Coder) -> dict[str, Any]:
        """The retrieval scores of a coder; without raw vectors, those of the floats as well."""
        floats = evaluate_retrieval(data) if self.raw is None else {}
        return floats | evaluate_retrieval(data, coder)

    def _retrieval(
        self, name: str, dims: int | None, score: Callable[[RetrievalSet], dict[str, Any]]
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
            found[title] = score(data)
        return {"retrieval": found} if found else {}

    @cached_property
    def _retrieval_sets(self) -> dict[str, RetrievalSet]:
        return self.data.retrieval() if self.data else {}

    def _scores(self, space: Space) -> dict[str, Any]:
        """The scores of the tasks that apply to both floats and codes."""
        scores: dict[str, Any] = {}
        if "similarity" in self.tasks:
            self._say("similarity")
            scores["similarity"] = evaluate_similarity(space, self.pairs)
        if "analogy" in self.tasks:
            self._say("analogy")
            scores["analogy"] = evaluate_analogies(space, self._questions)
        if "classification" in self.tasks:
            scores["classification"] = {}
            for name, task in self._texts(space.lookup).items():
                self._say(f"classification: {name}")
                scores["classification"][name] = evaluate_classification(space, task)
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

    def _raw_of(self, space: BitSpace, file: Path | None) -> FloatSpace | None:
        """The raw vectors with the rows of a file; None, and a note, if there are none."""
        if not RAW_TASKS & set(self.tasks):
            return None
        if self.raw is None:
            self._note("neighbors and reconstruction need the raw vectors: give --raw")
            return None
        if self._aligned is not None and same_words(self._aligned.words, space.words):
            return self._aligned
        aligned = _aligned(self.raw, space)
        if isinstance(aligned, str):
            self._note(f"{file or 'a file'}: neighbors and reconstruction are skipped: {aligned}")
            return None
        self._aligned, self._truth = aligned, None
        return aligned

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


def _aligned(raw: FloatSpace, space: BitSpace) -> FloatSpace | str:
    """`raw` with the rows of `space`, or the reason why that is impossible."""
    if raw.matrix.shape[1] != space.bits.dims:
        return f"raw vectors of {raw.matrix.shape[1]} dimensions, expected {space.bits.dims}"
    if same_words(raw.words, space.words):
        return raw
    exact = Lookup(raw.words, case_insensitive=False)
    rows = exact.rows(space.words)
    missing = int((rows == MISSING).sum())
    if missing:
        word = space.words[int(rows.argmin())]
        return f"{missing:,} of its words have no raw vector, such as {word!r}"
    return FloatSpace(space.words, raw.matrix[rows], space.lookup)
