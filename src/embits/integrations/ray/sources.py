"""Where vectors come from, Parquet files or a dataset, and how workers are put to them."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import ray
import ray.data

from embits.errors import InputError, ReadError
from embits.integrations.code_folder import CODE
from embits.integrations.ray.columns import vector_column
from embits.integrations.ray.pieces import ROWS_AT_ONCE, OfPieces, ParquetFiles, Step
from embits.integrations.ray.target import CodeSink, Part, PartWriter, WritePieces

BLOCK_BYTES = 16 << 20

Vectors: TypeAlias = str | os.PathLike[str] | ray.data.Dataset
Count: TypeAlias = Callable[[], int]
# Makes a step of the column of vectors, the columns to keep, and the number of rows.
StepMaker: TypeAlias = Callable[[str, Sequence[str], Count], Step]


class Source(ABC):
    """Vectors, and the step that workers take with them; made of Parquet files or of a dataset."""

    name: str

    @staticmethod
    def of(
        vectors: Vectors, column: str | None, keep: Sequence[str] | None, make: StepMaker
    ) -> Source:
        """Find the columns and make the step."""
        if isinstance(vectors, ray.data.Dataset):
            name, kept = _columns(_arrow_schema(vectors), column, keep, _Given.name)
            return _Given(vectors, make(name, kept, vectors.count))
        files = ParquetFiles.under(vectors)
        name, kept = _columns(files.schema, column, keep, files.address)
        step = make(name, kept, lambda: files.n_rows)
        return _Files(files, OfPieces(files.address, [name, *kept], step))

    @abstractmethod
    def mapped(self, workers: int | None) -> ray.data.Dataset:
        """What the step makes of the vectors."""

    @abstractmethod
    def write(self, writer: PartWriter, workers: int | None, progress: bool | None) -> list[Part]:
        """Write what the step makes of the vectors; the parts come in any order."""


class _Given(Source):
    """A dataset: tasks of Ray Data, which run in one with those that read it."""

    name = "the dataset"

    def __init__(self, dataset: ray.data.Dataset, step: Step) -> None:
        self.dataset = dataset
        self.step = step

    def mapped(self, workers: int | None) -> ray.data.Dataset:
        return self.dataset.map_batches(
            self.step, batch_format="pyarrow", batch_size=ROWS_AT_ONCE, compute=_tasks(workers)
        )

    def write(self, writer: PartWriter, workers: int | None, progress: bool | None) -> list[Part]:
        sink = CodeSink(writer)
        coded = self.mapped(workers)
        with settings(coded, progress):
            coded.write_datasink(sink, concurrency=workers)
        return sink.parts


class _Files(Source):
    """Parquet files: a piece of them at a time."""

    def __init__(self, files: ParquetFiles, of_pieces: OfPieces) -> None:
        self.files = files
        self.of_pieces = of_pieces
        self.name = files.address

    def mapped(self, workers: int | None) -> ray.data.Dataset:
        return self._each_piece(self.of_pieces, workers)

    def write(self, writer: PartWriter, workers: int | None, progress: bool | None) -> list[Part]:
        write = WritePieces(self.of_pieces, writer)
        written = self._each_piece(write, workers)
        with settings(written, progress):
            return [Part(**row) for row in written.take_all()]

    def _each_piece(self, work: Any, workers: int | None) -> ray.data.Dataset:
        """A task for each piece."""
        if not ray.is_initialized():
            ray.init()
        cpus = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        pieces = [pa.Table.from_pylist(piece) for piece in self.files.pieces(cpus)]
        return ray.data.from_arrow(pieces).map_batches(
            work, batch_format="numpy", batch_size=None, compute=_tasks(workers, len(pieces))
        )


def _tasks(workers: int | None, most: int | None = None) -> Any:
    """So many tasks at a time; Ray warns of more than there is work for."""
    if workers is None or (most is not None and most <= workers):
        return None
    return ray.data.TaskPoolStrategy(size=workers)


def _columns(
    schema: Any, column: str | None, keep: Sequence[str] | None, where: str
) -> tuple[str, list[str]]:
    name = vector_column(schema, column, where)
    kept = [other for other in schema.names if other != name] if keep is None else list(keep)
    if missing := [other for other in kept if other not in schema.names]:
        raise InputError(f"{where}: there is no column {missing[0]!r} to keep")
    if CODE in kept:
        raise InputError(f"{where}: a column is named {CODE!r}: keep others, without it")
    return name, kept


def _arrow_schema(dataset: ray.data.Dataset) -> Any:
    schema = dataset.schema()
    base = None if schema is None else schema.base_schema
    if not isinstance(base, pa.Schema):
        raise ReadError("the dataset: found no Arrow schema, expected columns of Arrow types")
    return base


@contextlib.contextmanager
def settings(dataset: ray.data.Dataset, progress: bool | None) -> Iterator[None]:
    """Rows in their order, and bars as asked for, while this dataset runs."""
    context = dataset.context
    options = context.execution_options
    before = options.preserve_order, context.enable_progress_bars, context.target_max_block_size
    options.preserve_order = True
    # Ray starts as many tasks as blocks of this size fit the object store. Ours are codes, a
    # thirtieth of what is read: by its usual 128 MB, a small store would have workers wait.
    context.target_max_block_size = BLOCK_BYTES
    if progress is not None:
        context.enable_progress_bars = progress
    try:
        yield
    finally:
        options.preserve_order, context.enable_progress_bars, context.target_max_block_size = before
