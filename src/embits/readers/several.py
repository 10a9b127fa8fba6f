"""Several files as one: a list of matrices or tables, or a folder of them, read one by one."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote

from embits.errors import InputError
from embits.readers.blocks import Block, Blocks, CountedBlocks, Findings, Position
from embits.readers.source import AnyPath, Paths, Source

TABLES = (".parquet", ".pq")
_HIDDEN = re.compile("(^|/)[._]")


def are_paths(paths: Any) -> TypeGuard[Paths]:
    """Whether it is the path of a file or folder, or a list of paths."""
    listed = paths if isinstance(paths, list | tuple) else [paths]
    return len(listed) > 0 and all(isinstance(each, str | os.PathLike) for each in listed)


def visible(names: Iterable[str], *suffixes: str) -> list[str]:
    """The names in a folder that have one of the suffixes, sorted.

    Files, and those in folders, whose names start with `_` or `.` are left out.
    """
    return sorted(name for name in names if name.endswith(suffixes) and not _HIDDEN.search(name))


def vector_files(path: AnyPath) -> list[Path]:
    """The `.npy` or Parquet files in a folder, by name; none if it is a file or a collection."""
    folder = Path(path)
    if (folder / "_embits.json").is_file() or not folder.is_dir():
        return []
    inside = [each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()]
    arrays, tables = visible(inside, ".npy"), visible(inside, *TABLES)
    ids = {name.removesuffix(".npy") for name in arrays}  # of a matrix, in a table of its name
    tables = [name for name in tables if name.rpartition(".")[0] not in ids]
    if arrays and tables:
        found = f"{Path(arrays[0]).name} and {Path(tables[0]).name}"
        raise Source(folder).read_error(found, "files of one kind: name those to read")
    return [folder / name for name in arrays or tables]


def partitions(path: Path) -> dict[str, str | None]:
    """The columns that the names of folders have, such as `year=2024`.

    >>> partitions(Path("lake/year=2024/city=S%C3%A3o/part-0.parquet"))
    {'year': '2024', 'city': 'São'}
    """
    pairs = (part.split("=", 1) for part in path.parts[:-1] if "=" in part.strip("="))
    return {k: None if v == "__HIVE_DEFAULT_PARTITION__" else unquote(v) for k, v in pairs}


class SeveralBlocks(Blocks):
    """The blocks of several matrices or tables, one after the other.

    Rows are counted from the first of the first file. Errors name the file, and the row in it.
    """

    def __init__(self, source: Source, open_one: Callable[[Source], Blocks]) -> None:
        if source.words is not None:
            hint = "each has its own in a column or in a file beside it"
            raise InputError(f"{source.name}: words (ids) are for one file, not several: {hint}")
        self._files: list[CountedBlocks] = []
        sizes = [0]
        for path in source.files:
            left = None if source.limit is None else source.limit - sum(sizes)
            if left == 0:
                break
            one = replace(source, path=path, files=(), limit=left, progress=None, is_part=True)
            opened = open_one(one)
            if not isinstance(opened, CountedBlocks):
                raise one.read_error("words and vectors", "a matrix or table, as one of several")
            if opened.size:  # a job may write files without rows
                self._files.append(opened)
                sizes.append(opened.size)
        if not self._files:
            raise source.read_error(f"{len(source.files)} files of 0 rows", "at least one row")
        first = self._files[0]
        super().__init__(source, first.dims, first.first)
        self._starts = [*accumulate(sizes)]
        self.has_words = self.words_are_ids = first.has_words
        kinds = [f"{e.dims} numbers {'and an id' * e.has_words} a row" for e in self._files]
        for each, kind in zip(self._files, kinds, strict=True):
            if kind != kinds[0]:
                raise each.source.read_error(kind, f"{kinds[0]} as in {first.source.name}")
        if all(each.n_rows is not None for each in self._files):
            self.n_rows = self._starts[-1]
        names = dict.fromkeys(chain.from_iterable(map(partitions, source.files)))
        if dropped := [name for name in names if name not in source.kept]:
            found = f"columns of its folders left out: {', '.join(dropped)}"
            source.warn(f"{found} (`embits add --columns` keeps them)")

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        for each, (first, stop) in zip(self._files, pairwise(self._starts), strict=True):
            if start.offset >= stop:
                continue
            own = Position(start.offset - first, start.place - first, start.rows)
            for block in each.read(own, words=words):
                row, n_good = first + block.end.offset, block.end.rows
                end = Position(row, row, n_good, row - n_good)
                self._add_findings(each)
                self.source.report(row, self._starts[-1])
                yield block._replace(start=start, end=end, places=first + block.places)
                start = end
        if start.rows == 0:
            raise self.source.read_error("no finite row", "at least one")

    def locate(self, place: int) -> tuple[Source, str]:
        """The file that has a row, and what the row is called in it."""
        number = bisect_right(self._starts, place) - 1
        return self._files[number].locate(place - self._starts[number])

    def _add_findings(self, opened: Blocks) -> None:
        """Take over the findings of a file, with its name."""
        found, opened.findings = opened.findings, Findings()
        if found.n_bad:
            where, what = found.bad
            self.findings.add_bad(found.n_bad, f"{opened.source.name}, {where}", what)
        self.findings.is_numbered |= found.is_numbered
