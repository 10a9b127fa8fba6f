"""The data sets people score word vectors on, read from one folder.

    similarity/NAME.txt              word word score
    analogy/questions-words.txt      : section, then lines of four words
    classification/NAME/train.csv    "class","title","text" (any number of text columns), test.csv

Any other similarity file or classification folder put beside the known ones is scored too. What
is missing or malformed costs its own score alone: the folder says what went wrong, in `problems`.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, ReadError

Questions: TypeAlias = list[tuple[str, str, str, str]]
Found = TypeVar("Found")

_ZHANG = "the data of Zhang et al. 2015, https://course.fast.ai/datasets#nlp"
SIMILARITY = {
    "MEN": "https://staff.fnwi.uva.nl/e.bruni/MEN",
    "RW": "https://nlp.stanford.edu/~lmthang/morphoNLM",
    "SimLex": "https://fh295.github.io/simlex.html",
    "SimVerb": "https://people.ds.cam.ac.uk/dsg40/simverb.html",
    "WS353": "http://alfonseca.org/eng/research/wordsim353.html",
}
ANALOGY = "https://github.com/tmikolov/word2vec/blob/master/questions-words.txt"
# The paper's Table 2, in its order; what else lies there follows.
CLASSIFICATION = {
    "ag_news": _ZHANG,
    "dbpedia": _ZHANG,
    "yahoo_answers": _ZHANG,
    "amazon_full": _ZHANG,
    "amazon_polarity": _ZHANG,
    "yelp_full": _ZHANG,
    "yelp_polarity": _ZHANG,
}
MOST_ROWS = 100_000  # of a classification file: the full Amazon training set has 3.6 million


@dataclass(frozen=True)
class Pairs:
    """Pairs of words with people's scores of their similarity.

    Attributes:
        first, second: The words.
        scores: People's scores, float64, on the data set's own scale.
    """

    first: list[str]
    second: list[str]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True)
class Labelled:
    """Texts of one file and their classes, int64 from 0."""

    texts: list[str]
    classes: NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """A classification data set: what to learn from, and what to be scored on."""

    train: Labelled
    test: Labelled


@dataclass
class DataFolder:
    """A folder of data sets, read when asked.

    Args:
        path: The folder; None takes the environment variable EMBITS_DATA.

    Attributes:
        problems: One line for each data set that could not be read.
    """

    path: Path
    problems: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, path: str | os.PathLike[str] | None = None) -> DataFolder:
        """The folder at `path`, or where EMBITS_DATA points.

        Raises:
            InputError: Neither is given, or there is no such folder.
        """
        where = os.environ.get("EMBITS_DATA") if path is None else path
        if where is None:
            raise InputError(
                "where the evaluation data lies is not known: give --data DIR, or set EMBITS_DATA"
            )
        folder = Path(where)
        if not folder.is_dir():
            raise InputError(f"there is no folder of evaluation data at {folder}")
        return cls(folder)

    def similarity(self) -> dict[str, Pairs]:
        """Pairs by the name of their file; the paper's five first."""
        folder = self.path / "similarity"
        names = _in_order(SIMILARITY, (path.stem for path in folder.glob("*.txt")))
        read = {
            name: self._read(name, read_pairs, folder / f"{name}.txt", SIMILARITY.get(name))
            for name in names
        }
        return {name: pairs for name, pairs in read.items() if pairs is not None}

    def analogy(self) -> dict[str, Questions]:
        """Questions by section."""
        path = self.path / "analogy" / "questions-words.txt"
        return self._read("analogy", read_questions, path, ANALOGY) or {}

    def classification(self) -> Iterator[tuple[str, Split]]:
        """The data sets one after the other, as they may be large; the paper's first."""
        folder = self.path / "classification"
        found = {_short_name(path.name): path for path in folder.glob("*") if path.is_dir()}
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

    def _note(self, line: str) -> None:
        if line not in self.problems:
            self.problems.append(line)


