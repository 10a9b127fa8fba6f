"""The target "similarity": vectors are whitened, and then treated as for "neighbors"."""

import json

import numpy as np
import pytest

import embits
from embits import NearLossless
from embits.arrays import unit_rows
from embits.coders import backend
from embits.coders.near_lossless import whitening
from embits.errors import FormatError, InputError

DIMS = 24


def leaning(n=1200, seed=0):
    """Rows of eight topics, beside three directions of large variance, all on one side."""
    rng = np.random.default_rng(seed)
    topics = np.random.default_rng(9).normal(size=(8, DIMS))
    common = np.random.default_rng(8).normal(size=(3, DIMS))
    number = rng.integers(8, size=n)
    X = topics[number] + rng.normal(0, 0.5, (n, DIMS)) + rng.normal(0, 2, (n, 3)) @ common
    return (X + 3 * common[0]).astype(np.float32), number


@pytest.fixture(scope="module")
def fitted():
    X, _ = leaning()
    return X, NearLossless(48, target="similarity", steps=20).fit(X)


def test_directions_have_norm_one_and_a_flatter_spectrum(fitted):
    X, coder = fitted
    directions = coder.directions(X)
    assert directions.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1, atol=1e-6)
    spreads = [np.linalg.eigvalsh(np.cov(rows.T)) for rows in (directions, unit_rows(X))]
    ratios = [spread[-1] / spread[DIMS // 2] for spread in spreads]
    assert ratios[0] < ratios[1] / 2
    assert np.linalg.norm(directions.mean(axis=0)) < np.linalg.norm(unit_rows(X).mean(axis=0)) / 3
    assert not coder.directions(np.zeros((1, DIMS), "f4")).any()


def test_codes_keep_what_a_few_large_directions_hide():
    X, number = leaning()
    shares = []
    for target in ("neighbors", "similarity"):
        codes = NearLossless(48, target=target, steps=20).fit(X).encode(X)
        found = embits.search.top_k(codes, codes, 11).rows[:, 1:]
        shares.append(np.mean(number[found] == number[:, None]))
    assert shares[1] > shares[0] + 0.05


def test_whitening_has_an_inverse(fitted):
    X, coder = fitted
    again = whitening.undo(coder.directions(X), coder.whitening_)
    np.testing.assert_allclose(again, unit_rows(X), atol=1e-5)


def test_vectors_come_back_as_they_were_and_whitened_on_request(fitted):
    X, coder = fitted
    rebuilt = coder.inverse_transform(coder.encode(X))
    of_mean = np.linalg.norm(X - X.mean(axis=0), axis=1).mean()
    assert np.linalg.norm(X - rebuilt, axis=1).mean() < 0.6 * of_mean
    cosines = (coder.directions(X) * coder.directions(rebuilt)).sum(axis=1)
    assert cosines.mean() > 0.85


def test_scores_are_cosines_of_whitened_vectors(fitted):
    X, coder = fitted
    bits = embits.BinaryVectors(None, coder.encode(X), coder)
    directions = coder.directions(bits.decode())
    expected = directions[3] @ directions[8]
    assert bits.similarity(3, 8, metric="decoded") == pytest.approx(expected, abs=1e-5)
    asked = bits.search(X[:50], len(X), metric="asymmetric")
    cosines = coder.directions(X[:50]) @ coder.directions(X).T
    np.put_along_axis(scores := np.empty_like(cosines), asked.rows, asked.scores, axis=1)
    assert np.corrcoef(scores.ravel(), cosines.ravel())[0, 1] > 0.9
    itself = bits.search(bits.codes[:20], 1, metric="decoded")
    np.testing.assert_allclose(itself.scores, 1, atol=1e-5)


def test_a_code_depends_on_the_direction_alone_and_not_on_the_block(fitted):
    X, coder = fitted
    codes = coder.encode(X)
    for size in (1, 7):
        parts = [coder.encode(X[at : at + size]) for at in range(0, 70, size)]
        assert np.array_equal(np.concatenate(parts), codes[:70])
    for scale in (2.0**-90, 8.0, 1e-30, 3e10):
        assert np.unpackbits(coder.encode(X * np.float32(scale)) ^ codes).mean() < 1e-3


def test_another_device_gives_the_same_codes(fitted, monkeypatch):
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setattr(backend, "backend", lambda *_: backend.Backend(strict))
    X, coder = fitted
    thresholds = NearLossless.from_state(
        coder.get_params(), coder.state() | {"search": np.empty(0)}, DIMS, 48
    )
    for each in (coder, thresholds):
        assert np.array_equal(each.encode(X, device="cuda"), each.encode(X))


def test_only_whitened_files_have_the_array_and_a_version_that_0_2_refuses(fitted, tmp_path):
    X, coder = fitted
    plain = NearLossless(48, steps=2).fit(X)
    for each, version in ((coder, "3"), (plain, "2")):
        path = tmp_path / "codes.safetensors"
        embits.BinaryVectors(None, each.encode(X), each).save(path, overwrite=True)
        data = path.read_bytes()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        assert header["__metadata__"]["format_version"] == version
        assert ("coder.whitening" in header) == (each is coder)
        opened = embits.load(path)
        assert np.array_equal(opened.encode(X), opened.codes)


def test_files_of_version_0_2_keep_their_codes(fitted):
    X, coder = fitted
    state = {name: coder.state()[name] for name in ("W", "t", "decoder", "offset", "loss_curve")}
    old = NearLossless.from_state({"target": "similarity", "n_bits": 48}, state, DIMS, 48)
    assert old.is_threshold
    scores = X @ old.W_.T - np.linalg.norm(X, axis=1, keepdims=True) * old.t_
    assert np.mean((scores >= 0) != np.unpackbits(old.encode(X), axis=1, count=48)) < 1e-4
    assert set(old.state()) == set(state)


def test_a_fit_goes_on_with_the_whitening_it_has(fitted):
    coder = fitted[1]
    later = NearLossless.from_state(coder.get_params(), coder.state(), DIMS, 48)
    later.partial_fit(leaning(seed=5)[0])
    assert np.array_equal(later.whitening_, coder.whitening_)
    assert not np.array_equal(later.W_, coder.W_)


@pytest.mark.parametrize("damage", [lambda a: a[:-1], lambda a: np.vstack([a, a])])
def test_a_damaged_whitening_is_refused(fitted, damage):
    _, coder = fitted
    state = coder.state() | {"whitening": damage(coder.whitening_)}
    with pytest.raises(InputError, match="whitening"):
        NearLossless.from_state(coder.get_params(), state, DIMS, 48)


def test_a_matrix_without_an_inverse_is_refused(fitted):
    X, coder = fitted
    state = coder.state() | {"whitening": np.zeros((DIMS + 1, DIMS), "f4")}
    damaged = NearLossless.from_state(coder.get_params(), state, DIMS, 48)
    with pytest.raises(FormatError, match="inverse"):
        damaged.inverse_transform(coder.encode(X[:2]))


def test_one_point_is_not_whitened():
    unit = unit_rows(np.full((40, 5), 3.7, "f4"))
    assert whitening.fit(unit, 0.5).shape == (0, 5)


def test_sums_are_exact_in_any_order(fitted):
    X, coder = fitted
    order = np.random.default_rng(0).permutation(DIMS)
    other = np.vstack([coder.whitening_[:1, order], coder.whitening_[1:][order][:, order]])
    assert np.array_equal(
        whitening.apply(X[:, order], other), whitening.apply(X, coder.whitening_)[:, order]
    )
