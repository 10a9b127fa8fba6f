"""Sums in float64 order rows as the native search does, also where float32 scores are equal."""

import numpy as np
import pytest

from embits.arrays import packed_width
from embits.search import asymmetric_top_k
from embits.search.rescoring import exact_scores


@pytest.mark.parametrize("n_bits", [1, 3, 4, 12, 100, 256])
def test_exact_scores_give_the_order_of_the_native_search(n_bits):
    rng = np.random.default_rng(n_bits)
    codes = np.packbits(rng.integers(0, 2, (20_000, n_bits), dtype=np.uint8), axis=1)
    assert codes.shape[1] == packed_width(n_bits)
    weights = rng.normal(size=n_bits).astype(np.float32)
    exact = exact_scores(codes, np.broadcast_to(weights, (len(codes), n_bits)))
    scores, rows = asymmetric_top_k(codes, weights, len(codes))
    order = np.lexsort((np.arange(len(codes)), -exact))
    assert np.array_equal(rows, order)
    assert np.array_equal(scores, exact[order].astype(np.float32))
