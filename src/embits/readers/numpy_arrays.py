"""NumPy's .npy and .npz. Pickled objects inside are never loaded."""

from __future__ import annotations

import math
import mmap
import zipfile
from collections.abc import Callable, Iterator, Sequence
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from embits.readers.blocks import Block, CountedBlocks, Position, rows_at_once
from embits.readers.rows import as_float32, named_rows
from embits.readers.source import DAMAGED_ARCHIVE, Source, largest_inside
from embits.readers.words_sidecar import Words, words_for
from embits.vectors import WordVectors

_LONGEST_HEADER = 2000  # that of a matrix has 118 bytes
_DAMAGED = (*DAMAGED_ARCHIVE, ValueError, TypeError, SyntaxError, TokenError, OSError, LookupError)


def read_npy(source: Source, words: Words | None) -> WordVectors:
    """Read a .npy; float32 stays mapped."""
    array = map_npy(source)
    matrix = as_float32(source, array)
    return named_rows(source, words_for(source, len(array), words), matrix)


class MappedBlocks(CountedBlocks):
    """A mapped matrix in blocks; its pages are let go of as soon as they were copied."""

    def __init__(
        self,
        source: Source,
        array: NDArray[Any],
        words: Sequence[str] | None,
        widen: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray,
    ) -> None:
        as_float32(source, array[:0])  # refuses what is no matrix of numbers
        n_rows = source.rows_wanted(len(array))
        super().__init__(source, array.shape[1], n_rows, words, words is not None)
        self._array, self._widen = array, widen

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        """The blocks from `start` on."""
        while start.offset < self._n_rows:
            stop = min(start.offset + rows_at_once(self.dims), self._n_rows)
            part = self._widen(self._array[start.offset : stop])
            with np.errstate(over="ignore", invalid="ignore"):  # refused as not finite
                matrix = np.array(part, dtype=np.float32, order="C")
            drop_pages(self._array)
            named = self.words_at(start.offset, stop) if words else None
            block = self.block(start, matrix, named)
            yield block
            start = block.end


def drop_pages(array: NDArray[Any]) -> None:
    """Let go of the pages of a mapped file that were read: the process is smaller by them."""
    mapped = getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def open_npy(source: Source, words: Words | None) -> MappedBlocks:
    """A .npy, to be read in blocks."""
    array = map_npy(source)
    as_float32(source, array[:0])
    return MappedBlocks(source, array, words_for(source, len(array), words))


def map_npy(source: Source) -> NDArray[Any]:
    """The array of a .npy, mapped."""
    try:
        with source.path.open("rb") as file:
            _check_header(file, source.size)
        array: NDArray[Any] = np.load(source.path, mmap_mode="r", allow_pickle=False)
    except _DAMAGED as error:
        raise source.refusal(f"no usable array ({error!s:.200})", "a .npy of numbers") from error
    return array


def read_npz(source: Source, words: Words | None) -> WordVectors:
    """Read a .npz: its one matrix, and the words in its one array of strings or beside it."""
    try:
        _check_sizes(source)
        with np.load(source.path, allow_pickle=False) as archive:
            arrays: dict[str, NDArray[Any]] = {name: archive[name] for name in archive.files}
    except _DAMAGED as error:
        raise source.refusal(
            f"no usable arrays ({error!s:.200})", "a .npz of numbers and words"
        ) from error
    matrices = [a for a in arrays.values() if a.ndim == 2 and a.dtype.kind in "fiu"]
    names = [a for a in arrays.values() if a.ndim == 1 and a.dtype.kind in "US"]
    if len(matrices) != 1 or len(names) > 1:
        found = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in arrays.items())
        raise source.refusal(found or "nothing", "one matrix, and at most one list of words")
    own_words = names[0].astype(np.str_).tolist() if names and words is None else words
    matrix = as_float32(source, matrices[0])
    return named_rows(source, words_for(source, len(matrices[0]), own_words), matrix)


def _check_sizes(source: Source) -> None:
    """Hold what the archive and the arrays in it claim against what is there.

    Raises:
        ValueError: They claim more.
    """
    with zipfile.ZipFile(source.path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > largest_inside(source.size):
            raise ValueError("it would unpack to a hundred times its size")
        for member in members:
            with archive.open(member) as file:
                _check_header(file, member.file_size)


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse an array larger than its file: NumPy would make room for it, or miscount."""
    version = npy_format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy_format.read_array_header_1_0(file, _LONGEST_HEADER)
    else:
        shape, _, dtype = npy_format.read_array_header_2_0(file, _LONGEST_HEADER)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size} bytes")
