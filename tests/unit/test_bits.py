"""Packed bits, against a slow oracle of single bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embits import arrays as bits
from embits.arrays import unit_rows

ROWS = st.integers(1, 40).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=5)
)


@given(ROWS)
def test_width_padding_and_inverse_are_those_of_single_bits(rows):
    plain = np.array(rows, dtype=np.uint8)
    n_bits = plain.shape[1]
    codes = np.packbits(plain, axis=1)
    assert bits.packed_width(n_bits) == codes.shape[1]
    assert bits.unpack(codes, n_bits).tolist() == plain.tolist()
    assert bits.invert(codes, n_bits).tolist() == np.packbits(1 - plain, axis=1).tolist()
    assert not bits.has_padding_bits(codes, n_bits)
    padded = codes.copy()
    padded[0, -1] |= bits.padding_mask(n_bits)
    assert bits.has_padding_bits(padded, n_bits) == bool(n_bits % 8)
    assert f"{bits.padding_mask(n_bits):b}".count("1") == -n_bits % 8


def test_unit_rows_leave_zeros_at_zero():
    matrix = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    matrix[4000] = 0
    unit = unit_rows(matrix)
    assert unit.dtype == np.float32
    assert (unit[4000] == 0).all()
    lengths = np.sqrt((np.delete(unit, 4000, axis=0) ** 2).sum(axis=1))
    assert lengths == pytest.approx(np.ones(4999), abs=1e-6)
