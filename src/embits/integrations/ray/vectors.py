"""The float vectors of a job: the blocks of a Ray Dataset, or row groups of Parquet files.

Ray Data has a reader of Parquet. Ours knows the file and the row of every vector, so that errors
can name a bad one, and its pieces take about a second each, for small and large files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import ray.data
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.errors import ReadError
from embits.file.parquet_codes import locate
from embits.integrations.ray.tasks import gathered, n_processors
from embits.readers.parquet import find_columns, open_table, parquet_files, read_batches, vectors_of

MIN_BYTES, MAX_BYTES = 64 << 20, 256 << 20  # of the floats of a piece
PIECES_PER_CPU = 8  # within these limits; workers then finish at about the same time
ROWS_AT_ONCE = 1 << 13
_FOOTERS_AT_ONCE = 16

VectorSource: TypeAlias = str | os.PathLike[str] | ray.data.Dataset


@dataclass(frozen=True)
class Batch:
    """Rows with vectors."""

    table: Any
    column: str  # of the vectors
    file: str | None = None  # None for a dataset
    first: int = 0  # row of the file

    def __str__(self) -> str:
        return f"{self.file or 'the dataset'}, column {self.column!r}"

    def read(self, dims: int | None, on_bad: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The good vectors, float32 (n, dims), and the numbers of the bad rows.

        A bad row is a ReadError that names it, unless `on_bad` is "skip".
        """
        matrix, bad, found = vectors_of(self.table.column(self.column), dims)
        if len(bad) == 0 or on_bad == "skip":
            return matrix, bad
        row = f"row {self.first + bad[0]}"
        if self.file is None:  # named by what stands beside it
            beside = self.table.slice(bad[0], 1).to_pylist()[0].items()
            named = (f"the row of {k} {v!r:.60}" for k, v in beside if isinstance(v, int | str))
            row = next(named, "a row")
        expected = f"{dims or 'as many'} finite numbers (bad rows can be skipped)"
        raise ReadError(f"{self}, {row}: found {found}, expected {expected}")


class Vectors:
    """The vectors of a job, and how workers read them; ReadError if there are none."""

    def __init__(self, source: VectorSource, column: str | None, ids: str | None) -> None:
        self._groups: list[tuple[str, int, int, int]] = []  # file, number, rows and bytes
        if isinstance(source, ray.data.Dataset):
            self.name, self._dataset, schema = "the dataset", source, source.schema()
            self.schema: Any = None if schema is None else schema.base_schema
            if not isinstance(self.schema, pa.Schema):
                raise ReadError("the dataset: found no Arrow schema, expected Arrow columns")
        else:
            self.name, self._dataset = os.fspath(source), None
            files, path = locate(source)
            paths = parquet_files(path, files)
            with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
                tables = list(pool.map(lambda file: open_table(file, files), paths))
            self.schema = tables[0].schema_arrow
            for file, data in zip(paths, (table.metadata for table in tables), strict=True):
                for number, group in enumerate(map(data.row_group, range(data.num_row_groups))):
                    self._groups.append((file, number, group.num_rows, group.total_byte_size))
            if self.n_rows == 0:
                raise ReadError(f"{source}: found {len(paths)} files of 0 rows, expected vectors")
        found = find_columns(self.schema, self.name, column, ids or False).vectors
        if len(found) != 1 or pa.types.is_floating(self.schema.field(found[0]).type):
            raise ReadError(f"{self.name}: found columns of floats, expected one of float lists")
        self.column: str = found[0]

    @property
    def n_rows(self) -> int:
        """The number of rows; Ray may have to run a dataset to count them."""
        if self._dataset is not None:
            return int(self._dataset.count())
        return sum(rows for _, _, rows, _ in self._groups)

    def may_be_in(self, files: Any, folder: str, is_ours: bool) -> bool:
        """Whether a file of the vectors may be in a folder; `is_ours`: it is a collection."""
        if self._dataset is not None:  # Ray does not always know its files
            return not is_ours
        is_same = files.equals(locate(self.name)[0])
        return is_same and any(file.startswith(f"{folder}/") for file, *_ in self._groups)

    def mapped(
        self,
        step: Callable[[int, Iterator[Batch]], Any],
        keep: Sequence[str] = (),
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> list[Any]:
        """What workers return for each piece, in row order.

        `step` gets the number of a piece and its batches, which have the columns `keep` too.
        """
        pieces: Any = self._blocks()
        report: Any = None
        if self._dataset is None:
            pieces = self.pieces(n_processors(workers))
            report = None if progress is None else lambda done: progress(done, len(pieces))
        own = self.name, self.column, list(keep)
        calls = ((piece, step, number, *own) for number, piece in enumerate(pieces))
        return gathered(map_piece, calls, workers, report)

    def batches(self, keep: Sequence[str]) -> Iterator[Batch]:
        """Read the Parquet files in this process."""
        for piece in self.pieces(1):
            yield from _read_piece(piece, self.name, self.column, keep)

    def pieces(self, n_cpus: int) -> list[list[tuple[str, int]]]:
        """All row groups, as file and number, in pieces of about equal size, in row order."""
        sizes = np.array([size for *_, size in self._groups])
        wanted = min(MAX_BYTES, max(MIN_BYTES, sizes.sum() // (PIECES_PER_CPU * n_cpus)))
        numbers = (np.cumsum(sizes) - sizes // 2) // wanted
        groups = groupby(zip(numbers.tolist(), self._groups, strict=True), key=itemgetter(0))
        return [[(file, group) for _, (file, group, *_) in piece] for _, piece in groups]

    def _blocks(self) -> Iterator[Any]:
        """The blocks of the dataset in row order, while Ray Data makes them."""
        options = self._dataset.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            for bundle in self._dataset.iter_internal_ref_bundles():
                yield from bundle.block_refs
        finally:
            options.preserve_order = before


def map_piece(
    piece: Any, step: Any, number: int, address: str, column: str, keep: list[str]
) -> Any:
    """Read a piece, or take a block of a dataset, and apply a step to it. Runs in a worker."""
    if isinstance(piece, list):
        return step(number, _read_piece(piece, address, column, keep))
    slices = (piece.slice(start, ROWS_AT_ONCE) for start in range(0, len(piece), ROWS_AT_ONCE))
    return step(number, (Batch(rows, column) for rows in slices))


def _read_piece(piece: Any, address: str, column: str, keep: Sequence[str]) -> Iterator[Batch]:
    files, _ = locate(address)
    for file, of_file in groupby(piece, key=itemgetter(0)):
        groups, names = [group for _, group in of_file], open_table(file, files).schema_arrow.names
        if missing := [name for name in (column, *keep) if name not in names]:
            found = f"found columns {', '.join(names[:12])}"
            raise ReadError(f"{file}: {found}, expected {', '.join(missing)} too")
        for first, rows in read_batches(
            file, [column, *keep], files, groups=groups, size=ROWS_AT_ONCE
        ):
            yield Batch(pa.Table.from_batches([rows]), column, file, first)
