import numpy as np
from numpy.typing import NDArray

def simd() -> str: ...
def top_k(
    codes: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    k: int,
    threads: int,
    distances: NDArray[np.int32],
    rows: NDArray[np.int64],
) -> None: ...
def near_spellings(
    text: NDArray[np.uint8], ends: NDArray[np.uint64], word: bytes, max_edits: int, most: int
) -> list[int]: ...
