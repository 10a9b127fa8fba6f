"""Encode vectors with the workers of a cluster, and fit a coder on a sample of them.

Unlike Ray Data's, our reader of Parquet knows the file and the row of a bad vector.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import ray.data
from numpy.typing import NDArray
from pyarrow import fs

from embits import checks
from embits._version import __version__
from embits.arrays import Progress
from embits.coders import Coder, coder_checksum
from embits.collection import load_coder
from embits.collection.manifest import CODER, MANIFEST, Manifest, Piece, manifest_json
from embits.collection.parquet import CODE, LENGTH, locate, read_one
from embits.errors import ClusterError, InputError, ReadError, ReadWarning, warn_caller
from embits.file.contents import write_coder
from embits.file.overwrite import OVERWRITE
from embits.ids.vocabulary import Vocabulary
from embits.integrations import Facts
from embits.integrations.ray import tasks
from embits.readers import parquet
from embits.readers.source import Repeats, Source
from embits.remote import is_address
from embits.segment import Lengths
from embits.vectors import normalize_ids

SAMPLE_ROWS = 100_000
MIN_BYTES, MAX_BYTES = 64 << 20, 256 << 20  # of the floats of a piece
PIECES_PER_CPU = 8  # within these limits; workers then finish at about the same time
ROWS_AT_ONCE = 1 << 13
_FOOTERS_AT_ONCE = 16

AnyCoder = TypeVar("AnyCoder", bound=Coder)
VectorSource: TypeAlias = str | os.PathLike[str] | ray.data.Dataset
OnBad: TypeAlias = Literal["raise", "skip"]


def encode(
    vectors: VectorSource, coder: Coder | str | os.PathLike[str], target: str | os.PathLike[str], *,
    column: str | None = None, ids: str | None = None, keep: Sequence[str] | None = None,
    on_bad: OnBad = "raise", repeats: Repeats | None = None, lengths: bool = False,
    workers: int | None = None, overwrite: bool = False, progress: Progress | None = None,
) -> Facts:  # fmt: skip
    """Encode vectors with the workers of a cluster, and write a collection.

    It returns target, bits, dims, method, writer, ids, rows, skipped, parts and bytes. If a job on
    files is killed, the same call uses its finished parts again.

    Args:
        vectors: A Parquet file, a folder of them, its address in an object store (s3://, gs://,
            or another that pyarrow supports), or a Ray Dataset.
        coder: A fitted coder, or the path of an embits file that holds one.
        target: The folder to write, local or in an object store. Its manifest is written last:
            until then `embits.load` refuses it as unfinished.
        column: The column of vectors; None takes the only column of float lists.
        ids: A column of strings or whole numbers without repeats, the ids of the rows. None numbers
            the rows.
        keep: Columns to keep with the codes; None keeps all but the vectors. `ids` is always kept.
        on_bad: "raise" refuses nulls, NaN and vectors of another length; "skip" leaves such rows
            out and counts them.
        repeats: "first" keeps the first row of an id that repeats and warns; "refuse" and None
            refuse the vectors.
        lengths: Store the lengths of the vectors, for `metric="dot"` and for decoding.
        workers: Concurrent tasks; None is one per processor.
        overwrite: Replace the contents of the folder.
        progress: Called with (done, total) as pieces of files are written; for a dataset, Ray Data
            shows its own progress bars.

    Raises:
        ReadError: There are no vectors, or one is bad: names the file, the column and the row.
        InputError: An argument is wrong, or the target is not empty or holds the vectors.
        ClusterError: The job failed for another reason.
    """
    checks.choice("on_bad", on_bad, ("raise", "skip"))
    coder = coder if isinstance(coder, Coder) else load_coder(coder)
    facts = {"bits": coder.n_bits_, "dims": coder.n_features_in_, "method": coder.method}
    facts |= {"writer": f"embits {__version__}"} | ({"lengths": True} if lengths else {})
    with tasks.plain_errors():
        source = Vectors(vectors, column, ids)
        kept = _kept(source, keep, ids, lengths)
        job = source.digest([facts, coder_checksum(coder), ids, kept, on_bad], workers)
        output = _Folder(target, source, overwrite, job)
        own = output.address, output.job, facts
        try:
            write = partial(_write_part, ray.put(coder), kept, ids, on_bad, *own)
            found = source.mapped(write, kept, workers, progress)
            pieces = [piece for piece, _ in found if piece.rows]
            n_rows = sum(piece.rows for piece in pieces)
            n_bad = source.n_rows - n_rows if job else sum(bad for _, bad in found)
            if ids is not None:
                pieces = output.without_repeats(pieces, ids, repeats, source.name)
            manifest = _manifest(coder, pieces, ids)
            n_bytes = output.commit(coder, manifest)
        finally:  # also after Ctrl-C: leave nothing half-written
            output.clean()
    counts = {"rows": manifest.rows, "skipped": n_bad}
    sizes = {"parts": len(manifest.pieces), "bytes": n_bytes}
    return {"target": os.fspath(target)} | facts | {"ids": ids} | counts | sizes


def fit(
    vectors: VectorSource, coder: AnyCoder, *, column: str | None = None, sample: int = SAMPLE_ROWS,
    seed: int = 0, on_bad: OnBad = "raise",
) -> AnyCoder:  # fmt: skip
    """Fit a coder in this process, on at most `sample` rows that the workers draw, and return it.

    The sample depends on the vectors and the seed, not on their order or the cluster, and is in
    random order. `vectors`, `column`, `on_bad` and the errors are those of `encode`.
    """
    checks.whole("sample", sample, least=1)
    checks.choice("on_bad", on_bad, ("raise", "skip"))
    with tasks.plain_errors():
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


def _write_part(
    shared_coder: Any, keep: list[str], ids: str | None, on_bad: OnBad, address: str, job: str,
    facts: Facts, number: int, batches: Iterator[Batch],
) -> tuple[Piece, int]:  # fmt: skip
    """Write the codes of a piece and the columns to keep; gives the bad rows. Runs in a worker."""
    files, folder = locate(address)
    name = f"part-{number:05d}-{job}.parquet"
    path = f"{folder}/{name}"
    if files.get_file_info(path).type == fs.FileType.File:  # of a job that was killed
        return Piece(name, len(read_one(files, path, CODE))), 0
    coder, n_bad = tasks.shared(shared_coder), 0

    def encoded() -> Iterator[Any]:
        nonlocal n_bad
        for batch in batches:
            matrix, bad = batch.read(coder.n_features_in_, on_bad)
            try:
                codes = np.ascontiguousarray(coder.transform(matrix))
            except InputError as error:  # numbers too large for the method
                raise ReadError(f"{batch}: {error}") from None
            columns = [batch.table.column(name) for name in keep]
            if ids is not None:  # refuses those that are null or empty
                file = Source(Path(batch.file or "the dataset"))
                parquet.ids_of(file, batch.table.column(ids), batch.first)
            if len(bad):
                good = np.delete(np.arange(len(batch.table)), bad)
                columns = [column.take(good) for column in columns]
            kind, buffers = pa.binary(codes.shape[1]), [None, pa.py_buffer(codes)]
            columns.append(pa.FixedSizeBinaryArray.from_buffers(kind, len(codes), buffers))
            if facts.get("lengths"):
                columns.append(pa.array(Lengths.of_vectors(matrix).floats))
            n_bad += len(bad)
            yield pa.table(columns, [*keep, CODE, LENGTH][: len(columns)])

    rows = tasks.write_parquet(files, path, encoded(), {"embits": json.dumps(facts)})
    return Piece(name, rows), n_bad


def _drawn(
    below: np.uint64, seed: int, on_bad: OnBad, number: int, batches: Iterator[Batch]
) -> list[tuple[NDArray[np.uint64], NDArray[np.float32]]]:
    """The vectors with small hashes, and these: the sample does not depend on the rows' order."""
    found = []
    for batch in batches:
        matrix, _ = batch.read(None, on_bad)
        hashes = _row_hashes(matrix, seed)
        found.append((hashes[hashes <= below], matrix[hashes <= below]))
    return found


