"""The words of a matrix: given by the caller, or in a file beside it."""

from __future__ import annotations

import codecs
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from embits.arrays import blocks
from embits.bounded_json import Limits, parse_json
from embits.errors import EmbitsError, InputError, ReadError
from embits.ids.vocabulary import WordRun
from embits.readers.source import BYTE_ORDER_MARK, PARQUET, Source
from embits.remote import Fetched
from embits.vectors import check_unique, refuse_empty_ids

_SUFFIXES = (".words", ".txt", ".vocab", ".tsv", ".json", ".parquet")
_USUAL_STEMS = ("words", "vocab", "vocabulary", "tokenizer")
_JSON = re.compile(rb'\s*[\[{]\s*"')
_BYTES_AT_ONCE = 1 << 20
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LINES_TO_TRY = 100
NO_IDS = "--words FILE (words=) names another file, --no-ids (ids=False) none"
_LOG = logging.getLogger("embits")  # the command line prints it as notes


class MatrixWords(NamedTuple):
    """The words of a matrix, or None, and the file that they were read from, if any."""

    words: Sequence[str] | None
    file: Path | None = None


def words_for(source: Source, n_rows: int, dims: int) -> MatrixWords:
    """The words of a matrix of shape (n_rows, dims)."""
    if isinstance(source.words, str | os.PathLike):
        path = Path(source.words)
        return MatrixWords(read_words(path, source.ids or None, n_rows, source.encoding), path)
    if source.words is not None or source.ids is False:
        return MatrixWords(source.words)
    from embits.readers.parquet import may_hold_ids

    for beside, is_namesake in _files_beside(source.path):
        try:
            if beside.suffix == ".parquet" and not may_hold_ids(beside):
                continue
            words = _read_beside(beside, n_rows, dims)
            if not is_namesake:  # it may belong to something else
                if len(words) != n_rows:
                    raise InputError(f"{len(words)} words for {n_rows} rows")
                refuse_empty_ids(words)
                check_unique(words)
        except EmbitsError as error:
            if is_namesake:
                raise ReadError(str(error), hint=NO_IDS) from error
            source.warn(f"{beside.name} beside it is not used: {error}")
            continue
        if is_namesake or beside.stem in _USUAL_STEMS:
            _LOG.info("ids from %s", beside.name)
        else:  # it may be a table of something else
            source.warn(f"ids from {beside.name} (--words FILE, or words=, names another file)")
        return MatrixWords(words, beside)
    return MatrixWords(None)


def words_beside(path: Path) -> Sequence[str] | None:
    """The words in the file of the same name that ends in `.words`; None if there is none."""
    beside = path.with_suffix(".words")
    return read_words(beside) if beside.is_file() else None


def read_words(
    path: Path,
    column: str | None = None,
    n_rows: int | None = None,
    encoding: str = "utf-8",
    fetched: Fetched | None = None,
) -> Sequence[str]:
    """The words in a file: whole lines, a JSON list or `{word: row}`, or a column of Parquet."""
    source = Source(path, ids=column, fetched=fetched)
    source.check_regular()
    most = sys.maxsize if n_rows is None else (16 << 20) + 4096 * n_rows  # words may be texts
    if source.size > most:
        raise source.read_error(f"{source.size} bytes for {n_rows} rows", "one word per row")
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_AT_ONCE)
            if content.startswith(PARQUET):
                from embits.readers.parquet import read_id_column

                return read_id_column(source)
            is_json = path.suffix != ".words" and _JSON.match(content.removeprefix(BYTE_ORDER_MARK))
            parts = [content]
            while not is_json and len(parts[-1]) == _BYTES_AT_ONCE:
                if b"\n" not in parts[-1]:
                    found = f"a line of over {_BYTES_AT_ONCE:,} bytes"
                    raise source.read_error(found, "one word per line")
                parts.append(file.read(_BYTES_AT_ONCE))
            content = b"".join([*parts, file.read()])
            if encoding != "utf-8":
                content = content.decode(encoding).encode()
            _check_utf8(content)
    except OSError as error:
        found = f"no readable file ({error.strerror})"
        raise source.read_error(found, "a file of words") from error
    except UnicodeDecodeError as error:
        found, name = f"a word that is not {encoding.upper()}", encoding.upper()
        expected = f"{name} (encoding=, --encoding names another)"
        raise source.read_error(found, expected, f"byte {error.start}") from error
    content = content.removeprefix(BYTE_ORDER_MARK)
    if is_json:
        return _words_in_json(source, content, n_rows)
    return WordRun.from_lines(content) if content.removesuffix(b"\n") else [""] if content else []


