"""Several files as one: a list of matrices or tables, or a folder of them, read one by one."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import unquote

from embits.errors import InputError
from embits.readers.blocks import Block, Blocks, CountedBlocks, Findings, Position
from embits.readers.source import AnyPath, Paths, Source

TABLES = (".parquet", ".pq")


def are_paths(paths: Any) -> TypeGuard[Paths]:
    """Whether it is the path of a file or folder, or a list of paths."""
    listed = paths if isinstance(paths, list | tuple) else [paths]
    return len(listed) > 0 and all(isinstance(each, str | os.PathLike) for each in listed)


def vector_files(path: AnyPath) -> list[Path]:
    """The `.npy` or the Parquet files in a folder, by name; none if it is a file or a collection.

    What starts with `_` or `.` is left out.
    """
    folder = Path(path)
    if (folder / "_embits.json").is_file() or not folder.is_dir():
        return []
    inside = sorted((e.relative_to(folder) for e in folder.rglob("*") if e.is_file()), key=str)
    names = [folder / each for each in inside if not re.search("(^|/)[._]", each.as_posix())]
    arrays = [each for each in names if each.suffix == ".npy"]
    ids = {each.with_suffix("") for each in arrays}  # of a matrix, in a table of its name
    tables = [e for e in names if e.suffix in TABLES and e.with_suffix("") not in ids]
    if arrays and tables:
        found = f"{arrays[0].name} and {tables[0].name}"
        raise Source(folder).read_error(found, "files of one kind: name those to read")
    return arrays or tables


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
        self.named = self.words_apart = first.named
        kinds = [f"{e.dims} numbers {'and an id' if e.named else ''} a row" for e in self._files]
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
                self._collect(each)
                self.source.report(row, self._starts[-1])
                yield block._replace(start=start, end=end, places=first + block.places)
                start = end
        if start.rows == 0:
            raise self.source.read_error("no finite row", "at least one")

    def locate(self, place: int) -> tuple[Source, str]:
        """The file that has a row, and what the row is called in it."""
        number = bisect_right(self._starts, place) - 1
        return self._files[number].locate(place - self._starts[number])

    def _collect(self, opened: Blocks) -> None:
        """What was found in a file, with its name."""
        found, opened.findings = opened.findings, Findings()
        if found.n_bad:
            where, what = found.bad
            self.findings.add_bad(found.n_bad, f"{opened.source.name}, {where}", what)
        self.findings.is_numbered |= found.is_numbered
