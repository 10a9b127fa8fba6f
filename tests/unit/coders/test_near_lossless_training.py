"""How NearLossless is trained: the start, the gradient, the weights that are kept."""

import os
import subprocess
import sys

import numpy as np
import pytest

from embits.coders.backend import backend
from embits.coders.near_lossless import sampling, training
from embits.coders.near_lossless.training import closest_to_signs, first_weights, orthogonal
from embits.coders.near_lossless.whitening import Shaping, Target
from embits.errors import InputError, MissingExtraError
from tests.unit.coders.test_near_lossless import topics

# -- the start -----------------------------------------------------------------------------------


def test_a_matrix_is_made_orthogonal():
    rng = np.random.default_rng(0)
    matrix = (rng.normal(size=(40, 40)) + 20 * np.eye(40)).astype("f4")
    rotation = orthogonal(matrix)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(40), atol=1e-3)
    U, _, Vt = np.linalg.svd(matrix)
    np.testing.assert_allclose(rotation, U @ Vt, atol=1e-3)


def test_a_rotation_brings_rows_close_to_signs():
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0].astype("f4")
    corners = np.where(rng.normal(size=(2000, 12)) >= 0, 1, -1) + 0.1 * rng.normal(size=(2000, 12))
    rotated = corners.astype("f4") @ turn
    found = rotated @ closest_to_signs(rotated, rng)
    error = [np.mean((np.sign(z) - z) ** 2) for z in (found, rotated)]
    assert error[0] < 0.9 * error[1]


@pytest.mark.parametrize("n_bits", [1, 5, 16, 40])
def test_first_weights_are_orthogonal_up_to_the_dimensions(n_bits):
    rng = np.random.default_rng(0)
    weights = first_weights(
        topics(500, 16), np.linalg.qr(rng.normal(size=(16, 16)))[0], n_bits, rng
    )
    assert weights.shape == (n_bits, 16)
    first = weights[:16]
    np.testing.assert_allclose(first @ first.T, np.eye(len(first)), atol=0.02)


def test_a_start_from_zeros_is_finite():
    weights = first_weights(np.zeros((50, 4), "f4"), np.eye(4), 6, np.random.default_rng(0))
    assert np.isfinite(weights).all()


def test_shaping_folds_into_the_weights_and_back():
    unit = topics() / np.linalg.norm(topics(), axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    shaping = Shaping.fit(unit, Target(0.5, 0))
    weights, bias = rng.normal(size=(48, 32)), rng.normal(size=48)
    W, t = shaping.fold(weights, bias)
    scores = shaping.apply(unit, np.arange(len(unit))) @ weights.T + bias
    np.testing.assert_allclose(unit @ W.T - t, scores, atol=1e-3)
    back, bias_back = shaping.unfold(W, t)
    np.testing.assert_allclose(back, weights, atol=1e-4)
    np.testing.assert_allclose(bias_back, bias, atol=1e-4)


# -- the gradient --------------------------------------------------------------------------------


def problem(rng, n=9, dims=6, n_bits=5, dtype=np.float64):
    weights = training.Weights(
        rng.normal(size=(n_bits, dims)), rng.normal(size=n_bits), np.full(1, 0.8), np.full(1, 1.1)
    )
    return (
        training.Weights(*(w.astype(dtype) for w in weights)),
        rng.normal(size=(n, dims)).astype(dtype),
        (-training.FAR_BELOW * np.eye(n)).astype(dtype),
    )


@pytest.mark.parametrize("part", range(4))
def test_the_gradient_is_that_of_the_loss(part):
    weights, x, not_self = problem(np.random.default_rng(part))
    width = np.linspace(0.5, 1.5, 5)

    def loss_and_gradient(weights):
        return training.loss_and_gradient(
            np, weights, x, not_self, temperature=0.3, smooth_width=width
        )

    gradient = loss_and_gradient(weights)[1]
    numerical = np.empty_like(weights[part])
    for index in np.ndindex(numerical.shape):
        sides = []
        for nudge in (1e-6, -1e-6):
            moved = [w.copy() for w in weights]
            moved[part][index] += nudge
            sides.append(loss_and_gradient(training.Weights(*moved))[0])
        numerical[index] = (sides[0] - sides[1]) / 2e-6
    np.testing.assert_allclose(gradient[part], numerical, rtol=1e-5, atol=1e-8)


def test_the_straight_through_gradient_takes_signs_forward_and_the_slope_of_tanh_back():
    weights, x, not_self = problem(np.random.default_rng(0))
    loss, gradient = training.loss_and_gradient(np, weights, x, not_self, temperature=0.3)
    z = x @ weights.W.T + weights.t
    doubled = training.Weights(weights.W * 2, weights.t * 2, *weights[2:])
    again, halved = training.loss_and_gradient(np, doubled, x, not_self, temperature=0.3)
    assert np.isclose(loss, again)  # signs and directions do not depend on the scale
    np.testing.assert_allclose(halved.W, gradient.W / 2, rtol=1e-4)
    assert (np.sign(z) != 0).all()


def test_training_is_plain_array_api():
    xp = pytest.importorskip("array_api_strict")
    rng = np.random.default_rng(0)
    weights, x, not_self = problem(rng, dtype=np.float32)
    rates = training.Weights(0.1, 0.1, 0.1, 0.1)
    results = []
    for space in (np, xp):
        here = training.Weights(*(space.asarray(w.copy()) for w in weights))
        adam = training.Adam(space, here, rates)
        for _ in range(3):
            loss, gradient = training.loss_and_gradient(
                space, here, space.asarray(x), space.asarray(not_self), temperature=0.3
            )
            adam.step(here, gradient, 0.5)
        results.append([np.asarray(loss), *(np.asarray(w) for w in here)])
    for ours, strict in zip(*results, strict=True):
        np.testing.assert_allclose(ours, strict, rtol=1e-4, atol=1e-5)


def test_a_gpu_needs_its_extra_and_says_so():
    try:
        import array_api_compat.torch  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtraError, match=r"embits\[gpu\]"):
            backend("cuda")
    else:
        with pytest.raises(InputError, match="cannot be used"):
            backend("cuda:99")


