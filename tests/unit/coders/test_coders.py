"""Coders: what goes in as floats comes out as bits that keep the neighborhood, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embits
from embits.coders import METHODS, coder_class, search_lambda
from embits.errors import InputError
from tests.support.vectors import clustered

X = clustered()
MADE = {
    name: maker(**({"n_bits": 64} if name != "sign" else {})).fit(X)
    for name, maker in METHODS.items()
}
every_coder = pytest.mark.parametrize("coder", MADE.values(), ids=list(MADE))


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@every_coder
def test_codes_are_packed_first_bit_highest_with_zero_padding(coder):
    codes = coder.transform(X)
    padding = np.unpackbits(codes, axis=1)[:, coder.n_bits_ :]
    assert not padding.any()
    if coder.is_threshold:
        assert np.array_equal(codes, np.packbits(coder.project(X) >= 0, axis=1))


@every_coder
def test_rebuilt_floats_point_the_way_of_the_originals(coder):
    rebuilt = coder.inverse_transform(coder.transform(X))
    assert rebuilt.shape == X.shape
    assert rebuilt.dtype == np.float32
    assert cosines(rebuilt, X).mean() > 0.7


@every_coder
def test_a_coder_rebuilt_from_its_state_gives_the_same_codes(coder):
    copy = type(coder).from_state(
        coder.get_params(), coder.state(), coder.n_features_in_, coder.n_bits_
    )
    assert np.array_equal(copy.transform(X), coder.transform(X))
    assert np.array_equal(
        copy.inverse_transform(copy.transform(X)), coder.inverse_transform(coder.transform(X))
    )


@every_coder
def test_state_of_another_shape_is_refused(coder):
    name = next(iter(coder.state_shapes))
    for wrong in (np.zeros((3, 3), "f4"), np.zeros(coder.state()[name].shape, "u1")):
        with pytest.raises(embits.InputError, match=name):
            type(coder).from_state(coder.get_params(), {**coder.state(), name: wrong}, 24, 64)


@every_coder
def test_codes_do_not_depend_on_how_the_input_is_stored(coder, tmp_path):
    codes = coder.transform(X)
    np.save(tmp_path / "x.npy", X)
    for same in (X.astype("f8"), np.asfortranarray(X), np.load(tmp_path / "x.npy", mmap_mode="r")):
        assert np.array_equal(coder.transform(same), codes)


@every_coder
def test_nan_is_refused_with_its_row(coder):
    bad = X.copy()
    bad[17, 3] = np.nan
    with pytest.raises(embits.InputError, match="row 17 of the vectors contains NaN"):
        coder.transform(bad)


@every_coder
def test_codes_of_the_wrong_width_are_refused(coder):
    for wrong in (np.zeros((2, 99), "u1"), np.zeros((2, coder.n_bytes_), "f4")):
        with pytest.raises(embits.InputError, match="packed bits"):
            coder.inverse_transform(wrong)


@given(n_bits=st.integers(1, 70), n=st.integers(1, 40), dims=st.integers(1, 12))
def test_the_paper_coder_takes_any_width_and_any_shape(n_bits, n, dims):
    x = np.random.default_rng(n).normal(size=(n, dims))
    coder = embits.PaperAutoencoder(n_bits, epochs=1).fit(x)
    codes = coder.transform(x)
    assert codes.shape == (n, -(-n_bits // 8))
    assert np.isfinite(coder.inverse_transform(codes)).all()


def test_the_paper_step_follows_the_numerical_gradient_of_the_decoder_and_the_regularizer():
    """The bits are held fixed (∂Φ/∂W = 0), everything else is differentiated."""
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(0, 0.4, (5, 7)), -1, 1).astype("f4")
    coder = embits.PaperAutoencoder(
        n_bits=11, lambda_reg=0.7, learning_rate=1e-3, momentum=0.0, batch_size=5, epochs=1
    ).fit(x)
    W, c = coder.W_.astype("f8"), coder.c_.astype("f8")
    b = (x @ coder.W_.T >= 0).astype("f8")

    def loss(W, c):
        y = np.tanh(b @ W + c)
        gram = W.T @ W - np.eye(7)
        return ((x - y) ** 2).sum() / 7 + 0.7 * 0.5 * (gram**2).sum()

    def numerical(of, at, eps=1e-6):
        gradient = np.zeros_like(at)
        for i in np.ndindex(at.shape):
            step = np.zeros_like(at)
            step[i] = eps
            gradient[i] = (of(at + step) - of(at - step)) / (2 * eps)
        return gradient

    coder.partial_fit(x)  # one batch: one step
    moved_W, moved_c = (W - coder.W_) / 1e-3, (c - coder.c_) / 1e-3
    assert np.allclose(moved_W, numerical(lambda w: loss(w, c), W), atol=2e-3)
    assert np.allclose(moved_c, numerical(lambda v: loss(W, v), c), atol=2e-3)


def test_the_paper_coder_learns_and_keeps_its_loss_curve():
    coder = embits.PaperAutoencoder(n_bits=64, epochs=8).fit(X)
    assert coder.loss_curve_.shape == (8, 2)
    assert coder.loss_curve_[-1, 0] < coder.loss_curve_[0, 0]


def test_partial_fit_continues_and_also_after_a_file(tmp_path):
    coder = embits.PaperAutoencoder(n_bits=32)
    for _ in range(3):
        coder.partial_fit(X)
    assert len(coder.loss_curve_) == 3
    embits.BinaryVectors.encoded(embits.WordVectors(None, X), coder).save(tmp_path / "f")
    again = embits.load(tmp_path / "f").coder.partial_fit(X)
    assert len(again.loss_curve_) == 4


def test_training_that_diverges_says_so():
    with pytest.raises(embits.errors.TrainingError, match="lower learning_rate"):
        embits.PaperAutoencoder(n_bits=64, learning_rate=50.0, epochs=2).fit(X)


def test_the_same_seed_gives_the_same_codes_and_another_seed_others():
    first, same, other = (
        embits.PaperAutoencoder(48, random_state=seed, epochs=1).fit_transform(X)
        for seed in (3, 3, 4)
    )
    assert np.array_equal(first, same)
    assert not np.array_equal(first, other)


def test_clipping_holds_values_to_the_range_of_tanh():
    far = 5 * X
    clipped = embits.PaperAutoencoder(32, epochs=1).fit(far)
    assert np.array_equal(clipped.project(far), clipped.project(np.clip(far, -1, 1)))
    plain = embits.PaperAutoencoder(32, epochs=1, clip=False).fit(X)
    assert not np.array_equal(plain.project(far), plain.project(np.clip(far, -1, 1)))


def test_bad_parameters_are_refused_at_fit():
    makers = {"n_bits": embits.RandomHyperplanes, "density": embits.SparseBits}
    for name, values in {
        "n_bits": (0, 2.5, True, "8"),
        "random_state": (-1, "seed"),
        "epochs": (0, 1.5),
        "batch_size": (0, None),
        "momentum": (1.0, -0.1),
        "learning_rate": (0, np.nan),
        "lambda_reg": (-1, "1"),
        "density": (0, 1, np.nan),
    }.items():
        for value in values:
            with pytest.raises(embits.InputError, match=f"^{name} is "):
                makers.get(name, embits.PaperAutoencoder)(**{name: value}).fit(X)
    for maker in (embits.ITQ, embits.SparseBits):
        with pytest.raises(embits.InputError, match="iterations"):
            maker(iterations=-1).fit(X)


def test_sign_has_no_other_width_than_the_dimensions():
    with pytest.raises(embits.InputError, match="one bit per dimension: 24"):
        embits.SignBits(n_bits=64).fit(X)
    assert embits.SignBits(n_bits=24).fit(X).n_bits_ == 24


def test_an_unknown_method_names_the_known_ones():
    with pytest.raises(embits.InputError, match="paper, lsh, sign"):
        coder_class("magic")


def test_search_lambda_takes_the_weight_with_the_smallest_losses():
    best, losses = search_lambda(X, n_bits=32, lambdas=(0.5, 1.0, 2.0), epochs=2)
    assert set(losses) == {0.5, 1.0, 2.0}
    assert losses[best] == min(losses.values())


def test_a_code_has_a_most_number_of_bits():
    for method in ("lsh", "near-lossless", "paper", "itq", "sparse"):
        with pytest.raises(InputError, match=r"n_bits is 65537, expected .* to 65,536"):
            embits.binarize(np.eye(3), 65_537, method)
    with pytest.raises(InputError, match="to 65,536"):
        embits.RandomHyperplanes(n_bits=10**9).fit(np.eye(3))
