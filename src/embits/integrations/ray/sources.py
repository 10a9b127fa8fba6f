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

from embits.arrays import Progress
from embits.errors import InputError, ReadError
from embits.integrations.parquet_codes import CODE
from embits.integrations.ray.columns import vector_column
from embits.integrations.ray.pieces import ROWS_AT_ONCE, OfPieces, ParquetFiles, Run, Step
from embits.integrations.ray.target import CodeSink, Part, PartWriter, write_piece

_PATIENCE = 30  # seconds for tasks to stop
_QUEUED_PER_CPU = 4  # tasks: enough for a cluster that grows with them to see them

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
    def write(
        self, writer: PartWriter, workers: int | None, progress: Progress | None
    ) -> list[Part]:
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

    def write(
        self, writer: PartWriter, workers: int | None, progress: Progress | None
    ) -> list[Part]:
        sink = CodeSink(writer)
        coded = self.mapped(workers)
        with in_order(coded):
            coded.write_datasink(sink, concurrency=workers)
        return sink.parts


class _Files(Source):
    """Parquet files: a piece of them at a time."""

    def __init__(self, files: ParquetFiles, of_pieces: OfPieces) -> None:
        self.files = files
        self.of_pieces = of_pieces
        self.name = files.address

    def mapped(self, workers: int | None) -> ray.data.Dataset:
        pieces = [pa.Table.from_pylist(piece) for piece in self._pieces(workers)[0]]
        return ray.data.from_arrow(pieces).map_batches(
            self.of_pieces,
            batch_format="numpy",
            batch_size=None,  # the whole piece
            compute=_tasks(workers, len(pieces)),
        )

    def write(
        self, writer: PartWriter, workers: int | None, progress: Progress | None
    ) -> list[Part]:
        # Plain tasks of Ray: they need nothing of Ray Data, which starts one at a time for the
        # first second or two, and leaves a worker idle for a tenth or two between two tasks.
        pieces, cpus = self._pieces(workers)
        task = ray.remote(num_cpus=1, max_retries=-1)(write_piece)
        parts: list[Part] = []
        running: list[Any] = []
        try:
            for piece in pieces:
                running.append(task.remote(self.of_pieces, writer, piece))
                if len(running) >= (workers or _QUEUED_PER_CPU * cpus):
                    running = _finish_one(running, parts, len(pieces), progress)
            while running:
                running = _finish_one(running, parts, len(pieces), progress)
        except BaseException:
            # They end by themselves, being few and short, and would write on into what is being
            # removed. To cancel them can abort this very process (Ray 2.60, task_manager.cc).
            if running:
                ray.wait(running, num_returns=len(running), timeout=_PATIENCE)
            raise
        return parts

    def _pieces(self, workers: int | None) -> tuple[list[list[Run]], int]:
        if not ray.is_initialized():
            ray.init()
        cpus = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        return self.files.pieces(cpus), cpus


def _finish_one(
    running: list[Any], parts: list[Part], total: int, progress: Progress | None
) -> list[Any]:
    """Wait for a task, take what it wrote, and return the others."""
    done, others = ray.wait(running)
    parts += ray.get(done)
    if progress is not None:
        progress(len(parts), total)
    return list(others)


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
def in_order(dataset: ray.data.Dataset) -> Iterator[None]:
    """Rows in their order while this dataset runs."""
    options = dataset.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        yield
    finally:
        options.preserve_order = before