def _row_hashes(matrix: NDArray[np.float32], seed: int) -> NDArray[np.uint64]:
    """A uint64 hash of each row's bytes, the same on every machine."""
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


def _manifest(coder: Coder, parts: list[Piece], ids: str | None) -> Manifest:
    known = coder.n_bits_, coder.n_features_in_, coder.method, coder_checksum(coder)
    if ids:
        pieces = tuple(replace(part, column=ids) for part in parts)
        return Manifest(*known, ids="given", pieces=pieces)
    *firsts, n_rows = accumulate((part.rows for part in parts), initial=0)
    pieces = tuple(replace(part, first=row) for part, row in zip(parts, firsts, strict=True))
    return Manifest(*known, next_number=n_rows, ids="numbers", pieces=pieces)


class _Folder:
    """The folder to write: parts, which have the name of the job, the coder, and the manifest."""

    def __init__(self, target: Any, source: Vectors, overwrite: bool, job: str | None) -> None:
        self._files, self._path = locate(target)
        self.address = os.fspath(target) if is_address(target) else self._path
        self._listed = set[str]()
        before = self._files.get_file_info(self._path).type
        if before == fs.FileType.File:
            raise InputError(f"{target} is a file, expected a folder to write")
        self._is_new, there = before == fs.FileType.NotFound, self._there()
        # Files that a collection lists are none of this job.
        self.job = job if job and MANIFEST not in there else uuid4().hex[:16]
        self._old = {name: info for name, info in there.items() if self.job not in name}
        if n := len([name for name in there if name.endswith(f"{self.job}.parquet")]):
            warn_caller(f"{target}: {n} finished parts of the same job are used again", ReadWarning)
        if self._old and not overwrite:
            found = f"{target} holds {len(self._old)} files already"
            raise InputError(f"{found}: name another folder, or {OVERWRITE}")
        if self._old and source.may_be_in(self._files, self._path, MANIFEST in self._old):
            raise InputError(f"{target} may hold the vectors to encode: choose another output")
        self._files.create_dir(self._path)

    def commit(self, coder: Coder, manifest: Manifest) -> int:
        """Write the coder and the manifest, delete what is old; gives the bytes of the parts."""
        sizes = {name: info.size for name, info in self._there().items()}
        names = {piece.file for piece in manifest.pieces}
        if missing := names - set(sizes):
            found = f"{len(missing)} of {len(names)} parts are missing"
            hint = "workers on other machines must write to a shared folder or an object store"
            raise ClusterError(f"{self.address}: {found}: {hint}")
        with tempfile.TemporaryDirectory() as temporary:
            write_coder(Path(temporary, CODER), coder)
            contents = {MANIFEST: manifest_json(manifest)}
            contents[CODER] = Path(temporary, CODER).read_bytes()
        with contextlib.ExitStack() as staged:  # the first file is renamed last
            for name, content in contents.items():
                path = staged.enter_context(tasks.new_file(self._files, f"{self._path}/{name}"))
                with self._files.open_output_stream(path) as stream:
                    stream.write(content)
            self._listed = names | set(contents)  # from here on, what is new stays
            if MANIFEST in self._old:  # whose coder is replaced
                self._delete(self._old[MANIFEST])
        for name in set(self._old) - self._listed:
            self._delete(self._old[name])
        return sum(sizes[name] for name in names)

    def without_repeats(
        self, pieces: list[Piece], ids: str, repeats: Repeats | None, name: str
    ) -> list[Piece]:
        """The pieces without rows that repeat an id, or an error if these are to be refused."""
        columns = (read_one(self._files, f"{self._path}/{each.file}", ids) for each in pieces)
        words, repeated = Vocabulary.with_repeats(chain.from_iterable(map(normalize_ids, columns)))
        if not repeated:
            return pieces
        first = f"{words[repeated[0]]!r} in row {repeated[0]:,} of all"
        if repeats != "first":
            hint = 'each id once (repeats="first", or --repeats first, keeps the first row of each)'
            raise ReadError(f"{name}, column {ids!r}: found again {first}, expected {hint}")
        left_out = f"{len(repeated):,} rows with a repeated id left out"
        warn_caller(f"{name}: {left_out}, the first {first}", ReadWarning)
        kept, starts = list[Piece](), [*accumulate((each.rows for each in pieces), initial=0)]
        for piece, (start, stop) in zip(pieces, pairwise(starts), strict=True):
            rows = np.setdiff1d(np.arange(start, stop), repeated) - start
            if len(rows) < piece.rows:
                table = (
                    parquet.open_table(f"{self._path}/{piece.file}", self._files).read().take(rows)
                )
                piece = Piece(f"first-{piece.file}", len(rows))
                path = f"{self._path}/{piece.file}"
                tasks.write_parquet(self._files, path, [table], table.schema.metadata)
            kept += [piece] if len(rows) else []
        return kept

    def clean(self) -> None:
        """Delete what is new and not listed, such as the file of a task that was killed."""
        with contextlib.suppress(OSError):
            for name, info in self._there().items():
                if self.job in name and name not in self._listed:
                    self._delete(info)
            if self._is_new and not self._there():
                self._files.delete_dir(self._path)

    def _delete(self, info: Any) -> None:
        is_folder = info.type == fs.FileType.Directory
        (self._files.delete_dir if is_folder else self._files.delete_file)(info.path)

    def _there(self) -> dict[str, Any]:
        found = self._files.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return {info.base_name: info for info in found}


