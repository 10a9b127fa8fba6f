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

class MultiIndex:
    def __init__(self, codes: NDArray[np.uint8], n_chunks: int) -> None: ...
    @property
    def bytes(self) -> int: ...
    def top_k(
        self,
        queries: NDArray[np.uint8],
        k: int,
        threads: int,
        distances: NDArray[np.int32],
        rows: NDArray[np.int64],
    ) -> int: ...
