"""More than one machine: fit on a sample and encode with Ray Data.

`encode` reads Parquet from a folder or an object store, or takes any Ray Dataset, and writes a
folder of codes that `embits.integrations.code_folder.read_codes` reads without Ray. The rows are
those of the input, in its order, and each has the code that `Coder.transform` gives it.
"""

from __future__ import annotations

import contextlib
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from embits.coders import Coder
from embits.errors import InputError, MissingExtraError, ReadError
from embits.integrations import Facts
from embits.integrations.code_folder import CODE

try:
    import pyarrow as pa
    import ray
    import ray.data
except ImportError as missing:
    raise MissingExtraError("encoding on several machines", "ray") from missing

from embits.integrations.ray.columns import vector_column
from embits.integrations.ray.failures import plain_errors
from embits.integrations.ray.pieces import ROWS_AT_ONCE, OfPieces, ParquetFiles, Step
from embits.integrations.ray.steps import Draw, Encode, OnBad, ShippedCoder
from embits.integrations.ray.target import (
    CodeSink,
    Part,
    PartWriter,
    Target,
    WritePieces,
    code_facts,
)

__all__ = ["encode", "fit", "map_codes"]

SAMPLE_ROWS = 100_000
BLOCK_BYTES = 16 << 20

Vectors: TypeAlias = str | os.PathLike[str] | ray.data.Dataset
Count: TypeAlias = Callable[[], int]
StepMaker: TypeAlias = Callable[
    [str, Sequence[str], Count], Step
]  # of the column, those kept, and the rows
AnyCoder = TypeVar("AnyCoder", bound=Coder)


