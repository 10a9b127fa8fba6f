"""The words that belong to a matrix: a file beside it, or what the caller gives."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from embits.readers.source import Source

_SUFFIXES = (".words", ".txt", ".vocab", ".tsv", ".json", ".parquet")
_STEMS = ("words", "vocab", "vocabulary", "index_to_key")

Words = Sequence[str] | str | os.PathLike[str]


def words_for(source: Source, n_rows: int, words: Words | None) -> Sequence[str] | None:
    """The words of a matrix with `n_rows` rows, or None when nothing names its rows."""
    if words is not None and not isinstance(words, str | os.PathLike):
        return words
    if words is not None:
        return read_words(Source(Path(words)))
    beside = _file_beside(source.path, n_rows)
    return None if beside is None else read_words(Source(beside))


def read_words(source: Source) -> list[str]:
    """The words in a file: one a line, a JSON list or `{word: row}`, or a Parquet column."""
    try:
        head = source.path.open("rb").read(4)
        if head == b"PAR1":
            from embits.readers.parquet import read_word_column

            return read_word_column(source)
        text = source.path.read_text("utf-8-sig")
    except OSError as error:
        raise source.refusal(f"no readable file ({error.strerror})", "a file of words") from error
    except UnicodeDecodeError as error:
        raise source.refusal("a word that is not UTF-8", "UTF-8", f"byte {error.start}") from error
    if source.path.suffix == ".json":
        return _words_in_json(source, text)
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    return _column_of_names([line.split("\t") for line in lines]) if "\t" in text else lines


def _column_of_names(rows: list[list[str]]) -> list[str]:
    """The first column in which no two rows are the same: `label<TAB>text` is named by its text."""
    for column in range(min(map(len, rows))):
        names = [row[column] for row in rows]
        if len(set(names)) == len(names):
            return names
    return ["\t".join(row) for row in rows]


def _words_in_json(source: Source, text: str) -> list[str]:
    try:
        data: Any = json.loads(text)
    except ValueError as error:
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


def _file_beside(path: Path, n_rows: int) -> Path | None:
    """The words file by the same stem, or by a usual name, or the one Parquet file that fits."""
    names = [path.stem + suffix for suffix in _SUFFIXES]
    names += [stem + suffix for stem in _STEMS for suffix in _SUFFIXES]
    for name in names:
        if name != path.name and (beside := path.with_name(name)).is_file():
            return beside
    tables = [file for file in path.parent.glob("*.parquet") if file != path]
    if len(tables) != 1:
        return None
    from embits.readers.parquet import has_word_column

    return tables[0] if has_word_column(Source(tables[0]), n_rows) else None
