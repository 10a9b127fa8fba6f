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
from collections.abc import Callable, Collection, Iterator, Sequence
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
CLASSIFICATION = (
    "ag_news",
    "dbpedia",
    "yahoo_answers",
    "amazon_full",
    "amazon_polarity",
    "yelp_full",
    "yelp_polarity",
)
PAIR_SUFFIXES = (".txt", ".csv", ".tsv")


@dataclass
class DataFolder:
    """A folder of data sets, read on demand.

    Args:
        path: The folder.
    """

    path: Path
    _malformed: list[str] = field(default_factory=list)
    _missing: dict[str, str] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """What could not be read so far, in one line each.

        Malformed data sets and files that were not recognized come first, then the public data
        sets that are missing, one line for each task.
        """
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
        folder = Path(where)
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of evaluation data")
        return cls(folder)

    def similarity(self) -> dict[str, Pairs]:
        """Word pairs by file name; the five data sets of the paper come first."""
        folder = self.path / "similarity"
        found: dict[str, Path] = {}
        for path in sorted(_visible(folder), key=_pair_rank):
            if path.suffix.lower() not in PAIR_SUFFIXES or not path.is_file():
                self._unused(path, f"expected a {', '.join(PAIR_SUFFIXES)} file of word pairs")
            elif path.stem in found:
                self._unused(path, f"{found[path.stem].name} has the same name")
            else:
                found[path.stem] = path
        self._note_missing("similarity", SIMILARITY, found)
        read = {
            name: self._read(name, read_pairs, found[name]) for name in _in_order(SIMILARITY, found)
        }
        return {name: pairs for name, pairs in read.items() if pairs is not None}

    def analogy(self) -> dict[str, Questions]:
        """Questions by section."""
        path = self.path / "analogy" / "questions-words.txt"
        for other in _visible(path.parent):
            if other.name != path.name:
                self._unused(other, f"expected {path.name}")
        if not path.exists():
            self._missing["analogy"] = f"analogy is skipped: {MissingFileError(path)}"
            return {}
        return self._read("analogy", read_questions, path) or {}

    def classification(self) -> Iterator[tuple[str, Split]]:
        """The data sets, read one at a time because they may be large; the paper's come first."""
        folder = self.path / "classification"
        found = {}
        for path in _visible(folder):
            if path.is_dir():
                found[_short_name(path.name)] = path
            else:
                self._unused(path, "expected a folder with train.csv and test.csv")
        self._note_missing("classification", CLASSIFICATION, found)
        for name in _in_order(CLASSIFICATION, found):
            split = self._read(name, read_split, found[name])
            if split is not None:
                yield name, split

    def retrieval(self) -> dict[str, RetrievalSet]:
        """Retrieval data sets by folder name."""
        found = {}
        for path in _visible(self.path / "retrieval"):
            if path.is_dir():
                found[path.name] = self._read(path.name, read_retrieval, path)
            else:
                self._unused(path, "expected a folder with a corpus, queries and qrels.tsv")
        self._note_missing("retrieval", (), found)
        return {name: read for name, read in found.items() if read is not None}

    def _read(self, name: str, read: Callable[[Path], Found], path: Path) -> Found | None:
        try:
            return read(path)
        except (ReadError, MissingExtraError, OSError) as error:
            self._note(f"{name} is skipped: {error}")
        return None

    def _note_missing(self, task: str, known: Sequence[str], found: Collection[str]) -> None:
        """Note the public data sets of a task that are not in the folder."""
        missing = [name for name in known if name not in found]
        if not found:
            self._missing[task] = f"{task} is skipped: no data sets in {self.path / task}"
        elif missing:
            self._missing[task] = f"{task}: {', '.join(missing)} not found in {self.path / task}"

    def _unused(self, path: Path, reason: str) -> None:
        self._note(f"{path} is not used: {reason}")

    def _note(self, line: str) -> None:
        if line not in self._malformed:
            self._malformed.append(line)


def _visible(folder: Path) -> list[Path]:
    """Files and folders in a folder by name, without hidden ones; none if it does not exist."""
    return sorted(path for path in folder.glob("*") if not path.name.startswith("."))


def _pair_rank(path: Path) -> int:
    """The order in which suffixes are preferred."""
    suffix = path.suffix.lower()
    return PAIR_SUFFIXES.index(suffix) if suffix in PAIR_SUFFIXES else len(PAIR_SUFFIXES)


def _in_order(known: Sequence[str], found: Collection[str]) -> list[str]:
    """The names found: known ones in their order, then the others by name."""
    return [*(name for name in known if name in found), *sorted(set(found) - set(known))]


def _short_name(folder: str) -> str:
    """The name of a data set from its original folder name, such as `yelp_review_full_csv`."""
    return folder.removesuffix("_csv").replace("_review_", "_")
