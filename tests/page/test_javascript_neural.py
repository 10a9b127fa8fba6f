"""Files of `Neural` in JavaScript: codes to the bit, the net to the last digit, second looks."""

import json

import numpy as np
import pytest

import embits
from embits import NearLossless, Neural
from embits.coders.neural import training
from embits.coders.neural.coder import LAYER, NET
from embits.coders.neural.net import Layer
from embits.errors import FormatError
from tests.support import mutants
from tests.support.damage import resigned
from tests.support.javascript import assert_same, clustered, needs_node, node, refuses
from tests.unit.coders.test_near_lossless import topics

KERNELS = ("JavaScript", "WebAssembly SIMD")
K, QUERIES = 9, 40
SHAPES = [
    (8, 2, 4),
    (13, 3, 5),
    (48, 24, 64),
    (64, 7, 0),
    (40, 257, 33),
    (300, 50, 130),
    (1, 12, 9),
    (24, 1, 8),
    (48, 24, 64, 30),
    (61, 40, 7, 513),
]


def drawn(bits, dims, hidden, units=0):
    """A coder with a net of random weights, and vectors: no fit, and far more flips."""
    rng = np.random.default_rng(bits)
    centers = rng.normal(size=(30, dims))
    X = (centers[rng.integers(0, 30, 300)] + 0.5 * rng.normal(size=(300, dims))).astype("f4")
    state = {
        "W": rng.normal(size=(bits, dims)).astype("f4") / dims**0.5,
        "t": rng.normal(size=bits).astype("f4") / 9,
        "decoder": rng.normal(size=(bits, dims + 1)).astype("f4") / (bits * dims) ** 0.5,
        "offset": rng.normal(size=dims + 1).astype("f4"),
        "search": np.array([0.8, 0.05, 1, 0.1, 1, 0.2]),
        "loss_curve": np.zeros((0, 3)),
        "look": np.array([20.0, 8, 4]),
    }
    D = state["decoder"][:, :-1] / 2
    weights = training.first_weights(D, state["offset"][:-1] + D.sum(axis=0), hidden, rng)
    some = {name: rng.normal(size=getattr(weights, name).shape) / 8 for name in "agPR"}
    weights = weights._replace(**{name: each.astype("f4") for name, each in some.items()})
    net = training.in_bytes(weights, 2 * (rng.random((200, bits)) < 0.5).astype("f4") - 1)
    state |= {f"net_{name}": getattr(net, name) for name in NET}
    if units:
        sizes = (units, dims), units, (bits, units)
        layer = Layer.of(*(rng.normal(size=size) / units**0.5 for size in sizes))
        state |= {f"layer_{name}": getattr(layer, name) for name in LAYER}
    return Neural.from_state({"n_bits": bits}, state, dims, bits), X


def asked(folder, questions):
    """What Node answers to questions of each file, with either kernel."""
    (folder / "questions.json").write_text(json.dumps(questions))
    return json.loads(node("ask.mjs", folder))


def question(method, query, **options):
    name = "code" if query.dtype == np.uint8 else "vector"
    return {"method": method, "query": {name: query.tolist()}, "options": options}


def queries(X):
    """Vectors, one of zeros, and two whose squares underflow in float32."""
    return np.concatenate([X[:QUERIES], 0 * X[:1], np.float32(1e-20) * X[:2]])


