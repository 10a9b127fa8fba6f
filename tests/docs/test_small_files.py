"""The files and scores of benchmarks/quality_per_megabyte.py."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = runpy.run_path(str(BENCHMARKS / "small_files.py"))
SCORES = runpy.run_path(str(BENCHMARKS / "pair_scores.py"))


@given(st.data(), st.sampled_from([2, 4, 8]))
def test_packed_numbers_are_unpacked(data, bits):
    shape = data.draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=9))
    levels = data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 2**bits - 1)))
    packed = FILES["pack"](levels, bits)
    assert packed.shape == (shape[0], -(-shape[1] * bits // 8))
    assert (FILES["unpack"](packed, bits, shape[1]) == levels).all()


@pytest.mark.parametrize(("bits", "error"), [(2, 0.38), (4, 0.12), (8, 0.02)])
def test_numbers_of_few_bits_keep_the_rows(bits, error):
    rows = np.random.default_rng(0).normal(size=(500, 12)).astype(np.float32) * np.arange(1, 13)
    decoded = FILES["decode"](FILES["scalar"](rows, 300, bits))
    assert decoded.shape == (300, 12)
    assert np.linalg.norm(decoded - rows[:300]) < error * np.linalg.norm(rows[:300])


def test_every_method_is_read_back_from_its_file(tmp_path):
    pytest.importorskip("faiss")
    rows = np.random.default_rng(0).normal(size=(400, 100)).astype(np.float32)
    words = [f"wörd {i}" for i in range(400)]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for method in FILES["methods"](rows):
        size = FILES["write"](tmp_path / "file.npz", words[:300], method.encode(300))
        read, matrix = FILES["read"](tmp_path / "file.npz")
        assert size == (tmp_path / "file.npz").stat().st_size
        assert read == words[:300]
        assert len(matrix) == 300
        assert np.isfinite(matrix).all()


def test_the_score_without_unknown_words_is_the_correlation():
    human, ours = np.array([1.0, 2, 3, 4]), np.array([0.1, 0.3, 0.2, 0.4])
    assert SCORES["agreement"](human, ours, np.median) == pytest.approx(0.8)


def test_unknown_words_lower_the_score_the_same_way_on_every_scale():
    human = np.arange(100.0)
    ours = np.where(human % 2 == 0, human, math.nan)
    score = SCORES["agreement"](human, ours, np.median)
    assert 0.4 < score < 0.8
    assert SCORES["agreement"](human, 7 + ours / 1000, np.median) == pytest.approx(score)


def test_a_file_that_knows_no_pair_scores_0():
    assert SCORES["agreement"](np.arange(3.0), np.full(3, math.nan), np.median) == 0
