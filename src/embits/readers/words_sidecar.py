"""The words of a matrix: given by the caller, or in a file beside it."""

from __future__ import annotations

import codecs
import itertools
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from embits.errors import MissingFileError
from embits.ids.vocabulary import WordRun
from embits.readers import magic
from embits.readers.source import Source
from embits.readers.words_columns import column_of_words

_SUFFIXES = (".words", ".txt", ".vocab", ".tsv", ".json", ".parquet")
_USUAL_STEMS = ("words", "vocab", "vocabulary", "tokenizer")
_JSON = re.compile(rb'\s*[\[{]\s*"')
_BYTES_AT_ONCE = 1 << 20
_LOG = logging.getLogger("embits")  # the command line prints it as notes


class FoundWords(NamedTuple):
    """The words of a matrix, or None, and the file that they were read from, if any."""

    words: Sequence[str] | None
    file: Path | None = None


def words_for(source: Source, n_rows: int, dims: int) -> FoundWords:
    """The words of a matrix of shape (n_rows, dims).

    Raises:
        ReadError: The file of words cannot be read, or has another number of words.
    """
    if isinstance(source.words, str | os.PathLike):
        given = Source(Path(source.words))
        return _fitting(source, _not_empty(given, read_words(given)), given.path, n_rows)
    if source.words is not None:
        return FoundWords(source.words)
    path = source.path
    for suffix in _SUFFIXES:
        if path.suffix == suffix or not (beside := path.with_suffix(suffix)).is_file():
            continue
        if not _is_of_codes(beside):
            _LOG.info("ids from %s", beside.name)
            return _fitting(source, _read_beside(Source(beside), dims), beside, n_rows)
    # A file with a common name may belong to something else: it is used only if it fits.
    for beside in itertools.filterfalse(_is_of_codes, _usual_files(path)):
        found = _read_beside(Source(beside), dims)
        if len(found) == n_rows:
            _report_found(source, beside)
            return FoundWords(found, beside)
        source.warn(f"{beside.name} beside it has {len(found)} words for {n_rows} rows: not used")
    return FoundWords(None)


def _report_found(source: Source, beside: Path) -> None:
    """Log a usual name; warn of any other, which may be a table of something else."""
    if beside.stem in _USUAL_STEMS:
        _LOG.info("ids from %s", beside.name)
    else:
        source.warn(f"ids from {beside.name} (--words FILE, or words=, names another file)")


def _not_empty(source: Source, words: Sequence[str]) -> Sequence[str]:
    """The words.

    Raises:
        ReadError: One is empty.
    """
    empty = next((row for row, word in enumerate(words) if not word), None)
    if empty is not None:
        raise source.read_error("an empty word", "one word per line", f"line {empty + 1}")
    return words


def _is_of_codes(beside: Path) -> bool:
    """Whether a file is a Parquet table of codes: its ids belong to those, not to a matrix."""
    if beside.suffix != ".parquet":
        return False
    from embits.readers.parquet import has_codes

    return has_codes(Source(beside))


def _fitting(source: Source, words: Sequence[str], file: Path, n_rows: int) -> FoundWords:
    """The words of a file, if there is one for each row that is read."""
    wanted = source.rows_wanted(n_rows)
    if len(words) < wanted or (len(words) > wanted and source.limit is None):
        raise Source(file).read_error(
            f"{len(words)} words for {wanted} rows of {source.path}",
            "one word per row; name another file with --words, or words=",
        )
    return FoundWords(words, file)


def read_words(source: Source) -> Sequence[str]:
    """The words in a file: whole lines, a JSON list or `{word: row}`, or a Parquet column."""
    try:
        with source.path.open("rb") as file:
            content = file.read(len(magic.PARQUET))
            if content == magic.PARQUET:
                from embits.readers.parquet import read_word_column

                return read_word_column(source)
            content += file.read()
            _check_utf8(content)
    except FileNotFoundError:
        raise MissingFileError(source.path) from None
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
    return WordRun.from_lines(content) if content.removesuffix(b"\n") else [""] if content else []


def _read_beside(source: Source, dims: int) -> Sequence[str]:
    """The words in a file that was found beside a matrix with `dims` columns.

    Lines are words as a whole. Only where a line clearly holds more, a part of it is left out.
    """
    words = read_words(source)
    if not isinstance(words, WordRun) or source.path.suffix == ".words":
        return words
    part, what = column_of_words(source.path, words, dims)
    if part is None:
        return words
    source.warn(f"{what} (--words FILE, or words=, reads whole lines)")
    return part


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
