"""Neural: the net in integers, its training, the search under it, and the second look."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

import embits
from embits import Neural, _core
from embits.coders import backend
from embits.coders.backend import Backend
from embits.coders.near_lossless.encoder import exact_unit
from embits.coders.neural import coder, device, training
from embits.coders.neural.net import TOP, Layer, Net
from embits.errors import FormatError, InputError
from tests.unit.coders.test_near_lossless import topics

SHORT = coder.Effort(50, 64, 0.2, 2, (1, 1), (10,), (10,), 2, 2, 1 << 14, 4)
SHAPES = [(256, 40, 70), (37, 50, 64), (8, 3, 1), (1, 1, 5), (100, 20, 0)]


def drawn(bits, dims, hidden, seed=0):
    """A net of random weights, in floats and in bytes, and packed codes."""
    rng = np.random.default_rng(seed)
    weights = training.first_weights(
        rng.normal(size=(bits, dims)) / bits**0.5, rng.normal(size=dims), hidden, rng
    )
    some = {name: rng.normal(size=getattr(weights, name).shape) / 8 for name in "agPR"}
    weights = weights._replace(**{name: each.astype("f4") for name, each in some.items()})
    b = rng.random((60, bits)) < 0.5
    signs = 2 * b.astype("f4") - 1
    return weights, training.in_bytes(weights, signs), np.packbits(b, axis=1), signs


def oracle(net: Net, codes):
    """The net by NumPy's integers, from its definition."""
    bits = net.A.shape[1]
    A, G, M = (each.astype(np.int64) for each in (net.A, net.G, net.M))
    b = np.unpackbits(codes, axis=1, count=bits).astype(np.int64)

    def activation(sums, scale, bias):
        return np.floor(np.clip(sums.astype("f4") * scale + bias, 0, TOP) + np.float32(0.5))

    p = activation((2 * b - 1) @ A.T, net.alpha, net.a).astype(np.int64)
    r = activation(p @ G.T, net.beta, net.g).astype(np.int64)
    return (np.concatenate([TOP * b, p, r], axis=1) @ M.T).astype("f4") * net.c + net.o


@pytest.mark.parametrize("shape", SHAPES)
def test_the_net_is_that_of_its_definition_and_close_to_its_floats(shape):
    weights, net, codes, signs = drawn(*shape)
    found = net.decode(codes)
    assert np.array_equal(found, oracle(net, codes))
    assert np.array_equal(net.decode(codes[:7], threads=1), found[:7])
    exact = training.forward(np, weights, signs)[2]
    assert np.abs(found - exact).max() < 0.05 * np.abs(exact).max() + 0.05


@pytest.mark.parametrize("shape", SHAPES)
def test_every_instruction_set_decodes_and_searches_alike(shape):
    _, net, codes, _ = drawn(*shape)
    found, usual = {}, _core.available_simd()[-1]
    for simd in _core.available_simd():
        _core.use_simd(simd)
        found[simd] = net.decode(codes).tobytes() + searched(net, codes)[0].tobytes()
    _core.use_simd(usual)
    assert len({*found.values()}) == 1, found.keys()


def searched(net, codes, rounds=6, tries=3, seed=1):
    rng = np.random.default_rng(seed)
    unit = rng.normal(size=(len(codes), len(net.c))).astype("f4")
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    pulls = (rng.normal(size=(len(codes), net.A.shape[1])) / 50).astype("f4")
    return net.search(unit, pulls, codes, rounds, tries), unit, pulls


def energy(net, codes, unit, pulls):
    y = net.decode(codes).astype(np.float64)
    signs = 2.0 * np.unpackbits(codes, axis=1, count=net.A.shape[1]) - 1
    norms = np.sqrt((y * y).sum(axis=1))
    return -2 * (unit * y).sum(axis=1) / norms - (pulls * signs).sum(axis=1)


