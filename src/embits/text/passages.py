"""Passages of texts: read from files, and cut where they are long."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from embits.bounded_json import Limits, parse_json
from embits.errors import InputError, ReadError
from embits.readers.source import Source, Stream

SUFFIXES = ".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".md"
WORDS, OVERLAP = 256, 32
"""Most words of a passage, and how many of them the next one repeats."""

_WORD = re.compile(r"\S+")
_IDS = "id", "_id"
_NUMBER = r"-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?([eE][+-][0-9]+)?"  # not 007, +49 or 1_000
_NUMBERS = {int: re.compile("0|-?[1-9][0-9]{0,17}"), float: re.compile(_NUMBER)}
_PART = re.compile(r"#[0-9]+\Z")
_RECORD = Limits(1 << 26, 1_000_000, 10_000)  # a line
_OWN = {"id": "id_", "lengths": "lengths_", "floats": "floats_", "cells": "cells_"}


class Passage(NamedTuple):
    """A text, or a part of a long one."""

    id: str  # of a part: ID#0, ID#1, …
    text: str
    fields: dict[str, Any]  # what else its record has, such as the title
    place: str = ""  # the file, and the line
    is_numbered: bool = False  # whether the id has the number of the line, which may change
    written: dict[str, str] | None = None  # the fields as a CSV file has them

    @property
    def indexed(self) -> str:
        """What is searched: the title, where there is one, and the text."""
        title = self.fields.get("title")
        return f"{title} {self.text}" if isinstance(title, str) and title else self.text


def read_passages(paths: list[Path]) -> Iterator[Passage]:
    """The passages of files and of all files in folders, in order; ReadError names a line."""
    seen: set[str] = set()
    for path in paths:
        for file, name in _files(path):
            for each in _records(file, name):
                if each.id in seen:
                    raise InputError(f"{each.place}: the id {each.id!r} is given twice")
                seen.add(each.id)
                parts = split(each.text)
                ids = [f"{each.id}#{n}" for n in range(len(parts))] if len(parts) > 1 else [each.id]
                yield from (each._replace(id=i, text=x) for i, x in zip(ids, parts, strict=True))


def text_of(id: str) -> str:
    """The id of the text that a passage is of."""
    return _PART.sub("", id)


def split(text: str) -> list[str]:
    """A text as passages of at most `WORDS` words, cut after a sentence where one ends."""
    words = [found.span() for found in _WORD.finditer(text)]
    if len(words) <= WORDS:
        return [text.strip()]
    parts, start = [], 0
    while True:
        end = min(start + WORDS, len(words))
        if end < len(words):  # back to the end of a sentence in the last half
            ends = range(end, start + WORDS // 2, -1)
            end = next((e for e in ends if text[words[e - 1][1] - 1] in ".!?。"), end)
        parts.append(text[words[start][0] : words[end - 1][1]])
        if end == len(words):
            return parts
        start = end - OVERLAP


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    """Files of texts, and their names for ids: in a folder, the paths below it."""
    if not path.is_dir():
        yield path, path.name
        return
    for file in sorted(path.rglob("*")):
        below = file.relative_to(path)
        is_hidden = any(part.startswith(".") for part in below.parts)
        if file.name.removesuffix(".gz").lower().endswith(SUFFIXES) and not is_hidden:
            yield file, below.as_posix()


def _records(path: Path, name: str) -> Iterator[Passage]:
    """Each record of a file as one passage."""
    text = _decoded(path)
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    if kind in (".txt", ".md"):
        yield Passage(name, text, {}, str(path))
        return
    if kind in (".csv", ".tsv"):
        how: Any = {"delimiter": "\t" if kind == ".tsv" else ",", "strict": True}
        rows, starts = csv.reader(io.StringIO(text, newline=""), **how), 1
        records = []
        csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a field may be a long text
        try:
            header = next(rows, [])
            if twice := [each for each in header if header.count(each) > 1]:
                raise csv.Error(f"the header names the column {twice[0]!r} twice")
            if "" in header:
                raise csv.Error(f"column {header.index('') + 1} of the header has no name")
            while (starts := rows.line_num + 1) and (row := next(rows, None)) is not None:
                if len(row) > len(header):
                    raise csv.Error(f"{len(row)} fields, but the header has {len(header)}")
                if any(row):
                    records.append((rows.line_num, dict(zip(header, row, strict=False))))
        except csv.Error as error:
            raise ReadError(f"{path}, line {starts}: {error}") from None
        typed = {key: _number_type([each.get(key, "") for _, each in records]) for key in header}
        for line, record in records:
            fields = {k: typed[k](v) if v else None for k, v in record.items()}
            fields |= {k: record[k] for k in ("text", "title", *_IDS) if k in record}
            made = _record(path, name, line, fields)
            yield made._replace(written={_OWN.get(k, k): v for k, v in record.items()})
        return
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip():
            try:
                record = parse_json(content, _RECORD)
                if "\\u" in content:  # an escape may be half of a surrogate pair
                    json.dumps(record, ensure_ascii=False).encode()
            except ValueError as error:
                odd = "half of a surrogate pair" if isinstance(error, UnicodeError) else None
                raise ReadError(f"{path}, line {line}: {odd or 'not valid JSON'}") from None
            yield _record(path, name, line, record)


def _number_type(values: list[str]) -> Any:
    """What makes numbers of a column of a CSV file, if all of its values are numbers."""
    given = list(filter(None, values))
    return next((kind for kind, form in _NUMBERS.items() if all(map(form.fullmatch, given))), str)


def _record(path: Path, name: str, line: int, record: Any) -> Passage:
    place = f"{path}, line {line}"
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        found = f"{record!r:.60}"
        if isinstance(record, dict):
            found = f"no text in {', '.join(map(repr, record))[:100]}" if record else "nothing"
            found = f"the text is {record['text']!r:.60}" if "text" in record else found
        raise ReadError(f"{place}: {found}; expected a field or column `text`")
    ids = [record[key] for key in _IDS if record.get(key) not in (None, "")]
    id = ids[0] if ids else f"{name}:{line}"
    if not isinstance(id, str | int) or isinstance(id, bool):
        raise ReadError(f"{place}: the id is {id!r:.60}, expected a string or whole number")
    if _PART.search(str(id)):
        hint = "give the id of the text, or one without # and digits at its end"
        raise ReadError(f"{place}: the id {id!r:.60} is that of a passage: {hint}")
    fields = {k: v for k, v in record.items() if k not in ("text", *_IDS)}
    fields = {_OWN.get(k, k): _plain(v) for k, v in fields.items()}
    return Passage(str(id), text, fields, place, is_numbered=not ids)


def _plain(value: Any) -> Any:
    """A value that a column can hold: objects are stored as JSON."""
    kinds = {type(each) for each in value} if isinstance(value, list) else {type(value)}
    is_deep = len(kinds) > 1 or kinds & {dict, list}
    return json.dumps(value, ensure_ascii=False) if is_deep else value


def _decoded(path: Path) -> str:
    source = Source(path)
    source.check_regular()
    with Stream(source) as stream:  # unpacks .gz, up to 100 times its size
        content = b"".join(stream.chunks())
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ReadError(f"{path}, line {line}: not UTF-8") from None
