"""Every instruction set gives the answer of plain NumPy, to the bit."""

import numpy as np
import pytest

from embits import _core
from embits.search import asymmetric_top_k, top_k
from tests.support.program import run_python
from tests.support.search_oracle import WIDTHS, hamming_top_k, random_codes, scores


@pytest.mark.parametrize("width", WIDTHS)
def test_hamming_distances_are_those_of_numpy_at_every_width(simd, width):
    rng = np.random.default_rng(width)
    for n in (0, 1, int(rng.integers(2, 70)), int(rng.integers(70, 1500))):
        codes = random_codes(rng, n, width)
        queries = np.concatenate([random_codes(rng, 2, width), codes[n // 2 : n // 2 + 1]])
        for k in (1, 10, n):
            distances, rows = top_k(codes, queries, k)
            expected_distances, expected_rows = hamming_top_k(codes, queries, k)
            np.testing.assert_array_equal(distances, expected_distances)
            np.testing.assert_array_equal(rows, expected_rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_kernel_scores_floats_as_the_portable_one(simd, width):
    rng = np.random.default_rng(width)
    n, n_bits = int(rng.integers(1, 900)), 8 * width - int(rng.integers(0, 8))
    codes = random_codes(rng, n, width)
    z = (rng.standard_normal((3, n_bits)) * 10.0 ** rng.uniform(-3, 3)).astype(np.float32)
    for k in (1, 10, n):
        found, rows = asymmetric_top_k(codes, z, k)
        _core.use_simd("portable")
        portable, portable_rows = asymmetric_top_k(codes, z, k)
        _core.use_simd(simd)
        np.testing.assert_array_equal(rows, portable_rows)
        np.testing.assert_array_equal(found, portable)
    every = scores(codes, z)
    best = -np.sort(-every, axis=1)
    tolerance = 1e-6 * np.abs(z).sum(axis=1, keepdims=True)
    assert (np.abs(np.take_along_axis(every, rows, axis=1) - best) <= tolerance).all()


def test_embits_simd_chooses_the_kernel():
    for name in _core.available_simd():
        done = run_python("from embits.search import simd; print(simd())", EMBITS_SIMD=name)
        assert done.stdout.strip() == name


@pytest.mark.parametrize(
    "name", ["avx9000", "neon" if "avx2" in _core.available_simd() else "avx2"]
)
def test_embits_simd_that_cannot_run_is_an_input_error(name):
    program = """
import numpy as np
from embits.errors import InputError
from embits.search import simd, top_k
codes = np.zeros((3, 8), np.uint8)
for search in (lambda: top_k(codes, codes, 1), simd):
    try:
        search()
    except InputError as error:
        print(error)
"""
    done = run_python(program, EMBITS_SIMD=name)
    message = f"EMBITS_SIMD is '{name}', but this processor runs: "
    assert done.stdout.splitlines() == 2 * [message + ", ".join(_core.available_simd())]


def test_an_unknown_kernel_cannot_be_used():
    with pytest.raises(ValueError, match="this processor runs: portable"):
        _core.use_simd("mmx")