@needs_node
def test_nets_of_any_shape_encode_and_decode_as_in_python(tmp_path):
    questions, files = {}, {}
    for shape in SHAPES:
        coder, X = drawn(*shape)
        name = "-".join(map(str, shape))
        files[name] = embits.BinaryVectors(None, coder.encode(X), coder), queries(X)
        files[name][0].save(tmp_path / name)
        codes = coder.encode(files[name][1])
        questions[name] = [question("encode", x) for x in files[name][1]]
        questions[name] += [question("rebuilt", code) for code in codes]
        questions[name] += [question("decode", code) for code in codes]
    answered, flips = asked(tmp_path, questions), 0
    for name, (bits, X) in files.items():
        codes = bits.encode(X)
        flips += np.bitwise_count(codes ^ NearLossless.encode_rows(bits.coder, X)).sum()
        found = np.array_split(np.array(answered[name]["JavaScript"], dtype=object), 3)
        assert [*found[0]] == codes.tolist(), name
        assert np.array_equal(np.array([*found[1]], "f4"), bits.coder.rebuilt(codes)), name
        assert np.allclose(np.array([*found[2]]), bits.decode(codes), rtol=1e-6, atol=1e-6), name
    assert flips > 500


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A file and a collection of a fitted coder, one of too few rows, and what Python opens."""
    folder = tmp_path_factory.mktemp("neural")
    X = clustered(900, 1)
    coder = Neural(n_bits=48).fit(X[:500])
    ids = [f"d{i}" for i in range(len(X))]
    embits.BinaryVectors(ids, coder.encode(X), coder).save(folder / "file.safetensors")
    collection = embits.open_collection(folder / "collection", coder)
    for rows in (slice(0, 600), slice(600, 900)):
        collection.add(X[rows], ids[rows])
    collection.remove(["d3", "d4", "d700"])
    few = Neural(n_bits=16).fit(topics(96, 24))  # its bits are not searched, and its net is linear
    embits.BinaryVectors(None, few.encode(X), few).save(folder / "few.safetensors")
    names = ("file.safetensors", "collection", "few.safetensors")
    return folder, {name: embits.load(folder / name) for name in names}


@needs_node
@pytest.mark.parametrize("name", ["file.safetensors", "collection", "few.safetensors"])
def test_second_looks_find_the_rows_of_python(fitted, name):
    folder, opened = fitted
    bits, X = opened[name], queries(clustered(QUERIES, 2))
    assert (bits.coder.second_look > 0) is (name != "few.safetensors")
    some = [str(each) for each in bits.ids(np.arange(0, len(bits), 7))]
    settings = [
        {"metric": metric, **look, **rows}
        for metric in ("asymmetric", "decoded")
        for look in ({}, {"second_look": 0}, {"second_look": 5}, {"second_look": 200})
        for rows in ({}, {"where": some}, {"exclude": some})
    ]
    expected, wanted = [], []
    for i, x in enumerate(X):
        chosen = settings[i % len(settings)], settings[(7 * i + 11) % len(settings)]
        for each in chosen:
            rows = bits.select(each.get("where"), each.get("exclude"))
            look = each.get("second_look")
            rescore = None if look is None else embits.Rescore(look, "decoded")
            found = bits.search(x, K, metric=each["metric"], where=rows, rescore=rescore)
            expected.append(found)
            there = {n.replace("second_look", "secondLook"): given for n, given in each.items()}
            if each["metric"] == "asymmetric":
                del there["metric"]  # the default of vectors
            wanted.append(question("search", x, k=K, **there))
    for code in bits.codes[:QUERIES]:
        expected.append(bits.search(code, K, metric="decoded"))
        wanted.append(question("search", code, k=K, metric="decoded"))
    answered = asked(folder, {name: wanted})[name]
    for kernel in KERNELS:
        for found, result in zip(answered[kernel], expected, strict=True):
            assert_same(found, result)
            assert found["words"] == [str(each) for each in bits.ids(np.array(found["rows"], int))]


@needs_node
def test_any_coder_takes_a_second_look(tmp_path):
    X = clustered(400, 1)
    for coder in (NearLossless(40, steps=20), embits.ITQ(33), embits.RandomHyperplanes(64)):
        bits = embits.BinaryVectors(None, coder.fit(X).encode(X), coder)
        bits.save(tmp_path / "some.safetensors")
        settings = {"k": K, "metric": "asymmetric"}
        wanted = [question("search", x, secondLook=50, **settings) for x in X[:20]]
        answered = asked(tmp_path, {"some.safetensors": wanted})["some.safetensors"]
        for x, found in zip(X[:20], answered["JavaScript"], strict=True):
            assert_same(found, bits.search(x, rescore=embits.Rescore(50, "decoded"), **settings))


@needs_node
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"metric": "hamming", "secondLook": 9},
            "secondLook needs the metric 'asymmetric' or 'decoded', found 'hamming'",
        ),
        ({"metric": "decoded", "secondLook": -1}, "secondLook is -1, expected a whole number of 0"),
        ({"metric": "asymmetric", "secondLook": 1.5}, "secondLook is 1.5, expected a whole number"),
    ],
)
def test_wrong_second_looks_are_refused_in_one_line(fitted, options, message):
    x = clustered(1, 2)[0]
    answered = asked(fitted[0], {"file.safetensors": [question("search", x, **options)]})
    [found] = answered["file.safetensors"]["JavaScript"]
    assert found["error"].startswith(message)
    assert "\n" not in found["error"]


@needs_node
def test_the_same_arrays_are_refused_when_a_file_is_opened(fitted, tmp_path):
    source = (fitted[0] / "file.safetensors").read_bytes()
    lies = [
        (name, key, value)
        for name in ("net_A", "net_G", "net_M", "net_alpha", "net_c", "look", "decoder")
        for key, value in (("dtype", "U8"), ("dtype", "U32"), ("shape", [1]), ("shape", None))
    ]
    for i, (name, key, value) in enumerate(lies):
        (path := tmp_path / f"{i:02}-{name}-{key}-{value}").write_bytes(source)
        resigned(path, lambda header, n=name, k=key, v=value: header[f"coder.{n}"].update({k: v}))
    for name in ("net_A", "net_beta", "look"):
        (path := tmp_path / f"without-{name}").write_bytes(source)
        resigned(path, lambda header, n=name: header.update({"x": header.pop(f"coder.{n}")}))
    damaged = bytearray(source)
    header = json.loads(source[8 : 8 + int.from_bytes(source[:8], "little")])
    at = len(source) - max(header[n]["data_offsets"][1] for n in header if n != "__metadata__")
    at += header["coder.net_alpha"]["data_offsets"][0]
    damaged[at : at + 4] = np.float32(np.nan).tobytes()
    (tmp_path / "nan").write_bytes(damaged)
    resigned(tmp_path / "nan", lambda header: None)
    (tmp_path / "whole").write_bytes(source)
    by_python = {path.name: refuses(path) for path in tmp_path.iterdir()}
    assert [name for name, refused in by_python.items() if not refused] == ["whole"]
    assert json.loads(node("refuses.mjs", tmp_path)) == by_python


@needs_node
@pytest.mark.parametrize(
    ("name", "shape"),
    [("net_G", [3, 4]), ("net_A", [3, 48]), ("net_M", [24, 2]), ("net_beta", [5])],
)
def test_arrays_that_do_not_fit_together_are_refused_when_a_file_is_opened(name, shape, tmp_path):
    path = tmp_path / "damaged"
    mutants.write({"source": "v3-layer", "steps": [["shape", f"coder.{name}", shape]]}, path)
    with pytest.raises(FormatError, match="damaged"):
        embits.load(path)
    assert json.loads(node("refuses.mjs", tmp_path)) == {"damaged": True}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("look", np.array([1.0, -1.0, 4.0])),
        ("look", np.array([1.0, 1e6, 4.0])),
        ("net_alpha", None),
        ("net_o", None),
    ],
)
def test_the_same_arrays_are_refused_when_they_are_used(fitted, tmp_path, name, value):
    """Numbers that no fit gives; None: too large ones."""
    bits = fitted[1]["file.safetensors"]
    state = bits.coder.state()
    state[name] = np.full_like(state[name], 1e18) if value is None else value
    coder = Neural.from_state(bits.coder.get_params(), state, 24, 48)
    embits.BinaryVectors(None, bits.codes[:5], coder).save(tmp_path / "damaged")
    if value is None:
        path, usual = tmp_path / "damaged", np.float32(1e18).tobytes()
        path.write_bytes(path.read_bytes().replace(usual, np.float32(2e18).tobytes()))
        resigned(path, lambda header: None)
    x = clustered(1, 2)[0]
    with pytest.raises(FormatError, match="damaged"):
        embits.load(tmp_path / "damaged").encode(x)
    wanted = [question("encode", x)]
    if name != "look":  # a net is needed to decode as well
        wanted += [question("rebuilt", bits.codes[0]), question("search", x, metric="asymmetric")]
    for found in asked(tmp_path, {"damaged": wanted})["damaged"]["JavaScript"]:
        assert found["name"] == "FormatError"
        assert found["error"].startswith("damaged: the coder's ")
