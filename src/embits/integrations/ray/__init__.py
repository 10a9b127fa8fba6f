"""Fit, encode and search on several machines with Ray.

`encode` reads Parquet from a folder or an object store, or takes any Ray Dataset, and writes a
collection of Parquet files that `embits.load` opens without Ray. The rows keep their order, and
each has the code that `Coder.transform` gives it. `search`, `within` and `pairs_within` search a
collection whose pieces are spread over the workers, with the answers of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from embits.arrays import Progress
from embits.coders import Coder
from embits.collection import load
from embits.errors import InputError, MissingExtraError, ReadError
from embits.file.parquet_codes import locate
from embits.integrations import Facts

try:
    import ray.data  # noqa: F401 - missing Ray is reported here, not in the modules below
except ImportError as missing:
    raise MissingExtraError("a job on several machines", "ray") from missing

from embits.integrations.ray.failures import plain_errors
from embits.integrations.ray.inputs import Input, RowCount, StepFactory, VectorSource, in_order
from embits.integrations.ray.near_pairs import pairs_within
from embits.integrations.ray.searching import search, within
from embits.integrations.ray.steps import Draw, Encode, OnBad, SharedCoder
from embits.integrations.ray.target import PartWriter, Target, code_facts

__all__ = ["encode", "fit", "pairs_within", "search", "within"]

SAMPLE_ROWS = 100_000

AnyCoder = TypeVar("AnyCoder", bound=Coder)


def encode(
    vectors: VectorSource,
    coder: Coder | str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    column: str | None = None,
    ids: str | None = None,
    keep: Sequence[str] | None = None,
    on_bad: OnBad = "raise",
    workers: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Facts:
    """Encode vectors with the workers of a cluster, and write a collection.

    Args:
        vectors: A Parquet file, a folder of them, its address in an object store (s3://, gs://,
            or another that pyarrow supports), or a Ray Dataset.
        coder: A fitted coder, or the path of an embits file that holds one.
        target: The folder to write, local or in an object store. It appears when it is complete.
        column: The column of vectors; None takes the only column of float lists.
        ids: A column of strings or whole numbers without repeats: the ids that `embits.load`
            gives the rows. None numbers the rows.
        keep: Columns to keep with the codes; None keeps all but the vectors. `ids` is always kept.
        on_bad: "raise" refuses nulls, NaN and vectors of another length; "skip" leaves such rows
            out and counts them.
        workers: Concurrent tasks; None is one per processor.
        overwrite: Replace the contents of the folder.
        progress: Called with (done, total) as pieces of files are written; for a dataset, Ray Data
            shows its own progress bars.

    Returns:
        What was written: target, bits, dims, method, writer, ids, rows, skipped, parts, bytes.

    Raises:
        ReadError: There are no vectors, or one is bad: names the file, the column and the row.
        InputError: An argument is wrong, or the target is not empty or holds the vectors.
        ClusterError: The job failed for another reason.
    """
    coder = _loaded(coder)
    kept = keep if keep is None or ids is None else list(dict.fromkeys([*keep, ids]))
    with plain_errors():
        source = Input.of(vectors, column, kept, _encoding(coder, on_bad))
        source.check_ids(ids)
        if overwrite:
            source.check_target(*locate(target))
        output = Target(target, overwrite=overwrite)
        try:
            writer = PartWriter(output.staging, code_facts(coder))
            written = sorted(source.write(writer, workers, progress), key=lambda part: part.number)
            facts = code_facts(coder) | {"ids": ids}
            facts |= {"rows": sum(p.rows for p in written), "skipped": sum(p.bad for p in written)}
            names = output.commit([part for part in written if part.rows], coder, ids)
        except BaseException:  # also Ctrl-C: leave nothing half-written
            output.discard()
            raise
    size = sum(
        info.size for info in output.files.get_file_info([f"{output.path}/{n}" for n in names])
    )
    return {"target": output.address} | facts | {"parts": len(names), "bytes": size}


def fit(
    vectors: VectorSource,
    coder: AnyCoder,
    *,
    column: str | None = None,
    sample: int = SAMPLE_ROWS,
    seed: int = 0,
    on_bad: OnBad = "raise",
) -> AnyCoder:
    """Fit a coder in this process, on a sample of vectors that the workers draw.

    The sample depends on the vectors and the seed, not on their order or the cluster. It is in
    random order: methods that expect frequent words first do not find them there.

    Args:
        vectors: As for `encode`.
        coder: The coder to fit.
        column: The column of vectors.
        sample: The largest number of rows to fit on.
        seed: Another seed draws other rows.
        on_bad: "raise", or "skip" to leave bad rows out.

    Returns:
        The fitted coder.

    Raises:
        ReadError: There are no vectors, or bad ones.
        ClusterError: The job failed for another reason.
    """
    if sample < 1:
        raise InputError(f"sample is {sample!r}, expected 1 or more rows")

    def draw(name: str, _: Sequence[str], count: RowCount) -> Draw:
        # A few more rows, as the share of small hashes varies; the surplus is cut below.
        return Draw(name, (sample + 8 * sample**0.5 + 64) / max(count(), 1), seed, on_bad)

    with plain_errors():
        source = Input.of(vectors, column, [], draw)
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
    coder.fit(flat.reshape(len(order), different[0]))
    return coder


def _loaded(coder: Coder | str | os.PathLike[str]) -> Coder:
    if isinstance(coder, Coder):
        return coder
    return load(coder).coder


def _encoding(coder: Coder, on_bad: OnBad) -> StepFactory:
    if on_bad not in ("raise", "skip"):
        raise InputError(f'on_bad is {on_bad!r}, expected "raise" or "skip"')
    shared = SharedCoder(coder)
    treatment: Any = "mark" if on_bad == "skip" else on_bad
    return lambda name, kept, _: Encode(shared, name, kept, treatment)
