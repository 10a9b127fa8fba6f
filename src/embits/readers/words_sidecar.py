"""The words of a matrix: given by the caller, or in a file beside it."""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from embits.readers import magic
from embits.readers.source import Source
from embits.words.run import WordRun

_SUFFIXES = (".words", ".txt", ".vocab", ".tsv", ".json", ".parquet")
_USUAL_STEMS = ("words", "vocab", "vocabulary", "tokenizer")
_JSON = re.compile(rb'\s*[\[{]\s*"')
_NUMBER = re.compile(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?")
_LINES_TO_LOOK_AT = 100
_BYTES_AT_ONCE = 1 << 20


def words_for(source: Source, n_rows: int) -> Sequence[str] | None:
    """The words of a matrix with `n_rows` rows, or None if there are none."""
    if isinstance(source.words, str | os.PathLike):
        return read_words(Source(Path(source.words)))
    if source.words is not None:
        return source.words
    path = source.path
    for suffix in _SUFFIXES:
        if path.suffix != suffix and (beside := path.with_suffix(suffix)).is_file():
            return read_words(Source(beside))
    # A file with a common name may belong to something else: it is used only if it fits.
    for beside in _usual_files(path):
        found = read_words(Source(beside))
        if len(found) == n_rows:
            return found
        source.warn(f"{beside.name} beside it has {len(found)} words for {n_rows} rows: not used")
    return None


def read_words(source: Source) -> Sequence[str]:
    """The words in a file: one a line, a JSON list or `{word: row}`, or a Parquet column."""
    try:
        with source.path.open("rb") as file:
            content = file.read(len(magic.PARQUET))
            if content == magic.PARQUET:
                from embits.readers.parquet import read_word_column

                return read_word_column(source)
            content += file.read()
            _check_utf8(content)
    except OSError as error:
        raise source.read_error(
            f"no readable file ({error.strerror})", "a file of words"
        ) from error
    except UnicodeDecodeError as error:
        raise source.read_error(
            "a word that is not UTF-8", "UTF-8", f"byte {error.start}"
        ) from error
    content = content.removeprefix(magic.BYTE_ORDER_MARK)
    if _JSON.match(content):
        return _words_in_json(source, content.decode())
    lines: Sequence[str] = WordRun.from_lines(content) if content.removesuffix(b"\n") else [""]
    if b"\t" in content:
        lines = _column_of_names(list(lines))
    return _without_numbers(lines)


def _check_utf8(content: bytes) -> None:
    """Decode in pieces: one letter outside Latin-1 makes a decoded piece twice as large."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _BYTES_AT_ONCE):
        try:
            decoder.decode(content[start : start + _BYTES_AT_ONCE])
        except UnicodeDecodeError as error:
            error.start += start
            raise
    decoder.decode(b"", final=True)


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
    """The first tab-separated column without repeats: the text of `label<TAB>text`."""
    rows = [line.split("\t") for line in lines]
    for column in range(min(map(len, rows))):
        names = [row[column] for row in rows]
        if len(set(names)) == len(names):
            return names
    return lines


def _without_numbers(lines: Sequence[str]) -> Sequence[str]:
    """The words alone, if each is followed by its count or by its vector."""
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
        raise source.read_error(f"broken JSON ({error})", "a list of words") from error
    if isinstance(data, dict) and isinstance(data.get("model"), dict):
        data = data["model"].get("vocab")  # a Hugging Face tokenizer.json
    if isinstance(data, dict) and all(isinstance(row, int) for row in data.values()):
        words = sorted(data, key=data.__getitem__)
        if [data[word] for word in words] != list(range(len(words))):
            raise source.read_error("rows with gaps or repeats", f"0 to {len(words) - 1}")
        return words
    if isinstance(data, list) and all(isinstance(word, str) for word in data):
        return data
    raise source.read_error("other JSON", "a list of words, or an object {word: row}")