def test_pytorch_learns_the_same_as_numpy():
    pytest.importorskip("torch")
    pytest.importorskip("array_api_compat")
    import array_api_compat.torch as xp

    weights, x, not_self = problem(np.random.default_rng(0), dtype=np.float32)
    ours = training.loss_and_gradient(np, weights, x, not_self, temperature=0.3)[1]
    there = training.loss_and_gradient(
        xp,
        training.Weights(*(xp.asarray(w.copy()) for w in weights)),
        xp.asarray(x),
        xp.asarray(not_self),
        temperature=0.3,
    )[1]
    for a, b in zip(ours, there, strict=True):
        np.testing.assert_allclose(a, np.asarray(b), rtol=1e-3, atol=1e-5)


def test_fitting_on_the_cpu_imports_nothing_but_numpy():
    program = (
        "import sys, numpy as np; from embits.coders import NearLossless; "
        "NearLossless(8, steps=3).fit_transform(np.random.default_rng(0).normal(size=(50, 4))); "
        "names = {m.split('.')[0] for m in sys.modules}; "
        "assert not names & {'torch', 'array_api_compat', 'scipy', 'sklearn'}"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# -- what is kept --------------------------------------------------------------------------------


def test_weights_that_lose_recall_are_not_kept(monkeypatch):
    unit = topics() / np.linalg.norm(topics(), axis=1, keepdims=True)
    rng = np.random.default_rng(0)
    shaping, split = Shaping.fit(unit, Target(0.25, 0)), sampling.hold_out(len(unit), rng)
    x = shaping.apply(unit, split.train)
    held_out = sampling.HeldOut(shaping.apply(unit, split.check), split.queries)
    start = first_weights(x, shaping.axes, 24, rng), np.zeros(24)
    monkeypatch.setattr(training, "LEARNING_RATES", training.Weights(50.0, 50.0, 0.02, 0.02))
    best, curve = training.descend(x, held_out, start, 20, 128, on=backend("cpu"), rng=rng)
    assert np.array_equal(best[0], start[0])
    assert len(curve) == training.CHECKS


FIT = """
import sys
import numpy as np
from embits.coders import NearLossless
X = np.random.default_rng(0).normal(size=(700, 40)) @ np.diag(np.linspace(2, 0.2, 40))
coder = NearLossless(n_bits=72, steps=40).fit(X)
sys.stdout.buffer.write(coder.W_.tobytes() + coder.decoder_.tobytes() + coder.encode(X).tobytes())
"""


def test_a_fit_does_not_depend_on_the_threads_of_the_matrix_library():
    names = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"
    fits = [
        subprocess.run(
            [sys.executable, "-c", FIT],
            env={**os.environ, **dict.fromkeys(names, threads)},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "5")
    ]
    assert len(fits[0]) > 10_000
    assert fits[0] == fits[1] == fits[2]
