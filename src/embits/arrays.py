"""Arrays: of other libraries and devices, in blocks, drawn from files, and of packed bits.

PyTorch is imported only when a device is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, first_line, from_extra

Scalar = TypeVar("Scalar", bound=np.generic)
Progress: TypeAlias = Callable[[int, int], None]  # called with (done, total)

_DEVICES = ("cpu", "cuda", "mps", "xpu")  # types of PyTorch devices that compute
BLOCK_ROWS = 2048  # rows at a time: what is computed of them stays in the processor's cache


def blocks(n: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cut n rows into blocks of `size`."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def as_float32(block: NDArray[Any]) -> NDArray[np.float32]:
    """A block of rows as C-ordered float32, copied only when it is something else."""
    return np.ascontiguousarray(block, dtype=np.float32)


def single(rows: NDArray[Scalar]) -> NDArray[Scalar]:
    """The single row of a matrix."""
    return rows.reshape(rows.shape[1])


def unit_rows(matrix: Any) -> NDArray[Any]:
    """Rows, (n, dims), of any array API library, divided by their length; zeros stay zeros."""
    if not isinstance(matrix, np.ndarray):
        return _unit_rows(namespace(matrix), matrix)  # type: ignore[no-any-return]
    unit = np.empty(matrix.shape, np.result_type(matrix, np.float32))
    for rows in blocks(len(matrix)):  # NumPy's vector_norm makes a copy of all the squares
        unit[rows] = _unit_rows(np, matrix[rows])
    return unit


def _unit_rows(xp: Any, matrix: Any) -> Any:
    lengths = xp.linalg.vector_norm(matrix, axis=1, keepdims=True)
    return matrix / xp.where(lengths > 0, lengths, xp.ones_like(lengths))


def row_cosines(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """Cosines of rows of `a` with those of `b`, in float64; 0 where a row is zeros."""
    x, y = a.astype(np.float64), b.astype(np.float64)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    cosines: NDArray[np.float64] = np.einsum("ij,ij->i", x, y) / np.where(lengths, lengths, 1)
    return cosines


def namespace(array: Any) -> Any:
    """The array API namespace that an array belongs to."""
    if isinstance(array, np.ndarray):
        return np
    return import_module("array_api_compat").array_namespace(array)


def to_numpy(array: Any) -> NDArray[Any]:
    """`array` as a NumPy array, copied only if necessary.

    It is a NumPy array, mapped or not; nested lists; a PyTorch tensor with gradients, on a GPU or
    in bfloat16, or a list of them; a column of a data frame, or of Arrow, whose cells are vectors;
    or anything else with `__array__`.

    >>> column = np.empty(2, dtype=object)  # a pandas column of vectors
    >>> column[:] = [np.array([1.0, 2.0]), [3.0, 4.0]]
    >>> to_numpy(column).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if hasattr(array, "toarray"):  # scipy.sparse, recognised without importing it
        raise InputError("the matrix is sparse, expected a dense one: X.toarray()")
    if isinstance(array, list | tuple) and any(_is_tensor(each) for each in array[:1]):
        array = [_from_tensor(each) if _is_tensor(each) else each for each in array]
    elif _is_tensor(array):
        array = _from_tensor(array)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError("the array has masked values: fill them first by array.filled(value)")
    try:
        converted = np.asarray(array)
    except ValueError:
        raise InputError("rows of different lengths, expected a matrix of (n, dims)") from None
    if converted.dtype.kind == "U" and isinstance(array, list | tuple):
        objects = np.array(array, object)
        if any(str(each).endswith("\0") for each in objects.flat):  # NumPy would cut that off
            return objects
    if converted.dtype.kind == "O" and converted.ndim == 1:
        return _stack_vectors(converted)
    # A float type that NumPy lacks, such as bfloat16 of `ml_dtypes`.
    is_small = converted.dtype.kind == "V" and converted.dtype.name.startswith(
        ("bfloat16", "float")
    )
    return converted.astype(np.float32) if is_small else converted


def _is_tensor(array: Any) -> bool:
    return hasattr(array, "detach") and hasattr(array, "cpu")