@pytest.mark.parametrize("shape", [*SHAPES, (64, 384, 128), (256, 2100, 70)])
@pytest.mark.parametrize("library", ["array_api_strict", "array_api_compat.torch"])
def test_another_array_library_searches_alike(shape, library):
    """A GPU flips the same bits; there are sums that float32 does not hold."""
    on = Backend(pytest.importorskip(library))
    _, net, codes, _ = drawn(*shape)
    if shape[1] > 2000:
        net = replace(net, M=np.where(net.M > 0, np.int8(127), np.int8(-127)))
    found, unit, pulls = searched(net, codes)
    unit[1] = net.decode(codes[1:2])[0]
    pulls[2] = 9
    found = net.search(unit, pulls, codes, 6, 3)
    assert np.array_equal(device.search(on, net, unit, pulls, codes, 6, 3), found)
    assert np.array_equal(device.search(on, net, unit[:0], pulls[:0], codes[:0], 6, 3), codes[:0])


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_a_search_that_tries_all_bits_makes_the_best_flip_of_each_round(shape):
    _, net, codes, _ = drawn(*shape)
    bits = shape[0]
    found, unit, pulls = searched(net, codes, rounds=1, tries=bits)
    best = energy(net, codes, unit, pulls)
    for bit in range(bits):
        flipped = codes.copy()
        flipped[:, bit // 8] ^= 128 >> bit % 8
        best = np.minimum(best, energy(net, flipped, unit, pulls))
    np.testing.assert_allclose(energy(net, found, unit, pulls), best, atol=3e-6)


def test_a_search_never_raises_the_energy_and_depends_on_no_other_row():
    _, net, codes, _ = drawn(64, 30, 40)
    found, unit, pulls = searched(net, codes)
    assert (energy(net, found, unit, pulls) <= energy(net, codes, unit, pulls) + 1e-6).all()
    assert (found != codes).any()
    alone = [net.search(unit[[i]], pulls[[i]], codes[[i]], 6, 3)[0] for i in range(len(codes))]
    assert np.array_equal(alone, found)
    spread = net.search(np.repeat(unit, 2, axis=0)[::2], pulls, codes, 6, 3)  # not contiguous
    assert np.array_equal(spread, found)


def test_the_gradient_of_the_net_is_that_of_differences():
    rng = np.random.default_rng(0)
    weights, _, _, signs = drawn(12, 6, 10)
    weights = training.Weights(*(each.astype(np.float64) for each in weights))
    x, s = rng.normal(size=(5, 6)), signs[:5].astype(np.float64)
    drop = training.Dropped(
        *map(np.float64, training.Dropped.draw(np, 5, 12, 10, 0.3, Backend(np).uniform(rng)))
    )
    _, gradient, by_s = training.loss_and_gradient(np, weights, s, x, drop)

    def loss(weights, s):
        return training.loss_and_gradient(np, weights, s, x, drop)[0]

    for name, slope in zip(weights._fields, gradient, strict=True):
        for _ in range(4):
            at = tuple(rng.integers(size) for size in slope.shape)
            step = np.zeros_like(slope)
            step[at] = 1e-5
            ends = [
                loss(weights._replace(**{name: getattr(weights, name) + t * step}), s)
                for t in (1, -1)
            ]
            assert slope[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-5), name
    step = np.zeros_like(s)
    step[2, 3] = 1e-5
    assert by_s[2, 3] == pytest.approx(
        (loss(weights, s + step) - loss(weights, s - step)) / 2e-5, abs=1e-5
    )


def test_another_array_library_trains_alike():
    strict = pytest.importorskip("array_api_strict")
    weights, _, _, signs = drawn(12, 6, 10)
    unit = np.random.default_rng(1).normal(size=(60, 6)).astype("f4")
    found = [
        training.train(
            weights,
            signs,
            unit,
            (signs, unit),
            3,
            1.0,
            0.2,
            on=Backend(xp),
            rng=np.random.default_rng(0),
        )
        for xp in (np, strict)
    ]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


@pytest.fixture(scope="module")
def documents():
    X = topics(1500, 24)
    fitted = Neural(n_bits=48).fit(X[:1000])
    return X, embits.BinaryVectors([f"d{i}" for i in range(len(X))], fitted.encode(X), fitted)


def recall(bits, X, queries, **settings):
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    near = np.argsort(-unit[queries] @ unit.T, axis=1)[:, :10]
    found = bits.search(X[queries], 10, **settings).rows
    return np.mean([len({*a} & {*b}) for a, b in zip(near, found, strict=True)]) / 10


@pytest.mark.slow
def test_the_net_finds_more_neighbors_of_unseen_rows_than_the_linear_decoder(documents):
    X, bits = documents
    queries = np.arange(1000, 1300)
    with_net = recall(bits, X, queries, metric="asymmetric")
    assert with_net > recall(bits, X, queries, metric="asymmetric", rescore=0)
    usual = embits.NearLossless(n_bits=48).fit(X[:1000])
    plain = embits.BinaryVectors(None, usual.encode(X), usual)
    assert with_net > recall(plain, X, queries, metric="asymmetric")
    error = [np.linalg.norm(X - b.coder.inverse_transform(b.codes)) for b in (bits, plain)]
    assert error[0] < error[1]


@pytest.mark.parametrize("metric", ["asymmetric", "decoded"])
def test_a_second_look_orders_the_best_rows_by_the_cosines_of_decoded_vectors(documents, metric):
    X, bits = documents
    queries = X[1000:1020]
    wide = bits.search(queries, 60, metric=metric, rescore=0).rows
    asked = queries if metric == "asymmetric" else bits.decode(bits.encode(queries))
    for query, rows, found in zip(
        asked,
        wide,
        bits.search(queries, 7, metric=metric, rescore=embits.Rescore(60, "decoded")).rows,
        strict=True,
    ):
        rows = np.sort(rows)
        vectors = bits.decode(rows=rows).astype(np.float64)
        cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        assert np.array_equal(rows[np.argsort(-cosines.round(6), kind="stable")[:7]], found) or (
            np.sort(-cosines)[:7] == pytest.approx(-cosines[np.searchsorted(rows, found)], abs=1e-5)
        )


def test_a_second_look_keeps_filters_and_ids(documents):
    X, bits = documents
    where = [f"d{i}" for i in range(0, 1500, 50)]
    found = bits.search(X[:3], 5, metric="asymmetric", where=where)
    assert {*found.ids.ravel()} <= {*where}
    each = bits.search(X[:2], 5, metric="asymmetric", where=[None, ["d3", "d4"]])
    assert each.ids[1].tolist() in (["d3", "d4", "", "", ""], ["d4", "d3", "", "", ""])
    assert np.isneginf(each.scores[1, 2:]).all()
    assert bits.search(X[0], 3, metric="asymmetric").ids[0] == "d0"
    rescored = bits.search(X[:3], 5, metric="asymmetric", rescore=embits.Rescore(by=X))
    assert rescored.rows[:, 0].tolist() == [0, 1, 2]


def test_the_usual_second_look_grows_with_k(documents):
    X, bits = documents
    look = bits.coder.second_look
    for k, rows in ((3, look), (10, look), (40, 4 * look)):
        found = bits.search(X[:5], k, metric="asymmetric")
        given = bits.search(X[:5], k, metric="asymmetric", rescore=embits.Rescore(rows, "decoded"))
        assert np.array_equal(found.rows, given.rows)


def test_a_net_is_not_trained_on_from_few_rows(documents):
    assert not hasattr(documents[1].coder, "partial_fit")


def test_a_second_look_needs_a_metric_of_cosines(documents):
    X, bits = documents
    with pytest.raises(InputError, match="finer score than metric='hamming'"):
        bits.search(X[0], 5, metric="hamming", rescore=embits.Rescore(10, "decoded"))
    with pytest.raises(InputError, match="rescore"):
        embits.Rescore(-1, "decoded")


def test_a_file_keeps_the_net(documents, tmp_path):
    X, bits = documents
    bits.save(tmp_path / "bits.safetensors")
    loaded = embits.load(tmp_path / "bits.safetensors", verify=True)
    assert np.array_equal(loaded.coder.encode(X[:100]), bits.codes[:100])
    assert np.array_equal(loaded.decode(), bits.decode())
    again = deepcopy(bits.coder)  # as workers get it
    assert np.array_equal(again.encode(X[:100]), bits.codes[:100])
    assert loaded.coder.second_look == bits.coder.second_look > 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("net_G", np.zeros((3, 4), np.int8)),
        ("net_M", np.zeros((24, 2), np.int8)),
        ("look", np.array([1.0, -1.0, 4.0])),
        ("look", np.array([1.0, 1e30, 4.0])),
    ],
)
def test_nets_that_do_not_fit_together_are_damage(documents, name, value):
    X, bits = documents
    state = {**bits.coder.state(), name: value}
    with pytest.raises(FormatError, match="damaged"):
        Neural.from_state(bits.coder.get_params(), state, 24, 48).encode(X[:3])


