"""A folder of evaluation data sets.

    similarity/NAME.txt              word word score; also NAME.csv and NAME.tsv
    analogy/questions-words.txt      : section, then lines of four words
    classification/NAME/train.csv    "class","title","text" (any number of text columns), test.csv

Other similarity files and classification folders in the same places are used as well. A data set
that is missing or malformed is skipped, with a line in `problems`; the others are still read. Files
that belong to no data set are named there too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from embits.errors import InputError, ReadError
from embits.evaluation.data.files import (
    Pairs,
    Questions,
    Split,
    read_pairs,
    read_questions,
    read_split,
)

Found = TypeVar("Found")

_ZHANG = "the data of Zhang et al. 2015, https://course.fast.ai/datasets#nlp"
SIMILARITY = {
    "MEN": "https://staff.fnwi.uva.nl/e.bruni/MEN",
    "RW": "https://nlp.stanford.edu/~lmthang/morphoNLM",
    "SimLex": "https://fh295.github.io/simlex.html",
    "SimVerb": "https://people.ds.cam.ac.uk/dsg40/simverb.html",
    "WS353": "http://alfonseca.org/eng/research/wordsim353.html",
}
PAIR_SUFFIXES = (".txt", ".csv", ".tsv")
ANALOGY = "https://github.com/tmikolov/word2vec/blob/master/questions-words.txt"
# In the order of the paper's Table 2; other data sets follow.
CLASSIFICATION = {
    "ag_news": _ZHANG,
    "dbpedia": _ZHANG,
    "yahoo_answers": _ZHANG,
    "amazon_full": _ZHANG,
    "amazon_polarity": _ZHANG,
    "yelp_full": _ZHANG,
    "yelp_polarity": _ZHANG,
}


@dataclass
class DataFolder:
    """A folder of data sets, read on demand.

    Args:
        path: The folder.

    Attributes:
        problems: One line for each data set that could not be read, and for each other file.
    """

    path: Path
    problems: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, path: str | os.PathLike[str] | None = None) -> DataFolder:
        """The folder at `path`; None takes the environment variable EMBITS_DATA.

        Raises:
            InputError: Neither is set, or the folder does not exist.
        """
        where = os.environ.get("EMBITS_DATA") if path is None else path
        if where is None:
            raise InputError("no folder of evaluation data: give --data DIR, or set EMBITS_DATA")
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
        read = {}
        for name in _in_order(SIMILARITY, found):
            path = found.get(name, folder / f"{name}.txt")
            read[name] = self._read(name, read_pairs, path, SIMILARITY.get(name))
        return {name: pairs for name, pairs in read.items() if pairs is not None}

    def analogy(self) -> dict[str, Questions]:
        """Questions by section."""
        path = self.path / "analogy" / "questions-words.txt"
        for other in _visible(path.parent):
            if other.name != path.name:
                self._unused(other, f"expected {path.name}")
        return self._read("analogy", read_questions, path, ANALOGY) or {}

    def classification(self) -> Iterator[tuple[str, Split]]:
        """The data sets, read one at a time because they may be large; the paper's come first."""
        folder = self.path / "classification"
        found = {}
        for path in _visible(folder):
            if path.is_dir():
                found[_short_name(path.name)] = path
            else:
                self._unused(path, "expected a folder with train.csv and test.csv")
        for name in _in_order(CLASSIFICATION, found):
            path = found.get(name, folder / name)
            split = self._read(name, read_split, path, CLASSIFICATION.get(name))
            if split is not None:
                yield name, split

    def _read(
        self, name: str, read: Callable[[Path], Found], path: Path, source: str | None
    ) -> Found | None:
        try:
            return read(path)
        except FileNotFoundError as error:
            where = f"; get it from {source}" if source else ""
            self._note(f"{name} is left out: looked for {error.filename}{where}")
        except (ReadError, OSError) as error:
            self._note(f"{name} is left out: {error}")
        return None

    def _unused(self, path: Path, reason: str) -> None:
        self._note(f"{path} is not used: {reason}")

    def _note(self, line: str) -> None:
        if line not in self.problems:
            self.problems.append(line)


def _visible(folder: Path) -> list[Path]:
    """Files and folders in a folder by name, without hidden ones; none if it does not exist."""
    return sorted(path for path in folder.glob("*") if not path.name.startswith("."))


def _pair_rank(path: Path) -> int:
    """The order in which suffixes are preferred."""
    suffix = path.suffix.lower()
    return PAIR_SUFFIXES.index(suffix) if suffix in PAIR_SUFFIXES else len(PAIR_SUFFIXES)


def _in_order(known: Iterable[str], found: Iterable[str]) -> list[str]:
    return [*known, *sorted(set(found) - set(known))]


def _short_name(folder: str) -> str:
    """The name of a data set from its original folder name, such as `yelp_review_full_csv`."""
    return folder.removesuffix("_csv").replace("_review_", "_")