def encode(
    vectors: Vectors,
    coder: Coder | str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    column: str | None = None,
    keep: Sequence[str] | None = None,
    on_bad: OnBad = "raise",
    workers: int | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Facts:
    """Write the codes of vectors to a folder, with as many workers as the cluster has.

    Args:
        vectors: A Parquet file, a folder of them or its address in an object store (s3://, gs://,
            as pyarrow has them), or a Ray Dataset.
        coder: A fitted coder, or the path of an embits file that holds one.
        target: The folder to write, here or in an object store. It appears when it is whole.
        column: The column of vectors; None takes the only one of float lists there is.
        keep: Columns to keep beside the codes; None keeps all but the vectors.
        on_bad: "raise" refuses nulls, NaN and vectors of another length; "skip" leaves such rows
            out and counts them.
        workers: Tasks at a time; None is as many as there are processors.
        overwrite: Replace what the folder holds.
        progress: Whether Ray shows its bars; None leaves it as it is set.

    Returns:
        What was written: rows, skipped, bits, method, parts, bytes.

    Raises:
        ReadError: There are no vectors, or a bad one: names the file, the column and the row.
        InputError: An argument is wrong, or the target holds something already.
        ClusterError: The job failed for another reason.
    """
    coder = _loaded(coder)
    with plain_errors():
        step = _encoding(coder, on_bad, mark=True)
        source = _Source.of(vectors, column, keep, step)
        output = Target(target, overwrite=overwrite)
        try:
            writer = PartWriter(output.staging, code_facts(coder))
            written = sorted(source.write(writer, workers, progress), key=lambda part: part.number)
            facts = code_facts(coder)
            facts |= {"rows": sum(p.rows for p in written), "skipped": sum(p.bad for p in written)}
            names = output.commit([part for part in written if part.rows], coder, facts)
        except BaseException:  # Ctrl-C too: nothing half-written stays behind
            output.discard()
            raise
    size = sum(
        info.size for info in output.files.get_file_info([f"{output.path}/{n}" for n in names])
    )
    return {"target": output.address} | facts | {"parts": len(names), "bytes": size}


def map_codes(
    vectors: Vectors,
    coder: Coder | str | os.PathLike[str],
    *,
    column: str | None = None,
    keep: Sequence[str] | None = None,
    on_bad: OnBad = "raise",
    workers: int | None = None,
) -> ray.data.Dataset:
    """The Ray Dataset of codes, for whoever goes on in Ray; nothing runs until it is used.

    Args:
        vectors: As for `encode`, and so are the others.
        coder: A fitted coder, or the path of an embits file that holds one.
        column: The column of vectors.
        keep: Columns to keep.
        on_bad: "raise", or "skip" to leave bad rows out.
        workers: Tasks at a time.

    Returns:
        The kept columns, and `code` as binary of fixed size.
    """
    with plain_errors():
        step = _encoding(_loaded(coder), on_bad)
        return _Source.of(vectors, column, keep, step).mapped(workers)


def fit(
    vectors: Vectors,
    coder: AnyCoder,
    *,
    column: str | None = None,
    sample: int = SAMPLE_ROWS,
    seed: int = 0,
    on_bad: OnBad = "raise",
) -> AnyCoder:
    """Fit a coder, here, on a sample of vectors drawn by the workers.

    The sample depends on the vectors and the seed, not on their order or the cluster. It comes
    in a random order, so methods that take the first rows for frequent words find no such rows.

    Args:
        vectors: As for `encode`.
        coder: The coder to fit.
        column: The column of vectors.
        sample: Rows to fit on, at most.
        seed: Another seed draws other rows.
        on_bad: "raise", or "skip" to leave bad rows out.

    Returns:
        The coder, fitted.

    Raises:
        ReadError: There are no vectors, or bad ones.
        ClusterError: The job failed for another reason.
    """
    if sample < 1:
        raise InputError(f"sample is {sample!r}, expected 1 or more rows")

    def draw(name: str, _: Sequence[str], count: Count) -> Draw:
        # A few more than asked for, as the share of small hashes varies; the surplus goes below.
        return Draw(name, (sample + 8 * sample**0.5 + 64) / max(count(), 1), seed, on_bad)

    with plain_errors():
        source = _Source.of(vectors, column, [], draw)
        drawn = source.mapped(None)
        with _settings(drawn, None):
            batches = list(drawn.iter_batches(batch_size=None, batch_format="pyarrow"))
    hashes, lengths, rows = (
        [value for batch in batches for value in batch.column(name).to_pylist()]
        for name in ("hash", "dims", "row")
    )
    if not rows:
        raise ReadError(f"{source.name}: found no vectors, expected at least one")
    if len(different := sorted(set(lengths))) > 1:
        raise ReadError(
            f"{source.name}: found vectors of {different[0]} and of {different[1]} numbers"
        )
    order = np.argsort(np.array(hashes, dtype=np.uint64), kind="stable")[:sample]
    flat = np.frombuffer(b"".join(rows[row] for row in order), np.float32)
    matrix = flat.reshape(len(order), different[0])
    coder.fit(matrix)
    return coder


# -- the parts of it -----------------------------------------------------------------------------


def _loaded(coder: Coder | str | os.PathLike[str]) -> Coder:
    if isinstance(coder, Coder):
        return coder
    from embits.binary_vectors import load

    return load(coder).coder


def _encoding(coder: Coder, on_bad: OnBad, *, mark: bool = False) -> StepMaker:
    if on_bad not in ("raise", "skip"):
        raise InputError(f'on_bad is {on_bad!r}, expected "raise" or "skip"')
    shipped = ShippedCoder(coder)
    treatment: Any = "mark" if mark and on_bad == "skip" else on_bad
    return lambda name, kept, _: Encode(shipped, name, kept, treatment)


class _Source:
    """Vectors, and the step that workers take with them; made of Parquet files or of a dataset."""

    name: str

    @staticmethod
    def of(
        vectors: Vectors, column: str | None, keep: Sequence[str] | None, make: StepMaker
    ) -> _Source:
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


class _Given(_Source):
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
        with _settings(coded, progress):
            coded.write_datasink(sink, concurrency=workers)
        return sink.parts


class _Files(_Source):
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
        with _settings(written, progress):
            return [Part(**row) for row in written.take_all()]

    def _each_piece(self, work: Any, workers: int | None) -> ray.data.Dataset:
        """A task for each piece."""
        if not ray.is_initialized():
            ray.init()
        cpus = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        pieces = [pa.Table.from_pylist(piece) for piece in self.files.pieces(cpus)]
        return ray.data.from_arrow(pieces).map_batches(
            work, batch_format="numpy", batch_size=None, compute=_tasks(workers)
        )


def _tasks(workers: int | None) -> Any:
    return None if workers is None else ray.data.TaskPoolStrategy(size=workers)


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
def _settings(dataset: ray.data.Dataset, progress: bool | None) -> Iterator[None]:
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