def read_pairs(path: str | os.PathLike[str]) -> Pairs:
    """Read lines of `word word score`; empty lines and those that start with # are skipped.

    Raises:
        ReadError: A line is something else; the message names it.
        OSError: The file cannot be opened.
    """
    first, second, scores = [], [], []
    for number, line in _lines(path):
        fields = [f.strip() for f in line.split("\t")] if "\t" in line else line.split()
        try:
            a, b, score = fields
            value = float(score)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise _malformed(path, number, line, "word word score")
        first.append(a)
        second.append(b)
        scores.append(value)
    if not scores:
        raise ReadError(f"{path}: found no pairs, expected lines of word word score")
    return Pairs(first, second, np.array(scores))


def read_questions(path: str | os.PathLike[str]) -> dict[str, Questions]:
    """Read analogy questions: `: section`, then lines of four words.

    Raises:
        ReadError: A line is something else; the message names it.
        OSError: The file cannot be opened.
    """
    sections: dict[str, Questions] = {}
    section: Questions | None = None
    for number, line in _lines(path):
        if line.startswith(":"):
            section = sections.setdefault(line.lstrip(": ").strip(), [])
            continue
        fields = line.split()
        if len(fields) != 4 or section is None:
            raise _malformed(path, number, line, "four words below a line of `: section`")
        a, b, c, d = fields
        section.append((a, b, c, d))
    if not any(sections.values()):
        raise ReadError(f"{path}: found no questions, expected `: section` and lines of four words")
    return sections


def read_split(folder: Path, most_rows: int = MOST_ROWS) -> Split:
    """Read `train.csv` and `test.csv` of a folder, each as `read_labelled` does."""
    return Split(
        read_labelled(folder / "train.csv", most_rows),
        read_labelled(folder / "test.csv", most_rows),
    )


def read_labelled(path: str | os.PathLike[str], most_rows: int = MOST_ROWS) -> Labelled:
    """Read rows of "class","text" or "class","title","text", and so on: classes from 1.

    Args:
        path: A CSV file of quoted fields, as Zhang et al. 2015 gave theirs.
        most_rows: A longer file is thinned to at most this many rows, evenly spread.

    Raises:
        ReadError: A row is something else; the message names it.
        OSError: The file cannot be opened.
    """
    step = max(1, -(-sum(1 for _ in _csv_rows(path)) // most_rows))
    texts, classes = [], []
    for row, (number, fields) in enumerate(_csv_rows(path)):
        if row % step:
            continue
        if len(fields) < 2 or not fields[0].isascii() or not fields[0].isdigit():
            raise _malformed(path, number, ",".join(fields), '"class","title","text"')
        classes.append(int(fields[0]) - 1)
        # Zhang et al. write a line break inside a text as \n, and other marks with a backslash.
        texts.append(" ".join(fields[1:]).replace("\\n", " ").replace("\\", " "))
    if not texts or min(classes) < 0:
        raise ReadError(f"{path}: found {len(texts)} rows, expected rows with classes from 1")
    return Labelled(texts, np.array(classes, dtype=np.int64))


def _csv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    with Path(path).open(encoding="utf-8", errors="replace", newline="") as file:
        rows = csv.reader(line.replace("\0", "") for line in file)
        try:
            for fields in rows:
                if fields:
                    yield rows.line_num, fields
        except csv.Error as error:
            raise ReadError(f"{path}: line {rows.line_num}: {error}") from None


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    with Path(path).open(encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, 1):
                line = line.strip()
                if line and not line.startswith("#"):
                    yield number, line
        except UnicodeDecodeError:
            raise ReadError(f"{path}: found bytes that are not UTF-8, expected text") from None


def _malformed(path: str | os.PathLike[str], number: int, line: str, expected: str) -> ReadError:
    found = line if len(line) <= 40 else line[:39] + "…"
    return ReadError(f"{path}: line {number}: found {found!r}, expected {expected}")


def _in_order(known: Iterable[str], found: Iterable[str]) -> list[str]:
    return [*known, *sorted(set(found) - set(known))]


def _short_name(folder: str) -> str:
    """The name of a data set from the folder of its original download, `yelp_review_full_csv`."""
    return folder.removesuffix("_csv").replace("_review_", "_")
