"""Batches by bit planes give the answers of the row-major kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits import _core
from embits.errors import InputError
from embits.search import asymmetric_top_k, kernel, top_k
from tests.support.program import run_python
from tests.support.search_oracle import WIDTHS, hamming_top_k, random_codes


@pytest.fixture
def path():
    """Forces a path; the choice is given back to the search afterwards."""
    yield _core.use_path
    _core.use_path("")


def assert_paths_agree(path, codes, queries, k, threads=1):
    path("rows")
    distances, rows = top_k(codes, queries, k)
    path("planes")
    found, found_rows = top_k(codes, queries, k, threads)
    np.testing.assert_array_equal(found, distances)
    np.testing.assert_array_equal(found_rows, rows)


def assert_scores_agree(path, codes, projections, k, threads=1):
    path("rows")
    scores, rows = asymmetric_top_k(codes, projections, k)
    path("planes")
    found, found_rows = asymmetric_top_k(codes, projections, k, threads)
    np.testing.assert_array_equal(found, scores)
    np.testing.assert_array_equal(found_rows, rows)


def float_queries(rng, codes, n_bits, count):
    """Near codes that are there, with weights of many kinds: equal, zero, one large."""
    z = rng.standard_normal((count, n_bits)).astype(np.float32)
    z[0] = np.sign(z[0])
    z[1] = 0
    z[2, 0] = 1e6
    z[3] = np.round(z[3])
    near = np.unpackbits(codes[:count], axis=1)[:, :n_bits]
    z[4:] = np.where(near == 1, np.abs(z), -np.abs(z))[4:]
    return z * np.float32(10.0 ** rng.uniform(-30, 30))


def mixed_queries(rng, codes, count):
    """Codes that are there, their complements, and others."""
    near = codes[rng.integers(0, len(codes), count)]
    return np.concatenate([near, ~near, random_codes(rng, count, codes.shape[1])])


@pytest.mark.parametrize("width", WIDTHS)
def test_planes_answer_as_rows_do_at_every_width(simd, path, width):
    rng = np.random.default_rng(width)
    n = int(rng.integers(1100, 2600))
    codes = random_codes(rng, n, width)
    for k in (1, 10, int(rng.integers(1, n)), n):
        assert_paths_agree(path, codes, mixed_queries(rng, codes, 4), k)


@pytest.mark.parametrize("width", WIDTHS)
def test_float_queries_score_by_planes_as_by_rows_at_every_width(simd, path, width):
    rng = np.random.default_rng(width)
    n, n_bits = int(rng.integers(1100, 2600)), 8 * width - int(rng.integers(0, 8))
    codes = random_codes(rng, n, width)
    for k in (1, 10, int(rng.integers(1, n))):
        assert_scores_agree(path, codes, float_queries(rng, codes, n_bits, 8), k)


@pytest.mark.parametrize("q", [16, 40])
def test_threads_change_no_score(simd, path, q):
    rng = np.random.default_rng(q)
    codes = rng.integers(0, 256, (60_000, 32), dtype=np.uint8)
    codes[40_000:] = codes[:20_000]
    for threads in (2, 3, 8):
        assert_scores_agree(path, codes, float_queries(rng, codes, 250, q), 10, threads)


def test_rows_of_the_lowest_score_come_in_row_order(simd, path):
    codes = np.full((40_000, 64), 255, np.uint8)
    path("planes")
    rows = asymmetric_top_k(codes, np.full((20, 512), -1.0), 600, threads=3)[1]
    assert (rows == np.arange(600)).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 4000),
    width=st.integers(1, 300),
    k=st.integers(1, 4000),
    distinct=st.integers(1, 30),
    name=st.sampled_from(_core.available_simd()),
)
def test_duplicates_come_in_row_order(seed, n, width, k, distinct, name):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, distinct, width)[rng.integers(0, distinct, n)]
    before = _core.simd()
    try:
        _core.use_simd(name)
        assert_paths_agree(_core.use_path, codes, mixed_queries(rng, codes, 5), k)
    finally:
        _core.use_simd(before)
        _core.use_path("")


@pytest.mark.parametrize("distance", [0, 1, 63, 64])
def test_all_rows_at_one_distance_are_taken_from_the_first(simd, path, distance):
    code = np.packbits(np.arange(64) < distance)
    codes = np.tile(code, (3000, 1))
    path("planes")
    distances, rows = top_k(codes, np.zeros((20, 8), np.uint8), 700, threads=3)
    assert (distances == distance).all()
    assert (rows == np.arange(700)).all()


@pytest.mark.parametrize("q", [16, 40, 300])
def test_threads_change_nothing(simd, path, q):
    rng = np.random.default_rng(q)
    codes = rng.integers(0, 256, (60_000, 32), dtype=np.uint8)
    codes[40_000:] = codes[:20_000]
    queries = codes[rng.integers(0, len(codes), q)] ^ 1
    for threads in (2, 3, 8):
        assert_paths_agree(path, codes, queries, 10, threads)


def test_batches_take_planes_and_single_queries_take_rows():
    codes = random_codes(np.random.default_rng(0), 5000, 32)
    top_k(codes, codes[:100], 5)
    assert kernel() == (_core.simd(), "planes")
    top_k(codes, codes[0], 5)
    assert kernel().path == "rows"
    top_k(codes, codes[:100], 3000)
    assert kernel().path == "rows"


def test_codes_of_any_width_are_searched_in_batches():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (5000, 400), dtype=np.uint8)
    distances, rows = top_k(codes, codes[:70], 5)
    assert kernel().path == "rows"
    expected_distances, expected_rows = hamming_top_k(codes, codes[:70], 5)
    np.testing.assert_array_equal(distances, expected_distances)
    np.testing.assert_array_equal(rows, expected_rows)


def test_embits_path_forces_a_path():
    program = """
import numpy as np
from embits.search import asymmetric_top_k, kernel, top_k
codes = np.zeros((1000, 8), np.uint8)
top_k(codes, codes[:{queries}], 1)
print(kernel().path)
"""
    done = run_python(program.format(queries=1), EMBITS_PATH="planes")
    assert done.stdout.strip() == "planes", done.stderr
    done = run_python(program.format(queries=900), EMBITS_PATH="rows")
    assert done.stdout.strip() == "rows", done.stderr
    done = run_python(program.format(queries=1), EMBITS_PATH="stairs")
    assert "EMBITS_PATH is 'stairs', expected 'rows' or 'planes'" in done.stderr
    assert InputError.__name__ in done.stderr
