"""Encode vectors with the workers of a cluster, and fit a coder on a sample of them."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from numpy.typing import NDArray
from pyarrow import fs

from embits import checks
from embits._version import __version__
from embits.arrays import Progress
from embits.coders import Coder, coder_checksum
from embits.collection import load_coder
from embits.collection.manifest import CODER, MANIFEST, Manifest, Piece, manifest_json
from embits.errors import ClusterError, InputError, ReadError
from embits.file.contents import write_coder
from embits.file.parquet_codes import CODE, LENGTH, locate
from embits.integrations import Facts
from embits.integrations.ray.tasks import plain_errors, shared
from embits.integrations.ray.vectors import Batch, Vectors, VectorSource
from embits.rows import Lengths

SAMPLE_ROWS = 100_000

AnyCoder = TypeVar("AnyCoder", bound=Coder)
OnBad: TypeAlias = Literal["raise", "skip"]


def encode(
    vectors: VectorSource,
    coder: Coder | str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    column: str | None = None,
    ids: str | None = None,
    keep: Sequence[str] | None = None,
    on_bad: OnBad = "raise",
    lengths: bool = False,
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
        lengths: Store the lengths of the vectors, for `metric="dot"` and decoded vectors of their
            true length.
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
    checks.choice("on_bad", on_bad, ("raise", "skip"))
    coder = coder if isinstance(coder, Coder) else load_coder(coder)
    coder_file = _coder_file(coder)
    facts = {"bits": coder.n_bits_, "dims": coder.n_features_in_, "method": coder.method}
    facts |= {"writer": f"embits {__version__}"} | ({"lengths": True} if lengths else {})
    with plain_errors():
        source = Vectors(vectors, column, ids)
        kept = _kept(source, keep, ids, lengths)
        if overwrite and source.may_be_in(*locate(target)):
            raise InputError(f"{target} may hold the vectors to encode: choose another output")
        output = _Target(target, overwrite)
        write = partial(_write_part, ray.put(coder), kept, on_bad, output.staging, facts)
        try:
            found = source.mapped(write, kept, workers, progress)
            parts = [part for part in found if part.rows]
            names = [f"part-{number:05d}.parquet" for number in range(len(parts))]
            manifest = _manifest(coder, names, [part.rows for part in parts], ids)
            output.commit(
                {part.file: name for part, name in zip(parts, names, strict=True)},
                {CODER: coder_file, MANIFEST: manifest_json(manifest)},
            )
        except BaseException:  # also Ctrl-C: leave nothing half-written
            output.discard()
            raise
    infos = output.files.get_file_info([f"{output.path}/{name}" for name in names])
    counts = {"rows": manifest.rows, "skipped": sum(part.bad for part in found)}
    sizes = {"parts": len(parts), "bytes": sum(info.size for info in infos)}
    return {"target": output.address} | facts | {"ids": ids} | counts | sizes


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
    checks.whole("sample", sample, least=1)
    checks.choice("on_bad", on_bad, ("raise", "skip"))
    with plain_errors():
        source = Vectors(vectors, column, None)
        # A few more rows, as the share of small hashes varies; the surplus is cut below.
        share = min((sample + 8 * sample**0.5 + 64) / max(source.n_rows, 1), 1)
        draw = partial(_drawn, np.uint64(share * float(2**64 - 2**11)), seed, on_bad)
        drawn = [each for part in source.mapped(draw) for each in part if len(each[0])]
    if not drawn:
        raise ReadError(f"{source.name}: found no vectors, expected at least one")
    hashes, rows = zip(*drawn, strict=True)
    if len(lengths := sorted({part.shape[1] for part in rows})) > 1:
        raise ReadError(f"{source.name}: found vectors of {lengths[0]} and of {lengths[1]} numbers")
    order = np.argsort(np.concatenate(hashes), kind="stable")[:sample]
    coder.fit(np.concatenate(rows)[order])
    return coder


class _Part(NamedTuple):
    """A file that a worker wrote, its rows, and the bad rows left out."""

    file: str
    rows: int
    bad: int


def _write_part(
    coder: Any,
    keep: list[str],
    on_bad: OnBad,
    folder: str,
    facts: Facts,
    batches: Iterator[Batch],
) -> _Part:
    """Write the codes of batches, and the columns to keep, to one file. Runs in a worker.

    A worker that is killed leaves a file that no manifest lists; the retry writes another.
    """
    coder = shared(coder)
    files, path = locate(folder)
    name = f"{uuid4().hex}.parquet"
    rows = bad = 0
    with contextlib.ExitStack() as opened:
        writer = None
        for batch in batches:
            matrix, left_out = batch.read(coder.n_features_in_, on_bad)
            try:
                codes = coder.transform(matrix)
            except InputError as error:  # numbers too large for the method
                raise ReadError(f"{batch}: {error}") from None
            table = batch.table.select(keep)
            if len(left_out):
                table = table.take(np.delete(np.arange(len(table)), left_out))
            kind, buffers = (
                pa.binary(codes.shape[1]),
                [None, pa.py_buffer(np.ascontiguousarray(codes))],
            )
            packed = pa.FixedSizeBinaryArray.from_buffers(kind, len(codes), buffers)
            table = table.append_column(CODE, packed)
            if facts.get("lengths"):
                table = table.append_column(LENGTH, pa.array(Lengths.of_vectors(matrix).floats))
            if writer is None:
                schema = table.schema.with_metadata({"embits": json.dumps(facts)})
                writer = pq.ParquetWriter(
                    f"{path}/{name}", schema, filesystem=files, write_page_checksum=True
                )
                opened.enter_context(writer)
            writer.write_table(table.cast(schema))
            rows, bad = rows + len(codes), bad + len(left_out)
    if writer is not None:
        _flush_to_disk(files, f"{path}/{name}")
    return _Part(name, rows, bad)


def _drawn(
    below: np.uint64, seed: int, on_bad: OnBad, batches: Iterator[Batch]
) -> list[tuple[NDArray[np.uint64], NDArray[np.float32]]]:
    """The vectors with small hashes, and these: the sample does not depend on the rows' order."""
    found = []
    for batch in batches:
        matrix, _ = batch.read(None, on_bad)
        hashes = row_hashes(matrix, seed)
        found.append((hashes[hashes <= below], matrix[hashes <= below]))
    return found


