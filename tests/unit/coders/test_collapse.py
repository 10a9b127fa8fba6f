"""Codes that tell few vectors apart are warned of."""

import warnings

import numpy as np
import pytest

import embits
from embits.coders import METHODS

RNG = np.random.default_rng(0)
GOOD = RNG.normal(0, 0.4, (500, 24))
FAR = (100 + RNG.normal(size=(500, 24))).astype("f4")  # much farther from zero than from each other


def warned(coder, X):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        coder.fit(X)
    return [str(w.message) for w in found if w.category is embits.errors.TrainingWarning]


@pytest.mark.parametrize("method", METHODS)
def test_a_good_fit_gives_no_warning(method):
    assert not warned(METHODS[method](), GOOD)


@pytest.mark.parametrize(
    "coder",
    [embits.SignBits(), embits.RandomHyperplanes(64), embits.PaperAutoencoder(64, epochs=1)],
)
def test_constant_bits_are_warned_of_once(coder):
    (message,) = warned(coder, FAR)
    assert "bits are the same for all of 500 rows" in message
    assert coder.method in message
    assert "\n" not in message


def test_codes_that_most_rows_share_are_warned_of():
    line = np.linspace(-1, 1, 1000)[:, None]  # a line through zero has two sides, for any plane
    (message,) = warned(embits.RandomHyperplanes(128), line * RNG.normal(size=(1, 16)))
    assert "1,000 different rows have only 2 different codes" in message


def test_few_rows_give_no_warning():
    assert not warned(embits.SignBits(), FAR[:50])
    assert not warned(embits.SignBits(), np.repeat(FAR[:2], 100, axis=0))


@pytest.mark.parametrize(("value", "kind"), [(0, "zero"), (1, "equal")])
def test_rows_that_are_all_equal_are_warned_of(value, kind):
    (message,) = warned(embits.NearLossless(8), np.full((300, 4), value, "f4"))
    assert f"all of 300 rows are {kind}" in message


@pytest.mark.parametrize("fit", ["coder", "binarize", "file", "to file"])
def test_the_warning_points_at_the_line_that_called_embits(fit, tmp_path):
    np.save(tmp_path / "far.npy", FAR)
    calls = {
        "coder": lambda: embits.SignBits().fit(FAR),
        "binarize": lambda: embits.binarize(FAR, method="sign"),
        "file": lambda: embits.binarize(tmp_path / "far.npy", method="sign"),
        "to file": lambda: embits.binarize_to_file(
            tmp_path / "far.npy", tmp_path / "out", method="sign"
        ),
    }
    with pytest.warns(embits.errors.TrainingWarning) as found:
        calls[fit]()
    assert [warning.filename for warning in found] == [__file__]
