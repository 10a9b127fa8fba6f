"""The float vectors of a job: a Ray Dataset, or Parquet files in pieces of whole row groups.

Ray Data has a reader of Parquet. Ours knows the file and the row of every vector, so that errors
can name a bad one, and its pieces take about a second each, for small and large files.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import ray.data
from numpy.typing import NDArray
from pyarrow import fs

from embits.arrays import Progress
from embits.collection.manifest import MANIFEST
from embits.errors import EmbitsError, ReadError
from embits.file.parquet_codes import locate
from embits.integrations.ray.tasks import n_processors, run_tasks
from embits.readers.parquet import (
    find_columns,
    open_table,
    parquet_files,
    read_batches,
    vectors_of,
)

MIN_BYTES, MAX_BYTES = 64 << 20, 256 << 20  # of the floats of a piece
PIECES_PER_CPU = 8  # within these limits; workers then finish at about the same time
ROWS_AT_ONCE = 1 << 13
_FOOTERS_AT_ONCE = 16

VectorSource: TypeAlias = str | os.PathLike[str] | ray.data.Dataset
Piece: TypeAlias = list[tuple[str, int]]  # row groups that follow each other: file and number


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


Step: TypeAlias = Callable[[Iterator[Batch]], Any]


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
                groups = (data.row_group(number) for number in range(data.num_row_groups))
                self._groups += [
                    (file, number, group.num_rows, group.total_byte_size)
                    for number, group in enumerate(groups)
                ]
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

    def may_be_in(self, files: Any, folder: str) -> bool:
        """Whether a file of the vectors may be in a folder."""
        if self._dataset is None:
            is_same = files.equals(locate(self.name)[0])
            return is_same and any(f"{name}/".startswith(f"{folder}/") for name, *_ in self._groups)
        # Ray does not always know a dataset's files: any folder that is not ours may hold them.
        found = files.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        return bool(found) and all(info.base_name != MANIFEST for info in found)

    def mapped(
        self,
        step: Step,
        keep: Sequence[str] = (),
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> list[Any]:
        """What workers return for each piece, in row order.

        `step` is called with the batches of a piece, which have the columns `keep` too.
        """
        if self._dataset is not None:
            return self._mapped_dataset(step, workers)
        pieces = self.pieces(n_processors(workers))
        calls = ((step, self.name, piece, self.column, list(keep)) for piece in pieces)
        results: dict[int, Any] = {}
        with contextlib.closing(run_tasks(map_piece, calls, workers)) as found:
            for number, result in found:
                results[number] = result
                if progress is not None:
                    progress(len(results), len(pieces))
        return [results[number] for number in range(len(pieces))]

    def _mapped_dataset(self, step: Step, workers: int | None) -> list[Any]:
        mapped = self._dataset.map_batches(
            partial(_map_block, step, self.column),
            batch_format="pyarrow",
            batch_size=None,  # a whole block
            compute=None if workers is None else ray.data.TaskPoolStrategy(size=workers),
        )
        options, results = mapped.context.execution_options, []
        before, options.preserve_order = options.preserve_order, True
        try:
            for batch in mapped.iter_batches(batch_size=None, batch_format="pyarrow"):
                results += [pickle.loads(each) for each in batch.column(0).to_pylist()]  # noqa: S301
                if isinstance(results[-1], EmbitsError):
                    raise results[-1]
        finally:
            options.preserve_order = before
        return results

    def batches(self, keep: Sequence[str]) -> Iterator[Batch]:
        """Read the Parquet files in this process."""
        for piece in self.pieces(1):
            yield from _read_piece(self.name, piece, self.column, keep)

    def pieces(self, n_cpus: int) -> list[Piece]:
        """All row groups in pieces of about equal size, in row order."""
        sizes = np.array([size for *_, size in self._groups])
        wanted = min(MAX_BYTES, max(MIN_BYTES, sizes.sum() // (PIECES_PER_CPU * n_cpus)))
        numbers = (np.cumsum(sizes) - sizes // 2) // wanted
        groups = groupby(zip(numbers.tolist(), self._groups, strict=True), key=itemgetter(0))
        return [[(file, group) for _, (file, group, *_) in piece] for _, piece in groups]


def map_piece(step: Step, address: str, piece: Piece, column: str, keep: list[str]) -> Any:
    """Read a piece and apply a step to it. Runs in a worker."""
    return step(_read_piece(address, piece, column, keep))


def _read_piece(address: str, piece: Piece, column: str, keep: Sequence[str]) -> Iterator[Batch]:
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


def _map_block(step: Step, column: str, block: Any) -> Any:
    """Apply a step to a block of a dataset. Runs in a worker; Ray Data would hide its errors."""
    slices = (block.slice(start, ROWS_AT_ONCE) for start in range(0, len(block), ROWS_AT_ONCE))
    try:
        result = step(Batch(rows, column) for rows in slices)
    except EmbitsError as error:
        result = error
    return pa.table({"result": pa.array([pickle.dumps(result)], pa.large_binary())})
