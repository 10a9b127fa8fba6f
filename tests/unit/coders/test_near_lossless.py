"""NearLossless: its gradient, its codes, what it does with odd input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.arrays import unpack
from embits.coders import (
    METHODS,
    NearLossless,
    PaperAutoencoder,
    RandomHyperplanes,
)
from embits.coders.near_lossless import sampling
from embits.coders.near_lossless.training import budget
from embits.errors import InputError, NotFittedError
from tests.support.vectors import clustered


def topics(n=3000, dims=32, seed=0):
    """Rows around a hundred centres, with a common part and a falling spectrum, of varied norm."""
    rng = np.random.default_rng(seed)
    spectrum = 1 / np.sqrt(1 + np.arange(dims))
    centres = rng.normal(size=(100, dims)) * spectrum
    rows = centres[rng.integers(100, size=n)] + 0.6 * rng.normal(size=(n, dims)) * spectrum + 0.3
    return (rows * rng.uniform(0.5, 3, size=(n, 1))).astype(np.float32)


def recall(X, codes, n_bits, k=10):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    signs = 2 * unpack(codes, n_bits) - 1
    nearest = [np.argsort(-(rows[:200] @ rows.T), axis=1, kind="stable") for rows in (unit, signs)]
    return np.mean(
        [len(set(a[1 : k + 1]) & set(b[1 : k + 1])) / k for a, b in zip(*nearest, strict=True)]
    )


@pytest.fixture(scope="module")
def fitted():
    X = topics()
    return X, NearLossless(n_bits=24, steps=200, batch_size=512).fit(X)


# -- what it is for ------------------------------------------------------------------------------


def test_it_keeps_more_neighbors_than_random_hyperplanes_and_the_paper(fitted):
    X, coder = fitted
    ours = recall(X, coder.transform(X), 24)
    paper = PaperAutoencoder(n_bits=24, epochs=5).fit(X)
    lsh = RandomHyperplanes(n_bits=24).fit(X)
    assert ours > recall(X, paper.transform(X), 24) + 0.02
    assert ours > recall(X, lsh.transform(X), 24) + 0.05


def test_training_adds_to_the_start(fitted):
    X, coder = fitted
    start = NearLossless(n_bits=24, steps=0).fit(X)
    assert recall(X, coder.transform(X), 24) > recall(X, start.transform(X), 24)
    assert start.loss_curve_.shape == (0, 3)


def test_its_decoder_rebuilds_directions_and_norms_better_than_the_papers(fitted):
    X, coder = fitted
    paper = PaperAutoencoder(n_bits=24, epochs=20).fit(X)
    errors, cosines = [], []
    for rebuilt in (c.inverse_transform(c.transform(X)) for c in (coder, paper)):
        norms, lengths = np.linalg.norm(X, axis=1), np.linalg.norm(rebuilt, axis=1)
        cosines.append(np.mean((rebuilt * X).sum(axis=1) / norms / lengths))
        errors.append(np.mean((rebuilt - X) ** 2))
    assert cosines[0] > max(0.85, cosines[1])
    assert errors[0] < errors[1]


def test_vectors_of_one_norm_come_back_with_one_norm():
    X = topics()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    coder = NearLossless(n_bits=32, steps=20).fit(X)
    rebuilt = coder.inverse_transform(coder.transform(X))
    lengths = np.linalg.norm(rebuilt, axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-3)
    np.testing.assert_allclose(lengths[0], (rebuilt * X).sum(axis=1).mean() / lengths[0], rtol=0.01)


def test_a_code_depends_on_the_direction_alone(fitted):
    X, coder = fitted
    scores = coder.project(X[:50])
    np.testing.assert_allclose(coder.project(X[:50] * 8), scores * 8, rtol=1e-4, atol=1e-4)


def test_the_scores_are_an_affine_function_of_the_direction(fitted):
    X, coder = fitted
    expected = X[:50] @ coder.W_.T - np.linalg.norm(X[:50], axis=1, keepdims=True) * coder.t_
    np.testing.assert_allclose(coder.project(X[:50]), expected, rtol=1e-4, atol=1e-4)


def test_every_bit_is_informative(fitted):
    X, coder = fitted
    ones = unpack(coder.transform(X), 24).mean(axis=0)
    assert 0.15 < ones.min() < ones.max() < 0.85


@pytest.mark.parametrize("target", ["neighbors", "similarity"])
def test_any_width_and_both_targets(target):
    X = topics(400)
    for n_bits in (1, 7, 32, 100):
        coder = NearLossless(n_bits, target=target, steps=10).fit(X)
        codes = coder.transform(X)
        assert codes.shape == (400, -(-n_bits // 8))
        assert coder.inverse_transform(codes).shape == X.shape


# -- a fit is a function of its input ------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights_and_another_gives_others():
    X = topics(500)
    first, again, other = (
        NearLossless(n_bits=16, steps=20, random_state=seed).fit(X) for seed in (1, 1, 2)
    )
    for name, array in first.state().items():
        np.testing.assert_array_equal(array, again.state()[name])
    assert not np.array_equal(first.W_, other.W_)


def test_state_and_params_are_all_a_file_needs(fitted):
    X, coder = fitted
    copy = NearLossless.from_state(coder.get_params(), coder.state(), 32, 24)
    codes = copy.transform(X)
    np.testing.assert_array_equal(codes, coder.transform(X))
    np.testing.assert_array_equal(copy.inverse_transform(codes), coder.inverse_transform(codes))


def test_the_loss_falls_and_the_curve_is_kept(fitted):
    _, coder = fitted
    steps, losses, recalls = coder.loss_curve_.T
    assert 60 < steps[-1] <= 200
    assert losses[-1] < losses[0]
    assert recalls.max() > recalls[0]


def test_progress_is_told():
    seen = []
    NearLossless(n_bits=8, steps=40).fit(topics(300), progress=lambda *p: seen.append(p))
    assert [total for _, total in seen] == [40] * len(seen)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_only_a_sample_is_looked_at(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 200)
    rows = sampling.sample_rows(1000, 20, np.random.default_rng(0))
    assert len(set(rows)) == 200
    assert set(range(100)) <= set(rows)
    assert rows.max() > 500
    NearLossless(n_bits=8, steps=5).fit(topics(1000))


# -- more rows -----------------------------------------------------------------------------------


def test_partial_fit_goes_on_from_where_it_is(fitted):
    X, coder = fitted
    later = NearLossless.from_state(coder.get_params(), coder.state(), 32, 24)
    later.partial_fit(topics(seed=5))
    assert np.mean(later.transform(X) != coder.transform(X)) > 0
    differing = np.unpackbits(later.transform(X) ^ coder.transform(X)).mean()
    assert differing < 0.2
    assert len(later.loss_curve_) > len(coder.loss_curve_)


def test_partial_fit_in_chunks_learns(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 1000)
    X = topics()
    coder = NearLossless(n_bits=64, steps=100, batch_size=256)
    for chunk in np.array_split(X, 5):
        coder.partial_fit(chunk)
    assert len(coder._reservoir) == 1000
    assert coder._seen == 3000
    lsh = RandomHyperplanes(n_bits=64).fit(X)
    assert recall(X, coder.transform(X), 64) > recall(X, lsh.transform(X), 64) + 0.05


# -- odd input -----------------------------------------------------------------------------------


DEGENERATE = {
    "one row": np.ones((1, 5)),
    "one zero": np.zeros((1, 5)),
    "zeros": np.zeros((40, 5)),
    "constant": np.full((40, 5), 3.7),
    "repeated": np.repeat(np.eye(3), 20, axis=0),
    "fewer rows than bits": np.random.default_rng(0).normal(size=(3, 50)),
    "one dimension": np.random.default_rng(0).normal(size=(200, 1)),
    "half zeros": np.r_[np.zeros((150, 6)), np.random.default_rng(0).normal(size=(150, 6))],
    "tiny": np.random.default_rng(0).normal(size=(60, 5)) * 1e-12,
    "huge": np.random.default_rng(0).normal(size=(60, 5)) * 1e12,
    "integers": np.arange(60).reshape(20, 3),
}


@pytest.mark.filterwarnings("ignore:fitted on")
@pytest.mark.parametrize("target", ["neighbors", "similarity"])
def test_degenerate_vectors_are_coded_and_decoded(target):
    for kind, X in DEGENERATE.items():
        coder = NearLossless(n_bits=12, target=target, steps=10).fit(X)
        codes = coder.transform(X)
        assert codes.shape == (len(X), 2)
        assert np.isfinite(coder.inverse_transform(codes)).all(), kind
        assert all(np.isfinite(array).all() for array in coder.state().values()), kind


def test_equal_rows_have_equal_codes_and_come_back():
    X = np.full((40, 5), 3.7)
    coder = NearLossless(n_bits=12, steps=10).fit(X)
    codes = coder.transform(X)
    assert (codes == codes[0]).all()
    np.testing.assert_allclose(coder.inverse_transform(codes), X, rtol=1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused_with_their_row(bad):
    X = topics(50)
    X[7, 3] = bad
    with pytest.raises(InputError, match="row 7"):
        NearLossless(n_bits=8, steps=1).fit(X)


def test_values_whose_norm_is_no_float_are_refused():
    with pytest.raises(InputError, match="scale them down"):
        NearLossless(n_bits=8, steps=1).fit(np.full((10, 4), 1e25))


def test_any_kind_of_array_gives_the_same_codes(fitted, tmp_path):
    X, coder = fitted
    codes = coder.transform(X)
    np.save(tmp_path / "x.npy", X)
    assert (coder.transform(np.load(tmp_path / "x.npy", mmap_mode="r")) == codes).all()
    for other in (np.asfortranarray(X), X.astype(np.float64), np.repeat(X, 2, axis=1)[:, ::2]):
        assert np.unpackbits(coder.transform(other) ^ codes).mean() < 1e-4
    half = coder.transform(X.astype(np.float16))
    assert np.unpackbits(half ^ codes).mean() < 0.01


def test_wrong_parameters_are_refused_at_fit():
    for params in (
        {"n_bits": 0}, {"target": "beauty"}, {"steps": -1}, {"steps": 1.5}, {"batch_size": 1},
        {"device": ""}, {"device": None},
    ):  # fmt: skip
        with pytest.raises(InputError):
            NearLossless(**params).fit(topics(50))


def test_a_gpu_is_given_a_longer_search_unless_told_otherwise():
    assert budget(256, 384, 50_000, "cpu") == (368, 1024)
    assert budget(256, 384, 50_000, "cuda") == (3000, 2048)
    coder = NearLossless(device="cuda", steps=7, batch_size=9)
    coder.n_bits_, coder.n_features_in_ = 64, 16
    assert coder._budget(1000) == (7, 9)


def test_a_training_is_shorter_for_wide_codes_and_few_rows():
    assert budget(64, 384, 50_000, "cpu").steps == 1000
    assert budget(1024, 1536, 50_000, "cpu").steps == 100
    assert budget(256, 384, 5000, "cpu").steps == 184


def test_it_must_be_fitted_first():
    with pytest.raises(NotFittedError):
        NearLossless().transform(topics(5))


def test_it_is_a_method_of_the_command_line():
    assert METHODS["near-lossless"] is NearLossless


@pytest.mark.filterwarnings("ignore:fitted on")
@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(1, 130),
    dims=st.integers(1, 12),
    n_bits=st.integers(1, 20),
    seed=st.integers(0, 9),
)
def test_every_shape_fits(n, dims, n_bits, seed):
    X = np.random.default_rng(seed).normal(size=(n, dims)).round(1)
    codes = NearLossless(n_bits, steps=3, batch_size=16).fit_transform(X)
    assert codes.shape == (n, -(-n_bits // 8))


def test_decoded_vectors_have_a_direction_where_lengths_cannot_be_told():
    coder = NearLossless(32).fit(clustered(600))
    codes = coder.encode(clustered(50))
    before = coder.inverse_transform(codes)
    coder.offset_[-1] -= 1000  # as lengths that vary by factors of thousands may do
    after = coder.inverse_transform(codes)
    cosines = (before * after).sum(axis=1)
    cosines /= np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    np.testing.assert_allclose(cosines, 1, atol=1e-6)
