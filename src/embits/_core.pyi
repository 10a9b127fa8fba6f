import numpy as np
from numpy.typing import NDArray

def simd() -> str: ...
def use_simd(name: str) -> None: ...
def available_simd() -> list[str]: ...
def top_k(
    codes: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    k: int,
    threads: int,
    distances: NDArray[np.int32],
    rows: NDArray[np.int64],
) -> None: ...
def asymmetric_top_k(
    codes: NDArray[np.uint8],
    queries: NDArray[np.float32],
    k: int,
    threads: int,
    scores: NDArray[np.float32],
    rows: NDArray[np.int64],
) -> None: ...
