"""NumPy .npy and .npz. Pickled objects are never loaded."""

from __future__ import annotations

import math
import zipfile
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from embits.errors import MissingFileError
from embits.readers import magic
from embits.readers.array_blocks import ArrayBlocks, check_matrix
from embits.readers.source import DAMAGED_ARCHIVE, Source, largest_inside
from embits.readers.words_sidecar import FoundWords, words_for

_MAX_HEADER = 2000  # bytes; the header of a matrix has 118
_DAMAGED = (*DAMAGED_ARCHIVE, ValueError, TypeError, SyntaxError, TokenError, OSError, LookupError)


def open_npy(source: Source) -> ArrayBlocks:
    """The matrix of a .npy, mapped."""
    array = check_matrix(source, map_npy(source))
    return ArrayBlocks(source, array, words_for(source, *array.shape))


def map_npy(source: Source) -> NDArray[Any]:
    """The array of a .npy, mapped."""
    try:
        with source.path.open("rb") as file:
            if file.read(len(magic.NPY)) != magic.NPY:
                raise source.read_error("a file of another format", "a .npy of numbers")
            file.seek(0)
            _check_header(file, source.size)
        array: NDArray[Any] = np.load(source.path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise MissingFileError(source.path) from None
    except _DAMAGED as error:
        raise source.read_error(f"no usable array ({error!s:.200})", "a .npy of numbers") from error
    return array


def open_npz(source: Source) -> ArrayBlocks:
    """The one matrix of a .npz; its words are its one array of strings, or beside the file."""
    try:
        _check_sizes(source)
        with np.load(source.path, allow_pickle=False) as archive:
            arrays: dict[str, NDArray[Any]] = {name: archive[name] for name in archive.files}
    except _DAMAGED as error:
        raise source.read_error(
            f"no usable arrays ({error!s:.200})", "a .npz of numbers and words"
        ) from error
    matrices = [a for a in arrays.values() if a.ndim == 2 and a.dtype.kind in "fiu"]
    names = [a for a in arrays.values() if a.ndim == 1 and a.dtype.kind in "US"]
    if len(matrices) != 1 or len(names) > 1:
        found = ", ".join(f"{name} {a.dtype}{list(a.shape)}" for name, a in arrays.items())
        raise source.read_error(found or "nothing", "one matrix, and at most one list of words")
    if names and source.words is None:
        blocks = ArrayBlocks(source, matrices[0], FoundWords(names[0].astype(np.str_).tolist()))
        blocks.words_apart = False
        return blocks
    return ArrayBlocks(source, matrices[0], words_for(source, *matrices[0].shape))


def _check_sizes(source: Source) -> None:
    """Compare the sizes in the headers of an archive with the size of the file.

    Raises:
        ValueError: The headers say more.
    """
    with zipfile.ZipFile(source.path) as archive:
        members = archive.infolist()
        if sum(member.file_size for member in members) > largest_inside(source.size):
            raise ValueError("it would unpack to a hundred times its size")
        for member in members:
            with archive.open(member) as file:
                _check_header(file, member.file_size)


def _check_header(file: IO[bytes], size: int) -> None:
    """Refuse an array larger than its file: NumPy would allocate it, or miscount."""
    version = npy_format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = npy_format.read_array_header_1_0(file, _MAX_HEADER)
    else:
        shape, _, dtype = npy_format.read_array_header_2_0(file, _MAX_HEADER)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of shape {shape} in {size} bytes")
