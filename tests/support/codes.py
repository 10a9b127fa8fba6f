"""Codes without vectors behind them, for tests of what only moves or searches them."""

import numpy as np

import embits
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary


def of_codes(codes, n_bits, words=None):
    """BinaryVectors of these codes, with a coder that was never fitted on anything."""
    params = {"n_bits": n_bits, "random_state": 0}
    state = {"planes": np.ones((n_bits, 3)), "decoder": np.ones((n_bits, 3)), "offset": np.ones(3)}
    coder = embits.RandomHyperplanes.from_state(params, state, 3, n_bits)
    keys = RowNumbers(len(codes)) if words is None else Vocabulary.from_words(words)
    return embits.BinaryVectors(keys, codes, coder)


def random_codes(n, n_bits, seed=0):
    bits = np.random.default_rng(seed).integers(0, 2, (n, n_bits), dtype=np.uint8)
    return np.packbits(bits, axis=1)


def expected(bits, row, k):
    """The neighbors of a row by our own search: (word, distance, row), itself left out."""
    distances, rows = bits.search(bits.codes[row], k + 1)
    found = zip(rows.tolist(), distances.tolist(), strict=True)
    return [(bits.words[each], distance, each) for each, distance in found if each != row][:k]
