"""The words that belong to a matrix: what the caller gives, or a file beside it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from embits.readers.source import Source

_SUFFIXES = (".words", ".txt", ".vocab", ".tsv", ".json", ".parquet")
_USUAL_STEMS = ("words", "vocab", "vocabulary", "tokenizer")
_JSON = re.compile(r'\s*[\[{]\s*"')
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?")
_LINES_TO_LOOK_AT = 100

Words = Sequence[str] | str | os.PathLike[str]


def words_for(source: Source, n_rows: int, words: Words | None) -> Sequence[str] | None:
    """The words of a matrix with `n_rows` rows, or None when nothing names its rows."""
    if isinstance(words, str | os.PathLike):
        return read_words(Source(Path(words)))
    if words is not None:
        return words
    path = source.path
    for suffix in _SUFFIXES:
        if path.suffix != suffix and (beside := path.with_suffix(suffix)).is_file():
            return read_words(Source(beside))
    # A file by a usual name may belong to something else: it has to fit.
    for beside in _usual_files(path):
        found = read_words(Source(beside))
        if len(found) == n_rows:
            return found
        source.warn(f"{beside.name} beside it has {len(found)} words for {n_rows} rows: not used")
    return None


def read_words(source: Source) -> list[str]:
    """The words in a file: one a line, a JSON list or `{word: row}`, or a Parquet column."""
    try:
        with source.path.open("rb") as file:
            content = file.read(4)
            if content == b"PAR1":
                from embits.readers.parquet import read_word_column

                return read_word_column(source)
            text = (content + file.read()).decode("utf-8-sig")
    except OSError as error:
        raise source.refusal(f"no readable file ({error.strerror})", "a file of words") from error
    except UnicodeDecodeError as error:
        raise source.refusal("a word that is not UTF-8", "UTF-8", f"byte {error.start}") from error
    if _JSON.match(text):
        return _words_in_json(source, text)
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    return _without_numbers(_column_of_names(lines))


def _usual_files(path: Path) -> Iterator[Path]:
    for stem in _USUAL_STEMS:
        for suffix in _SUFFIXES:
            if (beside := path.with_name(stem + suffix)).is_file() and beside != path:
                yield beside
    tables = [file for file in path.parent.glob("*.parquet") if file != path]
    if len(tables) == 1:
        from embits.readers.parquet import has_word_column

        if has_word_column(Source(tables[0])):
            yield tables[0]


def _column_of_names(lines: list[str]) -> list[str]:
    """The first tab-separated column that tells all rows apart: the text of `label<TAB>text`."""
    rows = [line.split("\t") for line in lines]
    for column in range(min(map(len, rows))):
        names = [row[column] for row in rows]
        if len(set(names)) == len(names):
            return names
    return lines


def _without_numbers(lines: list[str]) -> list[str]:
    """The words alone, where each is followed by its count or by its vector."""
    counts = {_numbers_at_end(line) for line in lines[:_LINES_TO_LOOK_AT]}
    n = counts.pop()
    return lines if counts or n == 0 else [line.rsplit(maxsplit=n)[0] for line in lines]


def _numbers_at_end(line: str) -> int:
    fields = re.split(r"[ \t]+", line)
    count = 0
    while count < len(fields) - 1 and _NUMBER.fullmatch(fields[-1 - count]):
        count += 1
    return count


def _words_in_json(source: Source, text: str) -> list[str]:
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise source.refusal(f"broken JSON ({error})", "a list of words") from error
    if isinstance(data, dict) and isinstance(data.get("model"), dict):
        data = data["model"].get("vocab")  # a Hugging Face tokenizer.json
    if isinstance(data, dict) and all(isinstance(row, int) for row in data.values()):
        words = sorted(data, key=data.__getitem__)
        if [data[word] for word in words] != list(range(len(words))):
            raise source.refusal("rows with gaps or repeats", f"0 to {len(words) - 1}")
        return words
    if isinstance(data, list) and all(isinstance(word, str) for word in data):
        return data
    raise source.refusal("other JSON", "a list of words, or an object {word: row}")
