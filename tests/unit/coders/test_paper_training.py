"""Training of the paper's coder in native code, against the same step in NumPy."""

import numpy as np
import pytest

import embits
from embits import _core
from embits.coders import PaperAutoencoder, paper, search_lambda

RATE, MOMENTUM, LAMBDA = 0.001, 0.95, 1.5
SHAPES = [  # bits, dims, rows, rows of a batch
    (1, 1, 3, 2),
    (11, 7, 5, 5),
    (7, 30, 33, 10),
    (64, 300, 150, 75),
    (50, 50, 20, 3),
    (113, 112, 100, 75),
    (100, 113, 100, 64),
    (17, 129, 80, 16),
    (256, 100, 200, 75),
]


def numpy_step(x, W, c, velocity_W, velocity_c):
    """One step of gradient descent on a batch, in place; returns its summed ℓ_rec."""
    b = (x @ W.T >= 0).astype("f4")
    y = np.tanh(b @ W + c)
    loss = float(((y - x) ** 2).sum()) / x.shape[1]
    delta = (y - x) * (1 - y * y) * np.float32(2 * RATE / x.shape[1])
    gram = W.T @ W - np.eye(W.shape[1], dtype="f4")
    velocity_W *= np.float32(MOMENTUM)
    velocity_W -= np.float32(2 * LAMBDA * RATE) * (W @ gram) + b.T @ delta
    velocity_c *= np.float32(MOMENTUM)
    velocity_c -= delta.sum(axis=0)
    W += velocity_W
    c += velocity_c
    return loss


def first_state(bits, dims):
    """W, c and their velocities."""
    rng = np.random.default_rng(1)
    sizes = ((bits, dims), 0.05), (dims, 0.05), ((bits, dims), 0.001), (dims, 0.001)
    return [rng.normal(0, spread, shape).astype("f4") for shape, spread in sizes]


def problem(dims, rows):
    rng = np.random.default_rng(dims)
    mean = rng.normal(0, 0.1, dims).astype("f4")
    return rng.normal(0, 0.6, (rows, dims)).astype("f4"), rng.permutation(rows), mean


def train(bits, dims, rows, batch, threads=1):
    X, order, mean = problem(dims, rows)
    state = first_state(bits, dims)
    loss = _core.train_paper(
        X, order, *state, batch, RATE, MOMENTUM, LAMBDA, mean, 2.0, True, threads
    )
    return [*state, loss]


@pytest.fixture(params=_core.available_simd())
def simd(request):
    before = _core.simd()
    _core.use_simd(request.param)
    yield request.param
    _core.use_simd(before)


def test_native_training_takes_the_steps_of_numpy(simd):
    for shape in SHAPES:
        bits, dims, rows, batch = shape
        X, order, mean = problem(dims, rows)
        x = np.clip((X[order] - mean) * 2, -1, 1)
        expected = first_state(bits, dims)
        loss = sum(numpy_step(x[at : at + batch], *expected) for at in range(0, rows, batch))
        *state, native_loss = train(*shape)
        assert native_loss == pytest.approx(loss, rel=1e-5)
        for array, wanted in zip(state, expected, strict=True):
            np.testing.assert_allclose(array, wanted, atol=1e-6, err_msg=str(shape))


def test_training_is_the_same_for_any_number_of_threads(simd):
    for shape in SHAPES:
        one = train(*shape)
        for threads in (2, 3, 0):
            for array, same in zip(one, train(*shape, threads), strict=True):
                assert np.array_equal(array, same), shape


def test_a_fit_depends_neither_on_the_layout_nor_on_the_blocks_of_the_input(monkeypatch):
    X = np.random.default_rng(0).normal(0, 0.4, (700, 20)).astype("f4")
    fitted = PaperAutoencoder(40, epochs=2).fit(X)
    monkeypatch.setattr(paper, "STEPS_AT_ONCE", 2)
    for same in (X, X.astype("f8"), np.asfortranarray(X)):
        again = PaperAutoencoder(40, epochs=2).fit(same)
        assert np.array_equal(again.W_, fitted.W_)
        np.testing.assert_allclose(again.loss_curve_, fitted.loss_curve_, rtol=1e-12)


def unit_vectors(n=2000, dims=256):
    """Unit vectors with a large mean, as many text embeddings have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20)) @ rng.normal(size=(20, dims)) + 8 * rng.normal(size=dims)
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype("f4")


def test_unit_vectors_are_centered_and_scaled_and_decoding_undoes_both(tmp_path):
    X = unit_vectors()
    bits = embits.binarize(X, 128, "paper")
    assert bits.coder.scale_[0] >= 8
    assert len(np.unique(bits.codes, axis=0)) > 1900
    rebuilt = bits.coder.inverse_transform(bits.codes)
    assert np.linalg.norm(rebuilt - X, axis=1).mean() < np.linalg.norm(X - X.mean(0), axis=1).mean()
    bits.save(tmp_path / "f")
    again = embits.load(tmp_path / "f")
    assert np.array_equal(again.coder.encode(X), bits.codes)
    assert np.array_equal(again.coder.inverse_transform(bits.codes), rebuilt)


def test_vectors_of_the_size_of_glove_are_neither_centered_nor_scaled():
    X = np.random.default_rng(0).normal(0.1, 0.4, (300, 20))
    coder = PaperAutoencoder(32, epochs=1).fit(X)
    assert set(coder.state()) == {"W", "c", "loss_curve"}
    assert not coder.mean_.any()
    assert coder.scale_ == 1


def test_a_scale_below_one_is_damage():
    X = unit_vectors()
    coder = PaperAutoencoder(32, epochs=1).fit(X)
    state = coder.state() | {"scale": np.zeros(1, "f4")}
    damaged = PaperAutoencoder.from_state(coder.get_params(), state, X.shape[1], 32)
    for use in (damaged.transform, lambda x: damaged.inverse_transform(coder.transform(x))):
        with pytest.raises(embits.FormatError, match="scale is 0, expected 1 or more"):
            use(X)


def test_search_lambda_refuses_what_it_cannot_fit_on():
    words = embits.WordVectors(["a", "b"], np.eye(2))
    for X, lambdas in ((words, (1,)), (np.eye(3), ()), (np.eye(3), "12"), (np.eye(3)[0], (1,))):
        with pytest.raises(embits.InputError):
            search_lambda(X, 8, lambdas)


def test_search_lambda_takes_the_smallest_sum_of_the_two_losses():
    X = np.random.default_rng(0).normal(0, 0.4, (300, 20))
    best, losses = search_lambda(X, 32, (1.0, 4.0), epochs=2)
    assert set(losses) == {1.0, 4.0}
    assert losses[best] == min(losses.values())
    fitted = PaperAutoencoder(32, lambda_reg=best, epochs=2).fit(X)
    assert losses[best] == pytest.approx(fitted.loss_curve_[-1].sum())