def row_hashes(matrix: NDArray[np.float32], seed: int) -> NDArray[np.uint64]:
    """A uint64 hash of each row's bytes, the same on every machine.

    >>> rows = np.float32([[1, 2], [1, 2], [2, 1]])
    >>> first, same, other = row_hashes(rows, seed=0)
    >>> first == same, first == other, first == row_hashes(rows, seed=1)[0]
    (np.True_, np.False_, np.False_)
    """
    rng = np.random.default_rng(seed)
    factors = rng.integers(1, 2**64, matrix.shape[1], dtype=np.uint64) | np.uint64(1)
    words = np.ascontiguousarray(matrix, dtype="<f4").view("<u4").astype(np.uint64)
    words *= factors  # modulo 2^64
    hashes: NDArray[np.uint64] = words.sum(axis=1, dtype=np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        hashes ^= hashes >> np.uint64(shift)  # as splitmix64 ends: every bit affects the high bits
        hashes *= np.uint64(factor)
    return hashes


def _kept(source: Vectors, keep: Sequence[str] | None, ids: str | None, lengths: bool) -> list[str]:
    """The columns to keep."""
    names = source.schema.names
    kept = [name for name in names if name != source.column] if keep is None else list(keep)
    if ids is not None:
        kept = list(dict.fromkeys([*kept, ids]))
    if missing := [name for name in kept if name not in names]:
        raise InputError(f"{source.name}: there is no column {missing[0]!r} to keep")
    for name in [CODE, LENGTH] if lengths else [CODE]:
        if name in kept:
            raise InputError(f"{source.name}: a column is named {name!r}: keep the others only")
    return kept


def _manifest(coder: Coder, names: list[str], rows: list[int], ids: str | None) -> Manifest:
    """The manifest of a collection of Parquet files."""
    firsts = [0, *accumulate(rows)]
    pieces = tuple(
        Piece(name, count, first=0 if ids else first, column=ids)
        for name, count, first in zip(names, rows, firsts, strict=False)
    )
    known = coder.n_bits_, coder.n_features_in_, coder.method, coder_checksum(coder)
    if ids:
        return Manifest(*known, ids="given", pieces=pieces)
    return Manifest(*known, next_number=firsts[-1], ids="numbers", pieces=pieces)


class _Target:
    """The folder to write. Parts are staged in a sibling folder, or in it in an object store."""

    def __init__(self, address: str | os.PathLike[str], overwrite: bool) -> None:
        self.address = os.fspath(address)
        self.files, self.path = locate(address)
        self._is_local = isinstance(self.files, fs.LocalFileSystem)
        if self.files.get_file_info(self.path).type == fs.FileType.File:
            raise InputError(f"{address} is a file, expected a folder to write")
        if (there := self._in(self.path)) and not overwrite:
            raise InputError(
                f"{address}: holds {len(there)} files already: name another folder, or overwrite it"
            )
        token = uuid4().hex[:12]
        if self._is_local:
            parent, _, name = self.path.rpartition("/")
            self.staging = self._staged = f"{parent}/.{name}.{token}.tmp"
        else:
            before, mark, options = self.address.partition("?")  # such as endpoint_override=…
            self._staged = f"{self.path}/_staging-{token}"
            self.staging = f"{before.rstrip('/')}/_staging-{token}{mark}{options}"
        self.files.create_dir(self._staged)

    def commit(self, parts: Mapping[str, str], others: Mapping[str, bytes]) -> None:
        """Rename the parts, write the other files in order, and put the folder in place."""
        there = {info.base_name for info in self._in(self._staged)}
        if missing := set(parts) - there:
            raise ClusterError(
                f"{self.address}: {len(missing)} of {len(parts)} parts are missing: workers on "
                "other machines must write to a shared folder or an object store"
            )
        for stray in there - set(parts):  # of tasks that were killed and repeated
            self.files.delete_file(f"{self._staged}/{stray}")
        folder = self._staged if self._is_local else self.path
        if not self._is_local:  # the manifest first: the folder is then unfinished
            old = [info for info in self._in(self.path) if info.type == fs.FileType.File]
            for info in sorted(old, key=lambda info: info.base_name != MANIFEST):
                self.files.delete_file(info.path)
        for part, name in parts.items():
            self.files.move(f"{self._staged}/{part}", f"{folder}/{name}")
        for name, content in others.items():
            with self.files.open_output_stream(f"{folder}/{name}") as stream:
                stream.write(content)
            _flush_to_disk(self.files, f"{folder}/{name}")
        if not self._is_local:
            return self.discard()
        old_folder, target = f"{self._staged}.old", Path(self.path)
        if target.exists():
            target.rename(old_folder)
        Path(self._staged).rename(target)
        if Path(old_folder).exists():
            self.files.delete_dir(old_folder)
        return None

    def discard(self) -> None:
        """Remove the staging folder."""
        with contextlib.suppress(OSError):
            self.files.delete_dir(self._staged)

    def _in(self, folder: str) -> list[Any]:
        return list(self.files.get_file_info(fs.FileSelector(folder, allow_not_found=True)))


def _coder_file(coder: Coder) -> bytes:
    """An embits file with the coder and no codes."""
    with tempfile.TemporaryDirectory() as folder:
        write_coder(Path(folder, CODER), coder)
        return Path(folder, CODER).read_bytes()


def _flush_to_disk(files: Any, path: str) -> None:
    """Flush a local file before it is renamed; an object store needs no flush."""
    if files.type_name == "local":
        with Path(path).open("rb") as file:
            os.fsync(file.fileno())