def test_weights_of_another_type_are_refused(documents):
    _, bits = documents
    state = {**bits.coder.state(), "net_A": bits.coder.net_A_.astype("f4")}
    with pytest.raises(InputError, match=r"net_A_ is float32 .*, expected int8"):
        Neural.from_state(bits.coder.get_params(), state, 24, 48)


def test_a_device_gives_the_codes_of_the_cpu(documents, with_layer, monkeypatch):
    strict = pytest.importorskip("array_api_strict")
    monkeypatch.setattr(backend, "backend", lambda *_: Backend(strict))
    for fitted, X in ((documents[1].coder, documents[0]), with_layer):
        assert np.array_equal(fitted.encode(X[:300], device="cuda"), fitted.encode(X[:300]))
        assert fitted.encode(X[:0], device="cuda").shape == fitted.encode(X[:0]).shape
        with pytest.raises(InputError, match="NaN"):
            fitted.encode(np.full((2, 24), np.nan), device="cuda")


@pytest.mark.filterwarnings("ignore:fitted on")
def test_few_rows_have_a_linear_net():
    X = topics(60, 24)
    fitted = Neural(n_bits=16).fit(X)
    assert fitted.second_look == 0
    assert fitted.net.A.shape == (0, 16)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    rebuilt = fitted.inverse_transform(fitted.encode(X))
    cosines = (rebuilt * unit).sum(axis=1) / np.linalg.norm(rebuilt, axis=1)
    assert cosines.mean() > 0.5


