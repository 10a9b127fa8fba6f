"""Past 2^31: a sparse file of more rows and bytes than 32 bits count, searched to its last row.

    python stress/large.py

The file takes no room on the disk: all its codes are zero but a few, which must be found.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from embits.search import asymmetric_top_k, top_k

# rows, width in bytes: more than 2^31 rows, more than 2^31 and 2^32 bytes, more than 2^32 bits
SHAPES = [(2**31 + 9, 1), (2**28 + 9, 8), (2**27 + 5, 33)]


def main() -> int:
    for n, width in SHAPES:
        with tempfile.NamedTemporaryFile(dir=Path.cwd()) as file:
            codes = np.memmap(file.name, np.uint8, "w+", shape=(n, width))
            marked = sorted({5, 2**31 // width + 1, n // 2, n - 2, n - 1})
            codes[marked] = 0xFF
            query = np.full(width, 0xFF, np.uint8)
            start = time.perf_counter()
            distances, rows = top_k(codes, query, len(marked))
            scores, best = asymmetric_top_k(codes, np.ones(8 * width, np.float32), len(marked))
            seconds = time.perf_counter() - start
            good = rows.tolist() == marked == best.tolist()
            good &= not distances.any() and bool((scores == 8 * width).all())
            print(f"{n:,} rows of {width} bytes: {'found' if good else 'LOST'} ({seconds:.1f} s)")
            if not good:
                return 1
            del codes
    return 0


if __name__ == "__main__":
    sys.exit(main())
