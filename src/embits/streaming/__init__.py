"""Larger than memory: from a file of vectors to a file of bits, a block at a time."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors, load
from embits.coders import DEFAULT_METHOD, Coder
from embits.errors import EmbitsError, InputError, ReadWarning
from embits.file import store
from embits.file.contents import read_coder, to_contents, write_coder
from embits.jobs import binarize, new_coder, sample_of
from embits.readers import located, open_blocks, read_vectors
from embits.readers.blocks import Blocks
from embits.readers.source import OnBad
from embits.readers.words_sidecar import Words
from embits.streaming.checkpoint import Checkpoint, Stage
from embits.streaming.identity import coder_identity, file_identity, words_identity
from embits.streaming.passes import Survey, encode, gather, read_vocabulary, spooled, survey

__all__ = ["StepProgress", "binarize_in_blocks", "binarize_to_file", "encode_to_file"]

StepProgress: TypeAlias = Callable[[str, int, int], None]  # the step's name, done, total

STREAM_FROM = 64 << 20  # bytes of a file; a smaller one is read whole, for the same result
STREAM_PACKED_FROM = 16 << 20
_PACKED = (b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04")


@dataclass(frozen=True)
class Input:
    """A file of vectors and how to read it: the arguments of `read_vectors`."""

    path: Path
    limit: int | None = None
    words: Words | None = None
    on_bad: OnBad = "raise"

    def identity(self) -> dict[str, Any]:
        """What makes it the same input as one before."""
        words = words_identity(self.words)
        return file_identity(self.path) | {
            "limit": self.limit, "on_bad": self.on_bad, "words": words,
        }  # fmt: skip

    def is_large(self) -> bool:
        """Whether it is read in blocks."""
        try:
            with self.path.open("rb") as file:
                is_packed = file.read(6).startswith(_PACKED)
                size = os.fstat(file.fileno()).st_size
        except OSError:
            return False  # the reader says what is wrong
        return size > (STREAM_PACKED_FROM if is_packed else STREAM_FROM)


def binarize_to_file(
    vectors: str | os.PathLike[str],
    target: str | os.PathLike[str],
    n_bits: int | None = None,
    method: str = DEFAULT_METHOD,
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    sample: int | None = None,
    subwords: bool = True,
    progress: StepProgress | None = None,
    **params: Any,
) -> BinaryVectors:
    """Binarize a file of vectors of any size into a file of bits.

    The result is that of `binarize(read_vectors(vectors)).save(target)`, byte for byte. A file
    over 64 MiB is read in blocks, several times, and what is done is kept in a folder
    `.NAME.partial` beside the target: after an interrupt or a kill, the same call goes on from
    there. JSON, `.npz` and fastText's `.bin` are read whole.

    Args:
        vectors: The file to read.
        target: The file to write; what was there stays until the new one is whole.
        n_bits: As for `binarize`.
        method: As for `binarize`.
        limit: Read the first rows only, this many.
        words: The words of a file that holds only a matrix: a sequence, or the path of a file.
        on_bad: "raise" refuses a file with a bad row; "skip" leaves bad rows out and warns.
        sample: Fit on this many rows drawn at random; None on all, of which most coders look at
            a sample of their own.
        subwords: Keep fastText's subwords.
        progress: Called as progress(step, done, total), where step is a word.
        params: Parameters of the coder, such as `random_state`.

    Returns:
        The file, opened: mapped, not read.

    Raises:
        ReadError: The vectors cannot be read; nothing is left behind.
        InputError: An argument is wrong, or another process is writing the same file.
        OSError: The disk said no; what was done is kept.

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
    source, path = Input(located(vectors), limit, words, on_bad), Path(target)
    coder = new_coder(method, n_bits, params)
    steps = _Steps(progress)
    blocks = _blocks(source, steps)
    if blocks is None:
        floats = read_vectors(source.path, limit, words, on_bad, progress=steps.of("reading"))
        binary = binarize(floats, coder=coder, sample=sample, progress=steps.of("fitting"))
        if not subwords:
            binary.subwords = None
        binary.save(path)
        return binary
    job = {"verb": "binarize", "coder": [method, coder.get_params()], "sample": sample}
    with _checkpoint_beside(path, source, job) as checkpoint:
        found = survey(checkpoint, blocks)
        coder = _fitted(checkpoint, blocks, found, coder, sample, steps)
        _write(checkpoint, blocks, path, found, coder, steps)
    return load(path)


def encode_to_file(
    coder: Coder | BinaryVectors | str | os.PathLike[str],
    vectors: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    limit: int | None = None,
    words: Words | None = None,
    on_bad: OnBad = "raise",
    progress: StepProgress | None = None,
) -> BinaryVectors:
    """Code a file of vectors of any size with a fitted coder, into a file of bits.

    Args:
        coder: The coder, or what holds one: BinaryVectors, or the path of their file.
        vectors: The file to read.
        target: The file to write.
        limit: As for `binarize_to_file`, like all that follow.
        words: The words of a file that holds only a matrix.
        on_bad: "raise" or "skip".
        progress: Called as progress(step, done, total).

    Returns:
        The file, opened: mapped, not read.

    Raises:
        ReadError: The vectors cannot be read; nothing is left behind.
        InputError: They have other dimensions than the coder takes, or an argument is wrong.
        OSError: The disk said no; what was done is kept.
    """
    source, path = Input(located(vectors), limit, words, on_bad), Path(target)
    name = "the coder" if isinstance(coder, Coder | BinaryVectors) else f"the coder in {coder}"
    if not isinstance(coder, Coder):
        coder = coder.coder if isinstance(coder, BinaryVectors) else read_coder(Path(coder))
    steps = _Steps(progress)
    blocks = _blocks(source, steps)
    if blocks is None:
        floats = read_vectors(source.path, limit, words, on_bad, progress=steps.of("reading"))
        _check_dims(source, floats.dims, coder, name)
        binary = BinaryVectors.encoded(floats, coder)
        binary.save(path)
        return binary
    _check_dims(source, blocks.dims, coder, name)
    with _checkpoint_beside(
        path, source, {"verb": "encode", "coder": coder_identity(coder)}
    ) as checkpoint:
        _write(checkpoint, blocks, path, survey(checkpoint, blocks), coder, steps)
    return load(path)


