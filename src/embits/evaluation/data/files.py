"""Readers for the three kinds of data files: word pairs, analogy questions, labelled texts."""

from __future__ import annotations

import contextlib
import csv
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.errors import ReadError, named_if_missing

Questions: TypeAlias = list[tuple[str, str, str, str]]

MAX_ROWS = 100_000  # per classification file: the full Amazon training set has 3.6 million

_LABELLED = 'rows of a class number and texts, such as "1","A title","The text"'


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


@dataclass(frozen=True)
class Labelled:
    """The texts of one file and their classes, int64 from 0."""

    texts: list[str]
    classes: NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """A classification data set: training and test texts."""

    train: Labelled
    test: Labelled


def read_pairs(path: str | os.PathLike[str], delimiter: str | None = None) -> Pairs:
    """Read lines of `word word score`, separated by tabs, commas, semicolons or white space.

    Empty lines and lines that start with # are skipped. Where fields are separated by a delimiter,
    the first line may be a header, and the score is the first number after the two words.

    Args:
        path: A text, CSV or TSV file in UTF-8.
        delimiter: What separates the fields; None detects it.

    Raises:
        ReadError: A line is malformed; the message quotes it.
        OSError: The file cannot be opened.
    """
    first: list[str] = []
    second: list[str] = []
    scores: list[float] = []
    header: ReadError | None = None
    for number, line in lines_of(path):
        fields, is_delimited = _pair_fields(line, delimiter)
        value = _score(fields) if is_delimited or len(fields) == 3 else None
        if value is None or not math.isfinite(value):
            error = malformed(path, number, line, "word word score")
            if value is None and is_delimited and header is None and not scores:
                header = error
                continue
            raise error
        first.append(fields[0])
        second.append(fields[1])
        scores.append(value)
    if not scores:
        nothing = ReadError(f"{path}: found no pairs, expected lines of word word score")
        raise header or nothing
    return Pairs(first, second, np.array(scores))


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


def _score(fields: list[str]) -> float | None:
    """The first number after two words; None if there is none."""
    for text in fields[2:]:
        with contextlib.suppress(ValueError):
            return float(text)
    return None


def read_questions(path: str | os.PathLike[str]) -> dict[str, Questions]:
    """Read analogy questions: `: section`, then lines of four words.

    Raises:
        ReadError: A line is malformed; the message quotes it.
        OSError: The file cannot be opened.
    """
    sections: dict[str, Questions] = {}
    section: Questions | None = None
    for number, line in lines_of(path):
        if line.startswith(":"):
            section = sections.setdefault(line.lstrip(": ").strip(), [])
            continue
        fields = line.split()
        if len(fields) != 4 or section is None:
            raise malformed(path, number, line, "four words, after a line such as `: family`")
        a, b, c, d = fields
        section.append((a, b, c, d))
    if not any(sections.values()):
        raise ReadError(
            f"{path}: found no questions, expected a line such as `: family`, then lines of four "
            "words"
        )
    return sections


def read_split(folder: Path, most_rows: int = MAX_ROWS) -> Split:
    """Read `train.csv` and `test.csv` of a folder, each as `read_labelled` does."""
    return Split(
        read_labelled(folder / "train.csv", most_rows),
        read_labelled(folder / "test.csv", most_rows),
    )


def read_labelled(path: str | os.PathLike[str], most_rows: int = MAX_ROWS) -> Labelled:
    """Read rows such as "1","A title","The text", without a header; classes start at 1.

    Args:
        path: A CSV file of quoted fields, as published by Zhang et al. 2015.
        most_rows: Of a longer file, at most this many evenly spaced rows are used.

    Raises:
        ReadError: A row is malformed; the message quotes it.
        OSError: The file cannot be opened.
    """
    step = max(1, -(-sum(1 for _ in _csv_rows(path)) // most_rows))
    texts, classes = [], []
    for row, (number, fields) in enumerate(_csv_rows(path)):
        if row % step:
            continue
        if len(fields) < 2 or not fields[0].isascii() or not fields[0].isdigit():
            header = " (a header is not allowed)" if row == 0 else ""
            raise malformed(path, number, ",".join(fields), f"{_LABELLED}{header}")
        if int(fields[0]) < 1:
            raise malformed(path, number, ",".join(fields), "classes that start at 1, not at 0")
        classes.append(int(fields[0]) - 1)
        # Zhang et al. escape line breaks inside a text as \n and some characters with a backslash.
        texts.append(" ".join(fields[1:]).replace("\\n", " ").replace("\\", " "))
    if not texts:
        raise ReadError(f"{path}: found no rows, expected {_LABELLED}")
    return Labelled(texts, np.array(classes, dtype=np.int64))


def _csv_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    with (
        named_if_missing(path),
        Path(path).open(encoding="utf-8", errors="replace", newline="") as file,
    ):
        rows = csv.reader(line.replace("\0", "") for line in file)
        try:
            for fields in rows:
                if fields:
                    yield rows.line_num, fields
        except csv.Error as error:
            raise ReadError(f"{path}: line {rows.line_num}: {error}") from None


def lines_of(
    path: str | os.PathLike[str], *, has_comments: bool = True
) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not empty; lines that start with # are comments."""
    with named_if_missing(path), Path(path).open(encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, 1):
                line = line.strip()
                if line and not (has_comments and line.startswith("#")):
                    yield number, line
        except UnicodeDecodeError:
            raise ReadError(f"{path}: found bytes that are not UTF-8, expected text") from None


def malformed(path: str | os.PathLike[str], number: int, line: str, expected: str) -> ReadError:
    """The error of a line: what was found, and what was expected."""
    found = line if len(line) <= 40 else line[:39] + "…"
    return ReadError(f"{path}: line {number}: found {found!r}, expected {expected}")
