"""More than one machine: fit on a sample and encode with Ray Data.

`encode` reads Parquet from a folder or an object store, or takes any Ray Dataset, and writes a
folder of codes that `embits.integrations.parquet_codes.read_codes` reads without Ray. The rows are
those of the input, in its order, and each has the code that `Coder.transform` gives it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from embits.arrays import Progress
from embits.coders import Coder
from embits.errors import InputError, MissingExtraError, ReadError
from embits.file.contents import read_coder
from embits.integrations import Facts

try:
    import ray.data
except ImportError as missing:
    raise MissingExtraError("encoding on several machines", "ray") from missing

from embits.integrations.ray.failures import plain_errors
from embits.integrations.ray.sources import Count, Source, StepMaker, Vectors, in_order
from embits.integrations.ray.steps import Draw, Encode, OnBad, ShippedCoder
from embits.integrations.ray.target import PartWriter, Target, code_facts

__all__ = ["encode", "fit", "map_codes"]

SAMPLE_ROWS = 100_000

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
    progress: Progress | None = None,
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
        progress: Called with (done, total) as pieces of files are written; a dataset has the
            bars of Ray Data.

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
        source = Source.of(vectors, column, keep, step)
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
        return Source.of(vectors, column, keep, step).mapped(workers)


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
        source = Source.of(vectors, column, [], draw)
        drawn = source.mapped(None)
        with in_order(drawn):
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
    return read_coder(Path(coder))


def _encoding(coder: Coder, on_bad: OnBad, *, mark: bool = False) -> StepMaker:
    if on_bad not in ("raise", "skip"):
        raise InputError(f'on_bad is {on_bad!r}, expected "raise" or "skip"')
    shipped = ShippedCoder(coder)
    treatment: Any = "mark" if mark and on_bad == "skip" else on_bad
    return lambda name, kept, _: Encode(shipped, name, kept, treatment)
