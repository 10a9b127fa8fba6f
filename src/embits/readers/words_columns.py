"""Files beside a matrix whose lines hold more than a word: counts, vectors, labels.

An id may end in a number or contain a tab. So a part of the lines is left out only if the name of
the file and all its lines agree on what it is, and the words that remain are all different.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LINES_TO_TRY = 100
_VOCABULARIES = ("vocab", "vocabulary")

Split = Callable[[Sequence[str]], list[str] | None]


def column_of_words(path: Path, lines: Sequence[str], dims: int) -> tuple[list[str] | None, str]:
    """The words in the lines of a file and what was left out; None if the lines are the words.

    Args:
        path: The file, whose name says which kinds of lines are looked for.
        lines: Its lines.
        dims: The columns of the matrix that the file lies beside.
    """
    splits: list[tuple[Split, str]] = []
    if path.suffix == ".vocab" or path.stem in _VOCABULARIES:
        splits.append((_before_counts, "the counts after the words are left out"))
    if path.suffix == ".tsv":
        splits.append((_column_without_repeats, "the column without repeats is used as the words"))
    if dims > 1:
        splits.append(
            (lambda part: _before_vectors(part, dims), "the vectors after the words are left out")
        )
    for split, what in splits:
        if split(lines[:_LINES_TO_TRY]) is None:
            continue
        words = split(lines)
        if words is not None and len(set(words)) == len(words):
            return words, what
    return None, ""


def _before_counts(lines: Sequence[str]) -> list[str] | None:
    """The words of `word count`, most frequent first."""
    pairs = [line.rsplit(maxsplit=1) for line in lines]
    if not all(len(pair) == 2 and pair[1].isdecimal() for pair in pairs):
        return None
    counts = [int(pair[1]) for pair in pairs]
    descending = all(left >= right for left, right in pairwise(counts))
    return [pair[0] for pair in pairs] if descending else None


def _before_vectors(lines: Sequence[str], dims: int) -> list[str] | None:
    """The words of `word number ... number`, with `dims` numbers."""
    words = []
    for line in lines:
        word, *numbers = line.rsplit(maxsplit=dims)
        if len(numbers) != dims or not all(map(_NUMBER.fullmatch, numbers)):
            return None
        words.append(word)
    return words


def _column_without_repeats(lines: Sequence[str]) -> list[str] | None:
    """The first tab-separated column without repeats: the text of `label<TAB>text`."""
    rows = [line.split("\t") for line in lines]
    widths = set(map(len, rows))
    if len(widths) != 1 or widths == {1}:
        return None
    for column in zip(*rows, strict=True):
        if len(set(column)) == len(column):
            return list(column)
    return None