def _from_tensor(tensor: Any) -> NDArray[Any]:
    """A PyTorch tensor; NumPy itself accepts no gradients, GPU memory or bfloat16."""
    tensor = tensor.detach().cpu()
    return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)


def _stack_vectors(column: NDArray[Any]) -> NDArray[Any]:
    """A column of vectors as a matrix; any other column unchanged."""
    first = next((cell for cell in column if cell is not None), None)
    if not isinstance(first, list | tuple | np.ndarray) and not _is_tensor(first):
        return column
    rows = [None if cell is None else to_numpy(cell) for cell in column]
    width = next(row.shape for row in rows if row is not None)
    for number, row in enumerate(rows):
        if row is None or row.shape != width:
            found = "missing" if row is None else f"of shape {row.shape}"
            raise InputError(f"row {number} is {found}, expected a vector of shape {width}")
    return np.stack([row for row in rows if row is not None])


def torch_device(device: Any, purpose: str) -> tuple[Any, Any]:
    """PyTorch, and its device such as "cuda" or "cuda:1"; `purpose` is for an error message."""
    if not isinstance(device, str) or device.partition(":")[0] not in _DEVICES:
        raise InputError(f'device is {device!r}, expected "cpu" or a GPU such as "cuda"')
    with from_extra(f"{purpose} on device={device!r}", "gpu"):
        torch = import_module("torch")
    try:
        return torch, torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"device {device!r} cannot be used: {first_line(error)}") from None


def packed_width(n_bits: int) -> int:
    """Bytes of a packed code of `n_bits` bits."""
    return -(-n_bits // 8)


def padding_mask(n_bits: int) -> int:
    """The bits of a code's last byte that lie past its `n_bits`, as a number from 0 to 127."""
    return (1 << (-n_bits % 8)) - 1


def has_padding_bits(codes: NDArray[np.uint8], n_bits: int) -> bool:
    """Whether a padding bit is set in packed codes of shape (width,) or (n, width)."""
    mask = padding_mask(n_bits)
    return bool(mask and (codes[..., -1] & mask).any())


def check_padding(codes: NDArray[np.uint8], n_bits: int) -> None:
    """Raise InputError if packed codes have bits set past the coder's `n_bits`."""
    if has_padding_bits(codes, n_bits):
        raise InputError(f"codes have bits set past the coder's {n_bits} bits")


def invert(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.uint8]:
    """Packed codes with each of their `n_bits` inverted; padding bits stay zero."""
    inverted = ~codes
    inverted[..., -1] &= 0xFF ^ padding_mask(n_bits)
    return inverted


def unpack(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.float32]:
    """Packed codes of shape (n, width) as a matrix of 0.0 and 1.0, shape (n, n_bits)."""
    return np.unpackbits(codes, axis=1, count=n_bits).astype(np.float32)


Take: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float32]]


class LazyRows:
    """Finite float32 rows of shape (n, dims) that are stored elsewhere.

    `take` returns the rows of the given numbers, (len(numbers), dims). A slice is a LazyRows again
    and reads nothing. An index of row numbers, a single row or `np.asarray` reads.

    >>> squares = LazyRows(lambda rows: (rows[:, None] ** 2).astype(np.float32), 100, 1)
    >>> squares[10::30].shape, squares[10::30][1:][0].tolist()
    ((3, 1), [1600.0])
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, take: Take, n_rows: int, dims: int) -> None:
        self._take = take
        self._rows = range(n_rows)
        self.dims = dims

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and dimensions."""
        return len(self._rows), self.dims

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            part = LazyRows(self._take, 0, self.dims)
            part._rows = self._rows[rows]
            return part
        if isinstance(rows, int | np.integer):
            return self._take(np.array([self._rows[int(rows)]], np.int64))[0]
        return self._take(self._rows.start + self._rows.step * np.asarray(rows, np.int64))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        numbers = np.arange(self._rows.start, self._rows.stop, self._rows.step, dtype=np.int64)
        return self._take(numbers).astype(dtype or np.float32, copy=False)

    def astype(self, dtype: Any) -> NDArray[Any]:
        """The rows, read, as another type."""
        return self.__array__(dtype)