# -- the vectors -----------------------------------------------------------------------------------


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
        """The good vectors, float32 (n, dims), and the numbers of the bad rows to skip."""
        matrix, bad, found = parquet.vectors_of(parquet.column_of(self.table, self.column), dims)
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
            paths = parquet.parquet_files(path, files)
            with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
                tables = list(pool.map(lambda file: parquet.open_table(file, files), paths))
            self.schema = tables[0].schema_arrow
            self._stamps = [(i.path, i.size, i.mtime_ns) for i in files.get_file_info(paths)]
            for file, data in zip(paths, (table.metadata for table in tables), strict=True):
                for number, group in enumerate(map(data.row_group, range(data.num_row_groups))):
                    self._groups.append((file, number, group.num_rows, group.total_byte_size))
            if self.n_rows == 0:
                raise ReadError(f"{source}: found {len(paths)} files of 0 rows, expected vectors")
        found = parquet.find_columns(self.schema, self.name, column, ids or False).vectors
        if len(found) != 1 or pa.types.is_floating(parquet.type_of(self.schema, found[0])):
            raise ReadError(f"{self.name}: found columns of floats, expected one of float lists")
        self.column: str = found[0]

    @property
    def n_rows(self) -> int:
        """The number of rows; Ray may have to run a dataset to count them."""
        if self._dataset is not None:
            return int(self._dataset.count())
        return sum(rows for _, _, rows, _ in self._groups)

    def digest(self, how: list[Any], workers: int | None) -> str | None:
        """What tells a job from others: by its files, their pieces and `how`; None of a dataset."""
        if self._dataset is not None:
            return None
        work = [how, self._stamps, self.column, self.pieces(tasks.n_processors(workers))]
        return hashlib.sha256(json.dumps(work).encode()).hexdigest()[:16]

    def may_be_in(self, files: Any, folder: str, is_ours: bool) -> bool:
        """Whether a file of the vectors may be in a folder; `is_ours`: it is a collection."""
        if self._dataset is not None:  # Ray does not always know its files
            return not is_ours
        is_same = files.equals(locate(self.name)[0])
        return is_same and any(file.startswith(f"{folder}/") for file, *_ in self._groups)

    def mapped(
        self, step: Callable[[int, Iterator[Batch]], Any], keep: Sequence[str] = (),
        workers: int | None = None, progress: Progress | None = None,
    ) -> list[Any]:  # fmt: skip
        """What workers return for each piece, in row order, of its number and its batches."""
        pieces: Any = self._blocks()
        report: Any = None
        if self._dataset is None:
            pieces = self.pieces(tasks.n_processors(workers))
            report = None if progress is None else lambda done: progress(done, len(pieces))
        own = self.name, self.column, list(keep)
        calls = ((piece, step, number, *own) for number, piece in enumerate(pieces))
        return tasks.gathered(map_piece, calls, workers, report)

    def batches(self, keep: Sequence[str]) -> Iterator[Batch]:
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
        groups, schema = (
            [group for _, group in of_file],
            parquet.open_table(file, files).schema_arrow,
        )
        if missing := [name for name in (column, *keep) if parquet.type_of(schema, name) is None]:
            found = f"found columns {', '.join(schema.names[:12])}"
            raise ReadError(f"{file}: {found}, expected {', '.join(missing)} too")
        for first, rows in parquet.read_batches(
            file, [column, *keep], files, groups=groups, size=ROWS_AT_ONCE
        ):
            yield Batch(pa.Table.from_batches([rows]), column, file, first)
