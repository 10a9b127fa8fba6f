"""Fit a coder on float vectors and encode them, in memory or from file to file."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, to_numpy
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.coders import DEFAULT_METHOD, Coder, coder_checksum, draw_rows, new_coder
from embits.coders.registry import check_fit
from embits.collection import Collection, load, load_coder
from embits.collection.changes import working_folder
from embits.collection.opening import load_file
from embits.errors import InputError
from embits.file.overwrite import check_target, is_embits_file
from embits.jobs import stream
from embits.jobs.stream import Checkpoint, StepProgress, Steps
from embits.readers import holds_words, new_source, read_source
from embits.readers.blocks import Blocks
from embits.readers.formats import recognize
from embits.readers.gensim_models import KeyedVectors, from_keyed_vectors
from embits.readers.parquet import is_table, read_columns, read_table
from embits.readers.several import are_paths
from embits.readers.source import (
    AnyPath,
    IdColumn,
    OnBad,
    Paths,
    ReadOptions,
    Repeats,
    Source,
    Words,
)
from embits.remote import is_address, refuse_output
from embits.search.cells import wanted_cells
from embits.segment import LENGTHS
from embits.vectors import WordVectors, check_unique, normalize_ids, refuse_empty_ids


def binarize(
    vectors: WordVectors | KeyedVectors | NDArray[Any] | Paths,
    n_bits: int | None = None,
    method: str | None = None,
    *,
    ids: Any = None,
    column: str | None = None,
    encoding: str = "utf-8",
    sample: int | None = None,
    coder: Coder | None = None,
    lengths: bool = False,
    cells: int | str | None = None,
    progress: Progress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Fit a coder on vectors and encode them.

    A large file is read in blocks: codes and words come into memory, floats do not.

    Args:
        vectors: WordVectors; a mapping of words to vectors; gensim's `KeyedVectors`, or a model
            that has them as `wv`; a matrix of shape (n, dims), of NumPy, PyTorch or a column of a
            data frame; a table of pandas, polars or Arrow; or what `read_vectors` reads: the path
            or address of a file, a folder, or a list of files.
        n_bits: Bits of a code; None is 256, or for "sign" the dimensions of the input.
        method: The coder: "near-lossless" (None), "paper", "lsh", "sign", "itq", "sparse",
            "neural", or the name of a coder that `register_coder` has registered.
        ids: The ids of the rows, strings or whole numbers, each once; they replace those in or
            beside a file. For a file or table, also the name of a column, or False for none.
            None uses those of the file, or row numbers if there are none.
        column: The column of vectors of a table or Parquet file, if there are several.
        encoding: How words are encoded in a file of text or `.bin`, such as "latin-1".
        sample: Number of rows, drawn at random, to fit on. None passes all rows to the coder;
            most coders then choose a sample themselves.
        coder: A coder instead of `n_bits`, `method` and `params`. One that is fitted stays so.
        lengths: Store the lengths of the vectors, a byte each, for `metric="dot"` and decoded
            vectors of their true length.
        cells: Store the codes in so many cells, for searches with `recall`; "auto" chooses how
            many. See `BinaryVectors.with_cells`.
        progress: Called with (done, total) during the fit.
        params: Parameters of the coder, such as `random_state`.

    Returns:
        BinaryVectors, in memory; `save` writes them.

    Raises:
        InputError: An argument is wrong, or `coder` is given together with arguments it replaces.
        ReadError: The file cannot be read.

    Example:
        >>> import numpy as np, embits
        >>> vectors = embits.WordVectors(["up", "down"], np.array([[1, 0.5], [-1, 0.5]]))
        >>> bits = embits.binarize(vectors, n_bits=64, method="lsh")
        >>> bits.n_bits, len(bits), bits.most_similar("up", topn=1)[0][0]
        (64, 2, 'down')
    """
    coder = _coder_of(coder, n_bits, method, params)
    if sample is not None and coder.__sklearn_is_fitted__():
        raise InputError("the coder is fitted, so sample would be ignored: leave it out")
    steps = Steps(lambda name, *done: progress(*done) if progress and name == "fitting" else None)
    has_columns = are_paths(vectors) or is_table(vectors)
    in_file = ids if has_columns and (ids is False or isinstance(ids, str)) else None
    ids = None if ids is None or in_file is not None else normalize_ids(ids)
    if ids is not None:
        refuse_empty_ids(ids)
        check_unique(ids)
    if are_paths(vectors):
        source = new_source(vectors, ids=in_file, column=column, encoding=encoding)
        if ids is None or not holds_words(source):
            source = source if ids is None else replace(source, words=ids)
            return run(source, coder, Memory(), steps, sample, lengths, cells)
        vectors = read_source(source)
    elif encoding != "utf-8" or (column is not None and not has_columns):
        raise InputError("column is for a table or file, and encoding for the path of a file")
    elif has_columns:
        vectors = read_table(vectors, column, False if ids is not None else in_file)
    vectors = _word_vectors(vectors)
    if ids is not None:
        if len(ids) != len(vectors):
            raise InputError(f"{len(ids)} ids for {len(vectors)} rows of vectors")
        vectors = replace(vectors, words=ids)
    return run(vectors, coder, Memory(), steps, sample, lengths, cells)