def binarize_in_blocks(
    vectors: str | os.PathLike[str], coder: Coder, sample: int | None, progress: Any
) -> BinaryVectors | None:
    """What `binarize` makes of a large file: codes in memory, floats never; None: read it whole."""
    steps = _Steps(lambda step, *done: progress(*done) if progress and step == "fitting" else None)
    blocks = _blocks(Input(located(vectors)), steps)
    if blocks is None:
        return None
    with tempfile.TemporaryDirectory(prefix="embits-") as folder:
        checkpoint = Checkpoint(Path(folder, "checkpoint"), {})
        try:
            found = survey(checkpoint, blocks)
            fitted = _fitted(checkpoint, blocks, found, coder, sample, steps)
            codes = np.fromfile(encode(checkpoint, blocks, found, fitted), np.uint8)
            words = read_vocabulary(checkpoint, found.n_rows)
            return BinaryVectors(words, codes.reshape(found.n_rows, -1), fitted)
        finally:
            checkpoint.remove()


# -- the job ---------------------------------------------------------------------------------------


class _Steps:
    """The caller's progress callback, and the step that reading now belongs to."""

    def __init__(self, progress: StepProgress | None) -> None:
        self._progress = progress
        self.name = "checking"

    def __call__(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self.name, done, total)

    def of(self, name: str) -> Callable[[int, int], None]:
        """The callback of a step."""
        self.name = name
        return lambda done, total: self._progress(name, done, total) if self._progress else None


def _blocks(source: Input, steps: _Steps) -> Blocks | None:
    if not source.is_large():
        return None
    return open_blocks(source.path, source.limit, source.words, source.on_bad, steps)


def _check_dims(source: Input, dims: int, coder: Coder, name: str) -> None:
    if dims != coder.n_features_in_:
        raise InputError(
            f"{source.path}: vectors of {dims} dimensions, but {name} takes {coder.n_features_in_}"
        )


@contextmanager
def _checkpoint_beside(target: Path, source: Input, job: dict[str, Any]) -> Iterator[Checkpoint]:
    """The folder of the job: removed at its end or for an error of the input, kept otherwise."""
    target = target.resolve()
    job = job | {"input": source.identity(), "numpy": np.__version__, "writer": store.WRITER}
    checkpoint = Checkpoint(target.with_name(f".{target.name}.partial"), job)
    hint = f"what is done is kept in {checkpoint.folder}: the same command goes on from there"
    try:
        yield checkpoint
        if source.identity() != job["input"]:
            raise InputError(f"{source.path}: it has changed while it was read")
        checkpoint.remove()
    except EmbitsError:
        checkpoint.remove()
        raise
    except KeyboardInterrupt:
        checkpoint.close()
        raise KeyboardInterrupt(f"interrupted; {hint}") from None
    except BaseException:
        checkpoint.close()
        warnings.warn(hint, ReadWarning, stacklevel=4)
        raise


def _write(
    checkpoint: Checkpoint, blocks: Blocks, target: Path, found: Survey, coder: Coder, steps: _Steps
) -> None:
    """Encode everything, and put the file together."""
    steps.name = "encoding"
    codes = encode(checkpoint, blocks, found, coder)
    nothing = np.empty((0, coder.n_bytes_), np.uint8)
    contents = to_contents(read_vocabulary(checkpoint, found.n_rows), nothing, coder, None)
    store.write(target, contents, store.CodesOnDisk(codes, (found.n_rows, coder.n_bytes_)))


def _fitted(
    checkpoint: Checkpoint,
    blocks: Blocks,
    found: Survey,
    coder: Coder,
    sample: int | None,
    steps: _Steps,
) -> Coder:
    """The coder, fitted now or by the process that was stopped."""
    path = checkpoint.folder / "coder"
    with Stage(checkpoint, "fit", ()) as stage:
        if not stage.done:
            chosen = sample_of(found.n_rows, sample, coder)
            n = found.n_rows if chosen is None else len(chosen)
            looked_at = coder.rows_for_fit(n, blocks.dims)
            steps.name = "sampling"
            floats = gather(checkpoint, blocks, found, _composed(chosen, looked_at))
            steps.name = "fitting"
            coder.fit(spooled(floats, n, blocks.dims, looked_at), progress=steps)
            write_coder(path, coder)
            stage.save(None, done=True)
            checkpoint.record("gather", {"done": True, "lengths": {}})
            floats.unlink()
    return read_coder(path, verify=True)


def _composed(
    chosen: NDArray[np.int64] | None, looked_at: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """The rows of the file that the rows looked at, out of those chosen, are."""
    if chosen is None or looked_at is None:
        return looked_at if chosen is None else chosen
    return chosen[looked_at]
