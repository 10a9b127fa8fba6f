"""Parquet files in pieces of whole row groups: one task reads one piece.

Ray Data has a reader of its own. This one knows the file and the row of every vector, so that
errors can name a bad one, and its pieces take about a second each, for small and large files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from embits.errors import ReadError
from embits.file.parquet_codes import locate

MIN_BYTES, MAX_BYTES = 64 << 20, 256 << 20  # of the floats of a piece
PIECES_PER_CPU = 8  # within these limits; workers then finish at about the same time
ROWS_AT_ONCE = 1 << 13
_FOOTERS_AT_ONCE = 16


@dataclass(frozen=True)
class BatchLocation:
    """The file that a batch of rows comes from, and the batch's first row in it."""

    file: str
    first_row: int

    def __str__(self) -> str:
        return self.file


class Run(TypedDict):
    """The row groups `first` to `last - 1` of a file, which start at `row`; part of `piece`."""

    file: str
    first: int
    last: int
    row: int
    piece: int


COLUMNS: tuple[Literal["file", "first", "last", "row"], ...] = ("file", "first", "last", "row")

Step = Callable[[Any, BatchLocation | None], Any]


@dataclass(frozen=True)
class ParquetFiles:
    """The Parquet files under a path or address, and the row groups in them.

    Attributes:
        address: The path or address that was given.
        schema: The Arrow schema of the first file.
        groups: For each file, the rows and bytes of its row groups.
    """

    address: str
    schema: Any
    groups: dict[str, list[tuple[int, int]]]

    @classmethod
    def under(cls, address: str | os.PathLike[str]) -> ParquetFiles:
        """Read the footers of all files.

        Raises:
            ReadError: There are no files, one is damaged, or they hold no rows.
        """
        files, path = locate(address)
        paths = _parquet_paths(files, path, address)
        with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
            footers = list(pool.map(lambda name: _footer(files, name), paths))
        groups = dict(zip(paths, (groups for _, groups in footers), strict=True))
        found = cls(os.fspath(address), footers[0][0], groups)
        if found.n_rows == 0:
            raise ReadError(f"{address}: found {len(paths)} files of 0 rows, expected vectors")
        return found

    @property
    def n_rows(self) -> int:
        """Return the number of rows in all files."""
        return sum(rows for groups in self.groups.values() for rows, _ in groups)

    def pieces(self, n_cpus: int) -> list[list[Run]]:
        """Return pieces of about equal size, in row order."""
        total = sum(size for groups in self.groups.values() for _, size in groups)
        wanted = min(MAX_BYTES, max(MIN_BYTES, total // (PIECES_PER_CPU * n_cpus)))
        pieces: list[list[Run]] = []
        room = 0
        for file, groups in self.groups.items():
            row = 0
            for number, (rows, size) in enumerate(groups):
                if room < size // 2 or not pieces:
                    pieces.append([])
                    room = wanted
                if not pieces[-1] or pieces[-1][-1]["file"] != file:
                    at = len(pieces) - 1
                    pieces[-1].append(Run(file=file, first=number, last=number, row=row, piece=at))
                pieces[-1][-1]["last"] = number + 1
                room -= size
                row += rows
        return pieces


class PieceReader:
    """Reads a piece in a worker and applies a step to each batch of its rows."""

    def __init__(self, address: str, columns: Sequence[str], step: Step) -> None:
        self.address = address
        self.columns = list(columns)
        self.step = step

    def __call__(self, runs: dict[str, Any]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        files, _ = locate(self.address)
        for file, first, last, row in zip(*(runs[key] for key in COLUMNS), strict=True):
            name, done = str(file), int(row)
            try:
                table = pq.ParquetFile(name, filesystem=files)
                _check_columns(name, table.schema_arrow, self.columns)
                for rows in table.iter_batches(
                    ROWS_AT_ONCE,
                    row_groups=list(range(first, last)),
                    columns=self.columns,
                    use_threads=False,  # each task has one processor
                ):
                    yield self.step(pa.Table.from_batches([rows]), BatchLocation(name, done))
                    done += rows.num_rows
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise _damaged(name, error) from None


def _parquet_paths(files: Any, path: str, address: str | os.PathLike[str]) -> list[str]:
    import pyarrow as pa
    from pyarrow import fs

    try:
        info = files.get_file_info(path)
        if info.type == fs.FileType.File:
            return [path]
        found = files.get_file_info(fs.FileSelector(path, recursive=True)) if info.type else []
    except (pa.ArrowException, OSError) as error:
        raise ReadError(f"{address}: cannot be read: {str(error).splitlines()[0]}") from None
    names = sorted(
        entry.path
        for entry in found
        if entry.type == fs.FileType.File
        and entry.path.endswith((".parquet", ".pq"))
        and not any(p[:1] in "._" for p in entry.path[len(path) :].strip("/").split("/"))
    )
    if not names:
        what = "nothing there" if info.type == fs.FileType.NotFound else "no .parquet files"
        raise ReadError(f"{address}: found {what}, expected a folder of Parquet files, or one")
    return names


def _footer(files: Any, name: str) -> tuple[Any, list[tuple[int, int]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(name, filesystem=files)
        groups = [table.metadata.row_group(i) for i in range(table.metadata.num_row_groups)]
        return table.schema_arrow, [(group.num_rows, group.total_byte_size) for group in groups]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise _damaged(name, error) from None


def _check_columns(name: str, schema: Any, columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in schema.names]
    if missing:
        there = ", ".join(schema.names[:12])
        raise ReadError(f"{name}: found columns {there}, expected {', '.join(missing)} too")


def _damaged(name: str, error: BaseException) -> ReadError:
    return ReadError(
        f"{name}: found a damaged file ({str(error).splitlines()[0]}), expected a Parquet table"
    )
