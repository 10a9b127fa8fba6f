"""The native code reads nothing past its arrays, at any width, by any kernel."""

import os
import subprocess
import sys

import numpy as np
import pytest

from embits import _core
from embits.search import MultiIndex, asymmetric_top_k, top_k

_GUARDED = """
import ctypes, mmap, sys
import numpy as np
from embits import _core
from embits.search import MultiIndex, asymmetric_top_k, top_k, within
from embits.search.stored import RowMap, StoredCodes

page, pages = mmap.PAGESIZE, 41
libc = ctypes.CDLL(None, use_errno=True)

def guarded():
    memory = mmap.mmap(-1, pages * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for forbidden in (0, pages - 1):  # nothing may be read before it either
        assert libc.mprotect(ctypes.c_void_p(address + forbidden * page), page, 0) == 0
    usable = np.frombuffer(memory, np.uint8)[page : -page]
    usable[:] = np.random.default_rng(0).integers(0, 256, len(usable), dtype=np.uint8)
    return usable

def at_the_end(memory, n, width):
    return memory[len(memory) - n * width :].reshape(n, width)

def at_the_start(memory, n, width):
    return memory[: n * width].reshape(n, width)

codes_memory, query_memory, float_memory = guarded(), guarded(), guarded()
one_memory, other_memory = guarded(), guarded()
float_memory.view(np.float32)[:] = np.linspace(-1, 1, len(float_memory) // 4)
for name in _core.available_simd():
    _core.use_simd(name)
    for n_bits in range(1, 1101):
        width = -(-n_bits // 8)
        n = 1 + n_bits * 7919 % 67
        place = at_the_end if n_bits % 5 else at_the_start
        codes = place(codes_memory, n, width)
        query = place(query_memory, 1 + n_bits % 3, width)
        floats = float_memory.view(np.float32)[len(float_memory) // 4 - n_bits :]
        distances, rows = top_k(codes, query, 5)
        scores, best = asymmetric_top_k(codes, floats, 5)
        if width <= 16 and n_bits % 8 == 0:
            found = MultiIndex(codes, n_chunks=max(1, width)).top_k(query, 5)
            assert (found[0] == distances).all() and (found[1] == rows).all()
    _core.use_path("planes")
    for width in range(1, 139):
        for place in (at_the_end, at_the_start):
            codes = place(codes_memory, 1024 + width // 8, width)
            top_k(codes, place(query_memory, 3, width), 5)
            asymmetric_top_k(codes, float_memory.view(np.float32)[-8 * width :], 5)
            arrays = [at_the_start(one_memory, 700, width), codes,
                      at_the_end(other_memory, 1100, width)]
            pieces = StoredCodes(arrays, RowMap([*map(len, arrays)], np.array([3, 800])))
            top_k(pieces, place(query_memory, 3, width), 5)
            top_k(pieces, place(query_memory, 3, width), 5, where=np.arange(0, 2000, 7))
            asymmetric_top_k(pieces, float_memory.view(np.float32)[-8 * width :], 5)
            within(pieces, place(query_memory, 3, width), width)
    _core.use_path("")
print("nothing past the end")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="protects a page with Linux's mprotect")
def test_no_search_reads_outside_its_arrays_at_any_width():
    done = subprocess.run(
        [sys.executable, "-c", _GUARDED], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip() == "nothing past the end", (done.returncode, done.stderr)


def test_searches_of_nothing_read_nothing(simd):
    for width in (1, 8, 33):
        codes = np.zeros((0, width), np.uint8)
        assert top_k(codes, np.zeros(width, np.uint8), 3)[0].shape == (0,)
        assert asymmetric_top_k(codes, np.ones(8 * width, np.float32), 3)[0].shape == (0,)
        assert MultiIndex(codes).top_k(np.zeros((0, width), np.uint8), 3)[0].shape == (0, 0)


@pytest.mark.skipif(
    "EMBITS_SANITIZED" not in os.environ, reason="only stress/sanitize.py builds with sanitizers"
)
def test_the_sanitizer_is_at_work():
    """A build that would report nothing proves nothing: give it a lie it must catch."""
    program = """
import numpy as np
from embits import _core
codes = np.zeros((4, 8), np.uint8)
_core.top_k(codes, codes[0], 4, 1, np.empty(1, np.int32), np.empty(4, np.int64))
"""
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr


def test_words_with_wild_ends_are_passed_over():
    text = np.frombuffer(b"abcdef", np.uint8)
    wild = np.array([1, 2**64 - 1, 0, 2**63, 6], np.uint64)
    assert _core.near_spellings(text, wild, b"a", 1, 9) == [0]