def _files_beside(path: Path) -> Iterator[tuple[Path, bool]]:
    """Files that may hold the words of a matrix, and whether they have its name."""
    tables = [each for each in path.parent.glob("*.parquet") if each != path and each.is_file()]
    for stem in (path.stem, *_USUAL_STEMS):
        for suffix in _SUFFIXES:
            beside = path.with_name(stem + suffix)
            if beside != path and beside.is_file():
                yield beside, stem == path.stem
    if len(tables) == 1 and tables[0].stem not in (path.stem, *_USUAL_STEMS):
        yield tables[0], False


def _read_beside(beside: Path, n_rows: int, dims: int) -> Sequence[str]:
    """The words in a file beside a matrix; counts, vectors or other columns are left out."""
    words = read_words(beside, None, n_rows)
    if not isinstance(words, WordRun) or beside.suffix == ".words":
        return words
    is_vocabulary = beside.suffix == ".vocab" or beside.stem in ("vocab", "vocabulary")
    before_vectors = partial(_before_numbers, n=dims)
    for may_be, split, what in (
        (is_vocabulary, _before_counts, "the counts after the words are left out"),
        (
            beside.suffix == ".tsv",
            _unique_column,
            "the column without repeats is used as the words",
        ),
        (dims > 1, before_vectors, "the vectors after the words are left out"),
    ):
        # An id may end in a number or contain a tab: all lines and the name of the file must agree.
        part = split(words) if may_be and split(words[:_LINES_TO_TRY]) else None
        if part is not None and len(set(part)) == len(part):
            Source(beside).warn(f"{what} (--words FILE, or words=, reads whole lines)")
            return part
    return words


def _check_utf8(content: bytes) -> None:
    """Decode in pieces: one letter outside Latin-1 makes a decoded piece twice as large."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for part in blocks(len(content), _BYTES_AT_ONCE):
        try:
            decoder.decode(content[part])
        except UnicodeDecodeError as error:
            error.start += part.start
            raise
    decoder.decode(b"", final=True)


def _words_in_json(source: Source, text: bytes, n_rows: int | None) -> list[str]:
    limits = Limits(sys.maxsize, 100_000 + 16 * (n_rows or 1 << 20), 10_000)  # of a tokenizer
    try:
        data: Any = parse_json(text, limits)
    except ValueError as error:
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


def _before_counts(lines: Sequence[str]) -> list[str] | None:
    """The words of `word count`, most frequent first."""
    words = _before_numbers(lines, 1, re.compile(r"\d{1,18}").fullmatch)
    counts = [int(line.rsplit(maxsplit=1)[1]) for line in lines] if words else []
    return words if counts == sorted(counts, reverse=True) else None


def _before_numbers(
    lines: Sequence[str], n: int, is_number: Callable[[str], object] = _NUMBER.fullmatch
) -> list[str] | None:
    """The words of `word number ... number`, with `n` numbers."""
    parts = [line.rsplit(maxsplit=n) for line in lines]
    fit = all(len(part) == n + 1 and all(map(is_number, part[1:])) for part in parts)
    return [part[0] for part in parts] if fit else None


def _unique_column(lines: Sequence[str]) -> list[str] | None:
    """The first tab-separated column without repeats: the text of `label<TAB>text`."""
    rows = [line.split("\t") for line in lines]
    if len(rows[0]) == 1 or len(set(map(len, rows))) != 1:
        return None
    columns = map(list, zip(*rows, strict=True))
    return next((column for column in columns if len(set(column)) == len(column)), None)