def binarize_to_file(
    vectors: Paths,
    target: AnyPath,
    /,  # NearLossless has a parameter `target`
    n_bits: int | None = None,
    method: str = DEFAULT_METHOD,
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    repeats: Repeats | None = None,
    ids: IdColumn = None,
    column: str | None = None,
    encoding: str = "utf-8",
    sample: int | None = None,
    subwords: bool = True,
    lengths: bool = False,
    cells: int | str | None = None,
    overwrite: bool = False,
    progress: StepProgress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Binarize a file of vectors of any size into a file of bits.

    The result is that of `binarize(read_vectors(vectors)).save(target)`, byte for byte. A file
    over 64 MiB (but not `.npz`, JSON and fastText `.bin`) is read in blocks, several times, and
    progress is kept in a folder `.NAME.partial` beside the target: the same call resumes.

    `n_bits`, `method`, `sample`, `lengths`, `cells` and `params` are those of `binarize`; `limit`,
    `words`, `on_bad`, `repeats`, `ids`, `column` and `encoding` are those of `read_vectors`.

    Args:
        vectors: The file to read, or several as for `read_vectors`.
        target: The file to write, atomically. A file of codes is replaced.
        subwords: Keep fastText's subwords.
        overwrite: Replace any other existing file as well; never an input.
        progress: Called as progress(step, done, total), where step is a word.

    Raises:
        ReadError: The vectors cannot be read; nothing is left behind.
        InputError: An argument is wrong, or the target may not be replaced or is being written.
        OSError: The file could not be written; progress is kept.

    Example:
        >>> import pathlib, tempfile, numpy as np
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "rows.npy")
        >>> np.save(path, np.random.default_rng(0).normal(size=(500, 20)))
        >>> bits = binarize_to_file(path, path.with_suffix(".bits"), n_bits=64, method="lsh")
        >>> len(bits), bits.n_bits
        (500, 64)
        >>> folder.cleanup()
    """
    coder = new_coder(method, n_bits, params)
    source = _source(
        vectors, target, overwrite, limit=limit, words=words, on_bad=on_bad,
        repeats=repeats, ids=ids, column=column, encoding=encoding,
    )  # fmt: skip
    sink = File(Path(target), overwrite, subwords)
    return run(source, coder, sink, Steps(progress), sample, lengths, cells)


def encode_to_file(
    coder: Coder | BinaryVectors | AnyPath,
    vectors: Paths,
    target: AnyPath,
    *,
    lengths: bool = False,
    cells: int | str | None = None,
    overwrite: bool = False,
    progress: StepProgress | None = None,
    **reading: Unpack[ReadOptions],
) -> BinaryVectors:
    """Encode a file of vectors of any size with a fitted coder, into a file of bits.

    The other arguments, the result and the errors are those of `binarize_to_file`.

    Args:
        coder: The coder, or what holds one: BinaryVectors, or the path of their file.
        reading: As for `read_vectors`: `limit`, `words`, `on_bad`, `repeats`, `ids`, `column`,
            `encoding`.

    Raises:
        InputError: The vectors have other dimensions than the coder takes.
    """
    inputs = () if isinstance(coder, Coder | BinaryRows) else (coder,)
    source = _source(vectors, target, overwrite, inputs, **reading)
    if isinstance(coder, BinaryRows):
        coder = coder.coder
    elif not isinstance(coder, Coder):
        coder = load_coder(coder)
    coder.check_fitted()
    sink = File(Path(target), overwrite)
    return run(source, coder, sink, Steps(progress), lengths=lengths, cells=cells)


def encode_to_collection(
    collection: Collection,
    vectors: Paths,
    *,
    columns: Iterable[str] | None = None,
    lengths: bool = False,
    update: bool = False,
    progress: StepProgress | None = None,
    **reading: Unpack[ReadOptions],
) -> int:
    """Add a file of vectors of any size to a collection, in one change.

    Returns how many rows were added or replaced. `progress` and `reading` are those of
    `encode_to_file`.

    Args:
        vectors: The file to read, or several as for `read_vectors`: of vectors, whose words are
            the ids; or a file or collection of codes that the same coder made. Over 64 MiB are read
            in blocks, unless the collection keeps vectors.
        columns: Names of other columns of Parquet files, or of folders such as `year=2024`, to
            store as columns of the rows.
        lengths: Store the lengths of the vectors, if these are the first rows; later rows follow
            the first.
        update: Replace the rows whose ids already exist, as `Collection.upsert` does.

    Raises:
        ReadError: The vectors cannot be read. The collection is unchanged.
        InputError, OSError: As for `Collection.add`.
    """
    # Rows without ids get those that are next, whether bad ones are left out or not.
    kept = tuple(columns or ())
    source = replace(new_source(vectors, **reading), keeps_numbers=False, kept=kept)
    table = None if columns is None else read_columns(source)
    sink = IntoCollection(collection, source, table, update)
    if not source.files and (is_embits_file(source.path) or source.path.is_dir()):
        with source.fetched.named() if source.fetched else nullcontext():
            bits = load(source.path, verify=source.fetched is not None)
        if (limit := reading.get("limit")) is not None and limit < len(bits):
            bits = bits.subset(rows=np.arange(limit))
        sink.put(bits)
        return len(bits)
    if collection.manifest.keep:
        floats = read_source(source, Steps(progress).start("reading"))
        sink.put(floats, lengths=lengths)
        return len(floats)
    collection.coder.check_fitted()
    if len(collection):
        lengths = LENGTHS in collection.snapshot().columns
    try:
        return len(run(source, collection.coder, sink, Steps(progress), lengths=lengths))
    except KeyboardInterrupt:
        if sink.has_begun:
            raise
        raise KeyboardInterrupt("interrupted; nothing was added") from None


# -- one loop, and where its rows go ---------------------------------------------------------------


class Sink(Protocol):
    """Where the encoded rows of a job go."""

    in_memory: bool
    """Whether codes are read into memory, and not mapped from the folder of the job."""

    def folder(self, job: Mapping[str, object]) -> AbstractContextManager[Checkpoint]:
        """The folder of a job that reads its input in blocks."""

    def write(self, bits: BinaryVectors) -> BinaryVectors:
        """Store all rows; returns them as the caller gets them."""


def run(
    vectors: WordVectors | Source,
    coder: Coder,
    sink: Sink,
    steps: Steps,
    sample: int | None = None,
    lengths: bool = False,
    cells: int | str | None = None,
) -> BinaryVectors:
    """Fit the coder if it is not fitted, encode the vectors, and write the rows to a sink.

    A large file is read in blocks, several times; what is small is read whole, for the same result.
    """
    if cells is not None:
        wanted_cells(cells, 1, 1)  # refuses what is no number of cells before the fit
    is_fitted = coder.__sklearn_is_fitted__()
    opened: WordVectors | Blocks
    if isinstance(vectors, WordVectors):
        opened = vectors
    else:
        source, blocks = vectors, stream.open_large(vectors, steps, None if is_fitted else coder)
        opened = blocks or read_source(source, steps.start("reading"))
        if is_fitted and opened.dims != (dims := coder.n_features_in_):
            found = f"vectors of {opened.dims} dimensions, but the coder takes {dims}"
            raise InputError(f"{source.name}: {found}")
    with ExitStack() as resources:
        if isinstance(opened, WordVectors):
            if not is_fitted:
                rows = draw_rows(len(opened), sample, coder)
                matrix = opened.matrix if rows is None else opened.matrix[rows]
                coder.fit(matrix, progress=steps.start("fitting"))
            bits = BinaryVectors.encoded(opened, coder, lengths=lengths)
        else:
            before, checksum = stream.input_fingerprint(source), is_fitted and coder_checksum(coder)
            about = coder.method, repr(sorted(coder.get_params().items())), checksum
            job = {"input": before, "coder": about, "sample": sample, "lengths": lengths}
            passes = stream.Passes(resources.enter_context(sink.folder(job)), opened, steps)
            coder = coder if is_fitted else passes.fit(coder, sample)
            bits = passes.encode(coder, lengths, in_memory=sink.in_memory)
            if stream.input_fingerprint(source) != before:
                raise InputError(f"{source.name}: it has changed while it was read")
        if cells is not None:
            steps.start("making cells")
            bits = bits.with_cells(cells)
        return sink.write(bits)


class Memory:
    """A sink that returns the rows. No floats of a large file come into memory, all codes do."""

    in_memory = True

    @contextmanager
    def folder(self, job: Mapping[str, object]) -> Iterator[Checkpoint]:
        with tempfile.TemporaryDirectory(prefix="embits-") as folder:
            yield Checkpoint(Path(folder))

    def write(self, bits: BinaryVectors) -> BinaryVectors:
        return bits


@dataclass
class File:
    """A sink that writes a file. The folder beside it stays if the job is stopped."""

    path: Path
    overwrite: bool
    subwords: bool = True  # whether those of fastText are kept
    in_memory = False

    def folder(self, job: Mapping[str, object]) -> AbstractContextManager[Checkpoint]:
        return stream.checkpoint_beside(self.path, job)

    def write(self, bits: BinaryVectors) -> BinaryVectors:
        if not self.subwords:
            bits.subwords = None
        bits.save(self.path, overwrite=self.overwrite)
        return load_file(self.path)


@dataclass
class IntoCollection:
    """A sink that adds the rows to a collection, or updates those whose ids exist."""

    collection: Collection
    source: Source
    table: Any  # the columns of all rows of the source, of Arrow, if some are kept
    update: bool
    has_begun: bool = False
    in_memory = False  # there may be more codes than memory

    @contextmanager
    def folder(self, job: Mapping[str, object]) -> Iterator[Checkpoint]:
        with working_folder(self.collection.path) as folder:
            yield Checkpoint(folder)

    def write(self, bits: BinaryVectors) -> BinaryVectors:
        self.put(bits)
        return bits

    def put(self, rows: BinaryRows | WordVectors, lengths: bool = False) -> None:
        """Add rows, and those of the table that were not left out, in one change."""
        self.has_begun, table = True, self.table
        if table is not None and len(table) != len(rows):
            table = table.take(_rows_read(self.source))
        change = self.collection.upsert if self.update else self.collection.add
        change(rows, columns=table, lengths=lengths)


def _rows_read(source: Source) -> list[int]:
    """The numbers of the rows of a table that are not left out."""
    words: list[str] = []
    rows: list[int] = []
    with warnings.catch_warnings(action="ignore"):  # they were shown before
        opened = recognize(source).open(source)
        for block in opened.read(opened.first, words=opened.has_words):
            words += block.words or ()
            rows += block.places.tolist()
    return sorted(dict(zip(words[::-1], rows[::-1], strict=True)).values()) if words else rows


def _source(
    vectors: Paths,
    target: AnyPath,
    overwrite: bool,
    inputs: Sequence[AnyPath] = (),
    **reading: Unpack[ReadOptions],
) -> Source:
    """The vectors of a job that may write its target; it is checked before a file is fetched."""
    refuse_output(target)
    if is_address(vectors):
        check_target(target, inputs, overwrite, codes=True)
    source = new_source(vectors, **reading)
    check_target(target, [*source.paths(), *inputs], overwrite, codes=True)
    return source


def _coder_of(
    coder: Coder | None, n_bits: int | None, method: str | None, params: Mapping[str, Any]
) -> Coder:
    if coder is None:
        return new_coder(DEFAULT_METHOD if method is None else method, n_bits, params)
    if not isinstance(coder, Coder):
        hint = "a coder such as embits.ITQ(n_bits=64); method= takes the name of a method"
        raise InputError(f"coder is {coder!r}, expected {hint}")
    others = {"n_bits": n_bits, "method": method, **params}
    if names := [name for name, value in others.items() if value is not None]:
        raise InputError(f"coder is given, so {', '.join(names)} would be ignored: leave it out")
    check_fit(type(coder))
    return coder


def _word_vectors(vectors: Any) -> WordVectors:
    if isinstance(vectors, WordVectors):
        return vectors
    if vectors is None:
        raise InputError("vectors is None, expected a matrix, WordVectors or the path of a file")
    if isinstance(vectors, Mapping):
        return WordVectors(list(vectors), to_numpy(list(vectors.values())))
    if hasattr(vectors, "index_to_key") or hasattr(vectors, "wv"):
        return from_keyed_vectors(getattr(vectors, "wv", vectors))
    return WordVectors(None, vectors)
