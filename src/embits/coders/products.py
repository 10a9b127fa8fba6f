"""Matrix products that do not depend on threads or processors."""

from __future__ import annotations

from typing import Any

import numpy as np

from embits import _core


def product(a: Any, b: Any) -> Any:
    """`a @ b` for matrices; of NumPy's float32 each element is summed in one order.

    A matrix library sums in an order that depends on its threads and on the processor, so its
    last digits differ, and training turns them into other bits.

    Example:
        >>> product(np.ones((2, 3), np.float32), np.ones((3, 1), np.float32))
        array([[3.],
               [3.]], dtype=float32)
    """
    if not (isinstance(a, np.ndarray) and a.dtype == b.dtype == np.float32):
        return a @ b
    out = np.empty((a.shape[0], b.shape[1]), dtype=np.float32)
    _core.product(a, b, 0, out)
    return out
