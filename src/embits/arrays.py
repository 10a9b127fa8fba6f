"""Arrays: those of other libraries, their devices, and rows in blocks.

PyTorch is imported only when a device is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError, MissingExtraError

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
    """Rows divided by their length; rows of zeros stay zeros.

    Args:
        matrix: Floats of shape (n, dims): of NumPy, or of another array API library.

    Returns:
        A new array of the same shape, type and library.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
        array([[0.6, 0.8],
               [0. , 0. ]])
    """
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
    """Cosines of rows of `a` with those of `b`, in float64; 0 where a row is zeros.

    Example:
        >>> row_cosines(np.array([[1, 0], [0, 0]]), np.array([[3, 4], [1, 1]]))
        array([0.6, 0. ])
    """
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

    Args:
        array: A NumPy array, mapped or not; nested lists; a PyTorch tensor with gradients, on a
            GPU or in bfloat16, or a list of them; a column of a data frame, or of Arrow, whose
            cells are vectors; anything else with `__array__`.

    Raises:
        InputError: Rows are of different lengths, one is missing, or values are masked.

    Example:
        >>> column = np.empty(2, dtype=object)  # a pandas column of vectors
        >>> column[:] = [np.array([1.0, 2.0]), [3.0, 4.0]]
        >>> to_numpy(column)
        array([[1., 2.],
               [3., 4.]])
    """
    if isinstance(array, list | tuple) and any(_is_tensor(each) for each in array[:1]):
        array = [_from_tensor(each) if _is_tensor(each) else each for each in array]
    elif _is_tensor(array):
        array = _from_tensor(array)
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise InputError("the array has masked values: fill them first by array.filled(value)")
    try:
        found = np.asarray(array)
    except ValueError:
        raise InputError("rows of different lengths, expected a matrix of (n, dims)") from None
    if found.dtype.kind == "O" and found.ndim == 1 and _holds_vectors(found):
        return _stacked(found)
    return found.astype(np.float32) if _is_small_float(found.dtype) else found


def _is_tensor(array: Any) -> bool:
    return hasattr(array, "detach") and hasattr(array, "cpu")


def _from_tensor(tensor: Any) -> NDArray[Any]:
    """A PyTorch tensor; NumPy itself accepts no gradients, GPU memory or bfloat16."""
    tensor = tensor.detach().cpu()
    return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    """Whether this is a float type that NumPy lacks, such as bfloat16 of `ml_dtypes`."""
    return dtype.kind == "V" and dtype.name.startswith(("bfloat16", "float"))


def _holds_vectors(column: NDArray[Any]) -> bool:
    first = next((cell for cell in column if cell is not None), None)
    return isinstance(first, list | tuple | np.ndarray) or _is_tensor(first)


def _stacked(column: NDArray[Any]) -> NDArray[Any]:
    rows = [None if cell is None else to_numpy(cell) for cell in column]
    width = next(row.shape for row in rows if row is not None)
    for number, row in enumerate(rows):
        if row is None or row.shape != width:
            found = "missing" if row is None else f"of shape {row.shape}"
            raise InputError(f"row {number} is {found}, expected a vector of shape {width}")
    return np.stack([row for row in rows if row is not None])


def torch_device(device: Any, purpose: str) -> tuple[Any, Any]:
    """PyTorch, and the device of that name.

    Args:
        device: A PyTorch device such as "cuda" or "cuda:1".
        purpose: What it is used for, in an error message.

    Raises:
        InputError: There is no such device here.
        MissingExtraError: The extra `gpu` is not installed.
    """
    if not isinstance(device, str) or device.partition(":")[0] not in _DEVICES:
        raise InputError(f'device is {device!r}, expected "cpu" or a GPU such as "cuda"')
    try:
        torch = import_module("torch")
    except ImportError:
        raise MissingExtraError(f"{purpose} on device={device!r}", "gpu") from None
    try:
        return torch, torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {device!r} cannot be used: {reason}") from None
