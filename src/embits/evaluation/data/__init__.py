"""A folder of evaluation data sets.

    similarity/NAME.txt              word word score; also NAME.csv and NAME.tsv
    analogy/questions-words.txt      : section, then lines of four words
    classification/NAME/train.csv    "1","A title","The text" (any number of text columns), test.csv
    retrieval/NAME/corpus.npy        corpus_ids.txt, queries.npy, query_ids.txt, qrels.tsv

Other similarity files and folders in the same places are used as well. A data set
that is missing or malformed is skipped, with a line in `problems`; the others are still read. Files
that are not recognized are listed there too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from embits.errors import InputError, MissingExtraError, MissingFileError, ReadError
from embits.evaluation.data.files import (
    Pairs,
    Questions,
    Split,
    read_pairs,
    read_questions,
    read_split,
)
from embits.evaluation.data.retrieval import RetrievalSet, read_retrieval

Found = TypeVar("Found")

# In the order of the paper's tables; other data sets follow.
SIMILARITY = ("MEN", "RW", "SimLex", "SimVerb", "WS353")
CLASSIFICATION = ("ag_news", "dbpedia", "yahoo_answers", "amazon_full", "amazon_polarity",
                  "yelp_full", "yelp_polarity")  # fmt: skip
PAIR_SUFFIXES = (".txt", ".csv", ".tsv")


@dataclass
class DataFolder:
    """A folder of data sets at `path`, read on demand."""

    path: Path
    _malformed: dict[str, None] = field(default_factory=dict)
    _missing: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """What could not be read so far, in one line each; missing public data sets come last."""
        return [*self._malformed, *self._missing.values()]

    @classmethod
    def at(cls, path: str | os.PathLike[str] | None = None) -> DataFolder:
        """The folder at `path`; None takes the environment variable EMBITS_DATA.

        Raises:
            InputError: Neither is set, or the folder does not exist.
        """
        where = os.environ.get("EMBITS_DATA") if path is None else path
        if where is None:
            raise InputError(
                "no folder of evaluation data: give --data DIR, or set EMBITS_DATA; the tasks "
                "neighbors, reconstruction and speed need none"
            )
        if not Path(where).is_dir():
            raise InputError(f"{where}: no such folder of evaluation data")
        return cls(Path(where))

    def similarity(self) -> dict[str, Pairs]:
        """Word pairs by file name; the five data sets of the paper come first."""
        found: dict[str, Path] = {}
        # Of two files with one name, .txt comes before .csv and .tsv.
        for path in sorted(self._visible("similarity"), key=lambda path: path.suffix != ".txt"):
            if path.suffix.lower() not in PAIR_SUFFIXES:
                self._unused(path, f"expected a {', '.join(PAIR_SUFFIXES)} file of word pairs")
            elif found.setdefault(path.stem, path) is not path:
                self._unused(path, f"{found[path.stem].name} has the same name")
        return dict(self._read_all("similarity", SIMILARITY, found, read_pairs))

    def analogy(self) -> dict[str, Questions]:
        """Questions by section."""
        path = self.path / "analogy" / "questions-words.txt"
        for other in self._visible("analogy"):
            if other.name != path.name:
                self._unused(other, f"expected {path.name}")
        if not path.exists():
            self._missing["analogy"] = f"analogy is skipped: {MissingFileError(path)}"
            return {}
        return self._read("analogy", read_questions, path) or {}

    def classification(self) -> Iterator[tuple[str, Split]]:
        """The data sets, read one at a time because they may be large; the paper's come first."""
        folders = self._folders("classification", "train.csv and test.csv")
        # The original folders have names such as `yelp_review_full_csv`.
        found = {path.name.removesuffix("_csv").replace("_review_", "_"): path for path in folders}
        return self._read_all("classification", CLASSIFICATION, found, read_split)

    def retrieval(self) -> dict[str, RetrievalSet]:
        """Retrieval data sets by folder name."""
        folders = self._folders("retrieval", "a corpus, queries and qrels.tsv")
        found = {path.name: path for path in folders}
        return dict(self._read_all("retrieval", (), found, read_retrieval))

    def _visible(self, task: str) -> list[Path]:
        """Files and folders of a task by name, without hidden ones."""
        return sorted(p for p in (self.path / task).glob("*") if not p.name.startswith("."))

    def _folders(self, task: str, content: str) -> list[Path]:
        found = self._visible(task)
        for path in found:
            if not path.is_dir():
                self._unused(path, f"expected a folder with {content}")
        return [path for path in found if path.is_dir()]

    def _read_all(
        self, task: str, known: Sequence[str], found: dict[str, Path], read: Callable[[Path], Found]
    ) -> Iterator[tuple[str, Found]]:
        """The data sets that can be read, known names first; those that are missing are noted."""
        missing = [name for name in known if name not in found]
        if not found:
            self._missing[task] = f"{task} is skipped: no data sets in {self.path / task}"
        elif missing:
            self._missing[task] = f"{task}: {', '.join(missing)} not found in {self.path / task}"
        for name in [*known, *sorted(set(found) - set(known))]:
            content = self._read(name, read, found[name]) if name in found else None
            if content is not None:
                yield name, content

    def _read(self, name: str, read: Callable[[Path], Found], path: Path) -> Found | None:
        try:
            return read(path)
        except (ReadError, MissingExtraError, OSError) as error:
            self._malformed.setdefault(f"{name} is skipped: {error}")
        return None

    def _unused(self, path: Path, reason: str) -> None:
        self._malformed.setdefault(f"{path} is not used: {reason}")
