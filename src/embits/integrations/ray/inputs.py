"""The inputs of a job, Parquet files or a dataset, and how its tasks run."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import ray
import ray.data
from pyarrow import fs

from embits.arrays import Progress
from embits.collection.manifest import MANIFEST
from embits.errors import InputError, ReadError
from embits.file.parquet_codes import CODE, locate
from embits.integrations.ray.columns import check_id_column, vector_column
from embits.integrations.ray.pieces import ROWS_AT_ONCE, ParquetFiles, PieceReader, Run, Step
from embits.integrations.ray.target import CodeSink, Part, PartWriter, write_piece
from embits.integrations.ray.tasks import n_processors, run_tasks

VectorSource: TypeAlias = str | os.PathLike[str] | ray.data.Dataset
RowCount: TypeAlias = Callable[[], int]
# Makes a step from the column of vectors, the columns to keep, and the number of rows.
StepFactory: TypeAlias = Callable[[str, Sequence[str], RowCount], Step]


class Input(ABC):
    """The vectors of a job, and the step that its tasks apply to them."""

    name: str
    schema: Any

    @staticmethod
    def of(
        vectors: VectorSource, column: str | None, keep: Sequence[str] | None, make: StepFactory
    ) -> Input:
        """Find the columns and make the step."""
        if isinstance(vectors, ray.data.Dataset):
            schema = _arrow_schema(vectors)
            name, kept = _columns(schema, column, keep, _DatasetInput.name)
            return _DatasetInput(vectors, schema, make(name, kept, vectors.count))
        files = ParquetFiles.under(vectors)
        name, kept = _columns(files.schema, column, keep, files.address)
        step = make(name, kept, lambda: files.n_rows)
        return _ParquetInput(files, PieceReader(files.address, [name, *kept], step))

    def check_ids(self, ids: str | None) -> None:
        """Check that the column `ids` can name rows.

        Raises:
            ReadError: It has another type than strings or whole numbers.
        """
        if ids is not None:
            check_id_column(self.schema, ids, self.name)

    def check_target(self, files: Any, path: str) -> None:
        """Check that writing the folder `path` does not replace the vectors.

        Raises:
            InputError: The vectors may be in this folder.
        """
        if self.may_be_in(files, path):
            raise InputError(f"{path} may hold the vectors to encode: choose another output")

    @abstractmethod
    def may_be_in(self, files: Any, path: str) -> bool:
        """Return whether a file of the vectors may be in a folder."""

    @abstractmethod
    def mapped(self, workers: int | None) -> ray.data.Dataset:
        """Return the dataset that the step makes of the vectors."""

    @abstractmethod
    def write(
        self, writer: PartWriter, workers: int | None, progress: Progress | None
    ) -> list[Part]:
        """Write what the step makes of the vectors; return the parts in any order."""


class _DatasetInput(Input):
    """A Ray Dataset: Ray Data fuses our step with the tasks that read it."""

    name = "the dataset"

    def __init__(self, dataset: ray.data.Dataset, schema: Any, step: Step) -> None:
        self.dataset = dataset
        self.schema = schema
        self.step = step

    def may_be_in(self, files: Any, path: str) -> bool:
        # Ray does not always know a dataset's files: any folder that is not ours may hold them.
        found = files.get_file_info(fs.FileSelector(path, allow_not_found=True))
        return bool(found) and all(info.base_name != MANIFEST for info in found)

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


class _ParquetInput(Input):
    """Parquet files: each task reads one piece of them."""

    def __init__(self, files: ParquetFiles, reader: PieceReader) -> None:
        self.files = files
        self.reader = reader
        self.name = files.address
        self.schema = files.schema

    def may_be_in(self, files: Any, path: str) -> bool:
        same = files.equals(locate(self.files.address)[0])
        return bool(same) and any(_is_inside(name, path) for name in self.files.groups)

    def mapped(self, workers: int | None) -> ray.data.Dataset:
        pieces = [pa.Table.from_pylist(piece) for piece in self._pieces(workers)]
        return ray.data.from_arrow(pieces).map_batches(
            self.reader,
            batch_format="numpy",
            batch_size=None,  # the whole piece
            compute=_tasks(workers, len(pieces)),
        )

    def write(
        self, writer: PartWriter, workers: int | None, progress: Progress | None
    ) -> list[Part]:
        pieces = self._pieces(workers)
        calls = ((self.reader, writer, piece) for piece in pieces)
        parts: list[Part] = []
        with contextlib.closing(run_tasks(write_piece, calls, workers)) as written:
            for part in written:
                parts.append(part)
                if progress is not None:
                    progress(len(parts), len(pieces))
        return parts

    def _pieces(self, workers: int | None) -> list[list[Run]]:
        return self.files.pieces(n_processors(workers))


def _is_inside(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


def _tasks(workers: int | None, n_pieces: int | None = None) -> Any:
    """Return Ray's limit on concurrent tasks; None if there is less work, or Ray would warn."""
    if workers is None or (n_pieces is not None and n_pieces <= workers):
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
        raise InputError(
            f"{where}: a column is named {CODE!r}: list the columns to keep without it"
        )
    return name, kept


def _arrow_schema(dataset: ray.data.Dataset) -> Any:
    schema = dataset.schema()
    base = None if schema is None else schema.base_schema
    if not isinstance(base, pa.Schema):
        raise ReadError("the dataset: found no Arrow schema, expected columns of Arrow types")
    return base


@contextlib.contextmanager
def in_order(dataset: ray.data.Dataset) -> Iterator[None]:
    """Preserve the order of rows while this dataset runs."""
    options = dataset.context.execution_options
    before = options.preserve_order
    options.preserve_order = True
    try:
        yield
    finally:
        options.preserve_order = before