def test_wrong_parameters_are_refused():
    for params in ({"prefer": "speed"}, {"effort": "endless"}, {"target": "x"}, {"device": ""}):
        with pytest.raises(InputError):
            Neural(**params).fit(topics(50))


def encoder_of(bits, dims, hidden, rng):
    """An encoder of random weights, in float64."""
    sizes = (bits, dims), bits, (hidden, dims), hidden, (bits, hidden)
    return training.Encoder(*(rng.normal(size=size) / 3 for size in sizes))


def test_the_gradient_of_training_together_is_that_of_differences(monkeypatch):
    """With tanh in place of signs, which has a slope."""
    rng = np.random.default_rng(0)
    net, _, _, _ = drawn(12, 6, 10)
    x = rng.normal(size=(7, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    parts = (*net, *encoder_of(12, 6, 10, rng), np.full(1, 1.5))
    now = [np.float64(part) for part in parts]
    drop = training.Dropped(
        *map(np.float64, training.Dropped.draw(np, 7, 12, 10, 0.3, Backend(np).uniform(rng)))
    )
    factors = np.float64(rng.random((7, 10)) < 0.7) / 0.7
    not_self = -1e4 * np.eye(7)
    width = 0.7
    monkeypatch.setattr(training.ranking, "signs", lambda xp, z: np.tanh(z / width))
    monkeypatch.setattr(np, "std", lambda z, axis: np.full(12, (width - 1e-6) / 0.6))

    def loss(now):
        *net, W, t, S, u, U, log_alpha = now
        scaled = x * 6**0.5
        h = np.maximum(scaled @ S.T + u, 0) * factors
        b = np.tanh((scaled @ W.T - t + h @ U.T) / width)
        rebuilt = training.loss_and_gradient(np, training.Weights(*net), b, x, drop)[0]
        P, of_codes = (
            training.ranking.softmax(np, s - 1e4 * np.eye(7))[0]
            for s in (x @ x.T / training.ranking.TEMPERATURE, b @ b.T * np.exp(log_alpha) / 12)
        )
        ranked = -(P * np.log(of_codes + np.eye(7))).sum() / 7
        return rebuilt + 0.4 * ranked

    gradient = training._together(np, now, x, not_self, (drop, factors), 0.4)
    for part, slope in enumerate(gradient):
        for _ in range(3):
            at = tuple(rng.integers(size) for size in slope.shape)
            ends = []
            for sign in (1, -1):
                moved = [each.copy() for each in now]
                moved[part][at] += sign * 1e-5
                ends.append(loss(moved))
            assert slope[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=2e-5), part


def test_a_hidden_layer_in_bytes_is_close_to_its_floats_and_alike_on_every_instruction_set():
    rng = np.random.default_rng(3)
    encoder = encoder_of(37, 50, 70, rng)
    unit = exact_unit(rng.normal(size=(90, 50)).astype("f4"))
    layer = Layer.of(encoder.S, encoder.u, encoder.U)
    exact = training.scores(np, encoder, unit)[1] - (unit @ encoder.W.T - encoder.t)
    assert np.abs(layer.scores(unit) - exact).max() < 0.02 * np.abs(exact).max()
    found, usual = set(), _core.available_simd()[-1]
    for simd in _core.available_simd():
        _core.use_simd(simd)
        found |= {layer.scores(unit).tobytes()}
        found |= {np.concatenate([layer.scores(unit[:7]), layer.scores(unit[7:])]).tobytes()}
    _core.use_simd(usual)
    assert len(found) == 1


@pytest.fixture(scope="module")
def with_layer():
    """A coder whose encoder has a hidden layer, with rows that it was not fitted on."""
    X, found = topics(900, 24), [np.ones(2), np.ones(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coder, "LEAST_TOGETHER", 300)
        patch.setattr(coder._Training, "_recalls", lambda self, searched: found.pop())
        patch.setitem(coder.EFFORTS, "default", SHORT)
        fitted = Neural(n_bits=12).fit(X[:600])
    return fitted, X[600:]


def test_a_hidden_layer_is_kept_in_a_file_and_codes_do_not_depend_on_blocks(with_layer, tmp_path):
    fitted, X = with_layer
    assert fitted.layer is not None
    codes = fitted.encode(X)
    assert np.array_equal(codes, np.concatenate([fitted.encode(X[:1]), fitted.encode(X[1:])]))
    embits.BinaryVectors(None, codes, fitted).save(tmp_path / "x.safetensors")
    loaded = embits.load(tmp_path / "x.safetensors", verify=True)
    assert np.array_equal(loaded.coder.encode(X), codes)
    assert np.array_equal(deepcopy(fitted).encode(X), codes)
    fitted_again = deepcopy(fitted).fit(topics(300, 24))  # too few rows for a hidden layer
    assert fitted_again.layer is None
    assert not [name for name in fitted_again.state() if name.startswith("layer_")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("layer_U", np.zeros((12, 3), np.int8)),
        ("layer_u", np.zeros(5, np.float32)),
        ("layer_sigma", np.full(64, 1e7, np.float32)),
        ("layer_upsilon", np.full(12, np.nan, np.float32)),
    ],
)
def test_hidden_layers_that_do_not_fit_are_damage(with_layer, name, value):
    fitted, X = with_layer
    state = {**fitted.state(), name: value}
    with pytest.raises(FormatError, match="damaged"):
        Neural.from_state(fitted.get_params(), state, 24, 12).encode(X[:3])


def test_a_hidden_layer_that_finds_fewer_neighbors_of_held_out_rows_is_not_used(monkeypatch):
    monkeypatch.setattr(coder, "LEAST_TOGETHER", 300)
    for prefer, with_layer, is_used in (
        ("balanced", [0.4, 0.6], True),
        ("balanced", [0.295, 0.6], True),  # within the error of a recall
        ("hamming", [0.295, 0.6], False),
        ("balanced", [0.29, 0.6], False),
        ("float", [0.2, 0.6], True),
        ("float", [0.4, 0.49], False),
    ):
        recalls = [np.array([0.3, 0.5]), np.array(with_layer)]
        monkeypatch.setattr(coder._Training, "_recalls", lambda self, _, of=recalls: of.pop())
        monkeypatch.setitem(coder.EFFORTS, "default", SHORT)
        fitted = Neural(n_bits=12, prefer=prefer).fit(topics(400, 24))
        assert (fitted.layer is not None) is is_used
