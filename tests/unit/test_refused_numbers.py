"""Numbers and bits that vectors and codes cannot hold are refused before they are compared."""

import warnings

import numpy as np
import pytest

import embits

X = np.random.default_rng(0).normal(size=(300, 16))


@pytest.mark.parametrize("method", ["itq", "lsh", "sign", "near-lossless"])
def test_numbers_beyond_float32_are_refused_without_a_warning(method, tmp_path):
    bits = embits.binarize(X, method=method, **({} if method == "sign" else {"n_bits": 16}))
    collection = embits.open_collection(tmp_path / "rows", bits.coder)
    large = X[:3].copy()
    large[1, 4] = -1e300
    uses = [
        lambda: collection.add(large),
        lambda: collection.add(large.tolist()),
        lambda: bits.search(large),
        lambda: bits.search(large, metric="asymmetric"),
        lambda: bits.search(large, metric="decoded"),
        lambda: bits.within(large, 3),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in uses:
            with pytest.raises(embits.InputError, match=r"row 1 .* 1e\+300, too large for float32"):
                use()
    assert len(collection) == 0
    assert bits.encode(np.full(16, 1e17)).shape == (2,)


def test_codes_with_bits_past_the_last_are_refused_as_queries():
    bits = embits.binarize(X, n_bits=12, method="lsh")
    code = bits.codes[:2] | np.uint8(1)
    uses = [
        lambda: bits.search(code),
        lambda: bits.search(code[0]),
        lambda: bits.search(code, metric="decoded"),
        lambda: bits.within(code, 3),
        lambda: bits.most_similar(code[0]),
        lambda: bits.similarity(0, code[0]),
    ]
    for use in uses:
        with pytest.raises(embits.InputError, match="codes have bits set past the coder's 12 bits"):
            use()
