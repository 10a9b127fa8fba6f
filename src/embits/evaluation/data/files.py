"""Readers for the three kinds of data files: word pairs, analogy questions, labelled texts."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.errors import ReadError, named_if_missing

FilePath: TypeAlias = str | os.PathLike[str]
Questions: TypeAlias = list[tuple[str, str, str, str]]

MAX_ROWS = 100_000  # per classification file: the full Amazon training set has 3.6 million

# Names of columns in a header, in lower case without other characters than letters and digits.
_FIRST = ("word1", "w1", "first", "firstword", "worda", "a", "term1")
_SECOND = ("word2", "w2", "second", "secondword", "wordb", "b", "term2")
_SCORE = ("score", "similarity", "sim", "rating", "relatedness", "humanmean", "human", "mean",
          "averagescore", "average", "gold", "simlex999", "simlex")  # fmt: skip
_LABEL = ("label", "class", "classindex", "category", "target", "y")
_TEXT = ("text", "title", "description", "sentence", "review", "content", "question")
_MOST_NAMES = 100  # more names of classes than this, on half of the rows, are texts
_LABELLED = 'rows of a class and texts, such as "1","A title","The text"'


@dataclass(frozen=True)
class Pairs:
    """Pairs of words with human similarity scores.

    Attributes:
        first, second: The words.
        scores: Human scores, float64, on the data set's own scale.
    """

    first: list[str]
    second: list[str]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.scores)


class Labelled(NamedTuple):
    """The texts of one file and their classes, int64 from 0."""

    texts: list[str]
    classes: NDArray[np.int64]


class Split(NamedTuple):
    """A classification data set: training and test texts."""

    train: Labelled
    test: Labelled


def read_pairs(path: FilePath, delimiter: str | None = None) -> Pairs:
    """Read lines of `word word score`, separated by tabs, commas, semicolons or white space.

    Empty lines and lines that start with # are skipped. Where fields are separated by a delimiter,
    the first line may be a header. Columns that it names word1, word2 and score are used; otherwise
    the words come first, and the score is the first number after them.

    Args:
        path: A text, CSV or TSV file in UTF-8.
        delimiter: What separates the fields; None detects it.

    Raises:
        ReadError: A line is malformed; the message quotes it. Or the columns are not clear: all
            first words are numbers, or a header names no score and there are several numbers.
        OSError: The file cannot be opened.
    """
    rows: list[tuple[str, str, float]] = []
    first, second = 0, 1  # the columns of the words
    at: int | None = None  # that of the score
    header: ReadError | None = None
    for number, line in lines_of(path):
        fields, is_delimited = _pair_fields(line, delimiter)
        error = malformed(path, number, line, "word word score")
        if is_delimited and not rows and header is None and not _numbers(fields[2:]):
            header, at = error, _column(fields, _SCORE)
            named = _column(fields, _FIRST), _column(fields, _SECOND)
            first, second = (0, 1) if None in named else named  # type: ignore[assignment]
            continue
        found = _numbers(fields[max(first, second) + 1 :] if at is None else fields[at : at + 1])
        if len(fields) <= max(first, second) or not found or not math.isfinite(found[0]):
            raise error
        if not is_delimited and len(fields) != 3:
            raise error
        if header is not None and len(found) > 1:
            raise ReadError(
                f"{path}: line {number}: found several numbers, expected a column named score in "
                "the header"
            )
        rows.append((fields[first], fields[second], found[0]))
    if not rows:
        raise header or ReadError(f"{path}: found no pairs, expected lines of word word score")
    if len(_numbers(word for word, _, _ in rows)) == len(rows):
        raise ReadError(
            f"{path}: found numbers as first words, such as {rows[0][0]!r}: name the columns "
            "word1, word2 and score in the first line"
        )
    words, others, scores = (list(column) for column in zip(*rows, strict=True))
    return Pairs(words, others, np.array(scores))


def _pair_fields(line: str, delimiter: str | None) -> tuple[list[str], bool]:
    """The fields of a line, and whether a delimiter other than white space separates them."""
    if delimiter is None:
        delimiter = next((d for d in "\t,;" if line.count(d) > 1), None)
    if delimiter is None:
        return line.split(), False
    if len(delimiter) == 1:  # with quoted fields, as in CSV
        fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    else:
        fields = line.split(delimiter)
    return [field.strip() for field in fields], True


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    """The column with the first of these names that the header has."""
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header]
    return next((plain.index(name) for name in names if name in plain), None)


def _numbers(fields: Iterable[str]) -> list[float]:
    """The fields that are numbers."""
    found = []
    for text in fields:
        try:
            found.append(float(text))
        except ValueError:
            continue
    return found


def read_questions(path: FilePath) -> dict[str, Questions]:
    """Read analogy questions: `: section`, then lines of four words.

    Raises:
        ReadError: A line is malformed; the message quotes it.
        OSError: The file cannot be opened.
    """
    expected = "four words, after a line such as `: family`"
    sections: dict[str, Questions] = {}
    section: Questions | None = None
    for number, line in lines_of(path):
        if line.startswith(":"):
            section = sections.setdefault(line.lstrip(": ").strip(), [])
            continue
        fields = line.split()
        if len(fields) != 4 or section is None:
            raise malformed(path, number, line, expected)
        a, b, c, d = fields
        section.append((a, b, c, d))
    if not any(sections.values()):
        raise ReadError(f"{path}: found no questions, expected lines of {expected}")
    return sections


def read_split(folder: Path, most_rows: int = MAX_ROWS) -> Split:
    """Read `train.csv` and `test.csv` of a folder as `read_labelled` does."""
    read = [_read_texts(folder / f"{part}.csv", most_rows) for part in ("train", "test")]
    return Split(*_numbered(read))


def read_labelled(path: FilePath, most_rows: int = MAX_ROWS) -> Labelled:
    """Read rows such as "1","A title","The text": a class, then any number of texts.

    Classes are whole numbers from 0 or 1, or names, which are numbered in alphabetical order. There
    may be a header; it may name another column `label`.

    Args:
        path: A CSV file of quoted fields, as published by Zhang et al. 2015.
        most_rows: Larger files are subsampled to at most this many rows.

    Raises:
        ReadError: A row is malformed; the message quotes it.
        OSError: The file cannot be opened.
    """
    return _numbered([_read_texts(path, most_rows)])[0]


def _read_texts(path: FilePath, most_rows: int) -> tuple[list[str], list[str]]:
    """The texts of a file, and their classes as they are written."""
    first, second = [*(fields for _, fields in islice(_csv_rows(path), 2)), [""], [""]][:2]
    column = _column(first, _LABEL)
    is_name = not _is_whole(first[0]) and _is_whole(second[0])
    has_header = column is not None or _column(first, _TEXT) is not None or is_name
    column = column or 0
    step = max(1, -(-sum(1 for _ in _csv_rows(path)) // most_rows))
    texts, labels = [], []
    for row, (number, fields) in enumerate(_csv_rows(path), -has_header):
        if row < 0 or row % step:
            continue
        if len(fields) < 2 or len(fields) <= column or not fields[column].strip():
            raise malformed(path, number, ",".join(fields), _LABELLED)
        labels.append(fields[column].strip())
        # Zhang et al. escape line breaks inside a text as \n and some characters with a backslash.
        text = " ".join(fields[:column] + fields[column + 1 :])
        texts.append(text.replace("\\n", " ").replace("\\", " "))
    if not texts:
        raise ReadError(f"{path}: found no rows, expected {_LABELLED}")
    if len(set(labels)) > max(_MOST_NAMES, len(labels) // 2) and not all(map(_is_whole, labels)):
        raise ReadError(
            f"{path}: found {len(set(labels)):,} classes in {len(labels):,} rows: name the column "
            "of the classes label in the first line"
        )
    return texts, labels


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _numbered(read: Sequence[tuple[list[str], list[str]]]) -> list[Labelled]:
    """Texts with a number for each class: those from 0 or 1 keep their order, names are sorted."""
    names = sorted({label for _, labels in read for label in labels})
    numbers = {name: place for place, name in enumerate(names)}
    if all(map(_is_whole, names)):
        first = min(1, *map(int, names))
        numbers = {name: int(name) - first for name in names}
    return [
        Labelled(texts, np.array([numbers[label] for label in labels], dtype=np.int64))
        for texts, labels in read
    ]


def _csv_rows(path: FilePath) -> Iterator[tuple[int, list[str]]]:
    with (
        named_if_missing(path),
        Path(path).open(encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        rows = csv.reader(line.replace("\0", "") for line in file)
        try:
            for fields in rows:
                if fields:
                    yield rows.line_num, fields
        except csv.Error as error:
            raise ReadError(f"{path}: line {rows.line_num}: {error}") from None


def lines_of(path: FilePath, *, has_comments: bool = True) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not empty; lines that start with # are comments."""
    with named_if_missing(path), Path(path).open(encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, 1):
                line = line.strip()
                if line and not (has_comments and line.startswith("#")):
                    yield number, line
        except UnicodeDecodeError:
            raise ReadError(f"{path}: found bytes that are not UTF-8, expected text") from None


def malformed(path: FilePath, number: int, line: str, expected: str) -> ReadError:
    """The error of a line: what was found, and what was expected."""
    found = line if len(line) <= 40 else line[:39] + "…"
    return ReadError(f"{path}: line {number}: found {found!r}, expected {expected}")
