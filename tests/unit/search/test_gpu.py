"""Search and encoding on a GPU answer as the CPU does.

Where there is no GPU, Triton's interpreter runs the same kernels on the CPU: slow, but exact.
"""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.coders import METHODS

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-gpu has it")
if torch.cuda.is_available():
    SEARCHES = ENCODES = "cuda"
    MOST_ROWS = 5000
else:
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is first imported
    SEARCHES, ENCODES = "cpu", "cpu:0"  # PyTorch's own CPU, by a name that is not NumPy's
    MOST_ROWS = 600

pytest.importorskip("triton")
pytest.importorskip("array_api_compat")


@settings(max_examples=25 if SEARCHES == "cuda" else 8, deadline=None)
@given(
    n=st.integers(0, MOST_ROWS),
    width=st.sampled_from([1, 3, 4, 8, 12, 16, 32, 33, 64, 100, 128]),
    q=st.sampled_from([0, 1, 2, 7, 33, 40]),
    k=st.integers(0, 40),
    values=st.sampled_from([2, 4, 256]),
    seed=st.integers(0, 2**32 - 1),
)
def test_device_index_answers_as_top_k_does(n, width, q, k, values, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (n, width), dtype=np.uint8)  # few values: many ties
    queries = rng.integers(0, values, (q, width), dtype=np.uint8)
    got = embits.search.DeviceIndex(codes, SEARCHES).top_k(queries, k)
    for mine, theirs in zip(got, embits.search.top_k(codes, queries, k), strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("q", [5, 17, 70, 130])
@pytest.mark.parametrize("width", [3, 8, 32, 64, 96, 128])
def test_batches_of_every_size_and_width_answer_as_top_k_does(width, q):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (700, width), dtype=np.uint8)
    codes[300:] = codes[:400]  # ties
    queries = rng.integers(0, 256, (q, width), dtype=np.uint8)
    queries[0], queries[1], queries[2] = 0, 255, codes[9]
    got = embits.search.DeviceIndex(codes, SEARCHES).top_k(queries, 11)
    expected = embits.search.top_k(codes, queries, 11)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(got, expected, strict=True))


@settings(max_examples=25 if SEARCHES == "cuda" else 8, deadline=None)
@given(
    n=st.integers(1, MOST_ROWS),
    width=st.sampled_from([1, 4, 8, 32, 33, 64, 128]),
    q=st.sampled_from([1, 2, 7, 33, 40, 130]),
    k=st.integers(0, 40),
    share=st.sampled_from([0, 0.02, 0.2, 0.6, 0.97]),
    seed=st.integers(0, 2**32 - 1),
)
def test_device_index_filters_as_top_k_does(n, width, q, k, share, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, (n, width), dtype=np.uint8)
    queries = rng.integers(0, 4, (q, width), dtype=np.uint8)
    queries[0] = 255  # as far as can be from some rows
    index = embits.search.DeviceIndex(codes, SEARCHES)
    mask = rng.random(n) < share
    mask[: int(rng.integers(0, n))] &= rng.random() < 0.5  # whole tiles without rows
    few = [rng.random(n) < rng.random() for _ in range(min(q, 3))]
    cases = [
        (queries, {"where": mask}),
        (queries, {"exclude": mask}),
        (queries[0], {"where": mask}),
    ]
    for batch, filters in [*cases, (queries[: len(few)], {"where": few})]:
        got = index.top_k(batch, k, **filters)
        for mine, theirs in zip(got, embits.search.top_k(codes, batch, k, **filters), strict=True):
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("q", [1, 70])
@pytest.mark.parametrize("width", [3, 32, 96, 128])
@pytest.mark.parametrize("share", [0.02, 0.5])
def test_filters_at_every_width_and_batch_size(width, q, share):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (1100, width), dtype=np.uint8)
    queries = rng.integers(0, 256, (q, width), dtype=np.uint8)
    mask = rng.random(1100) < share
    mask[256:512] = False  # a tile without rows
    codes[~mask] = queries[0]  # the nearest rows do not pass
    got = embits.search.DeviceIndex(codes, SEARCHES).top_k(queries, 11, where=mask)
    expected = embits.search.top_k(codes, queries, 11, where=mask)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(got, expected, strict=True))


def test_device_index_searches_in_chunks(monkeypatch):
    from embits.search import gpu

    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (1100, 4), dtype=np.uint8)
    expected = embits.search.top_k(codes, codes[:40], 3)
    monkeypatch.setattr(gpu, "SCRATCH_BYTES", 2 * 4 * 40)  # two tiles, one query
    monkeypatch.setattr(gpu, "GROUP", 2)
    got = embits.search.DeviceIndex(codes, SEARCHES).top_k(codes[:40], 3)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(got, expected, strict=True))


def test_device_index_finds_tiles_by_groups(monkeypatch):
    from embits.search import gpu

    codes = np.random.default_rng(0).integers(0, 2, (9000, 4), dtype=np.uint8)
    monkeypatch.setattr(gpu, "GROUP", 3)  # 36 tiles: 12 groups, and the last one is short
    got = embits.search.DeviceIndex(codes[:8700], SEARCHES).top_k(codes[:50], 4)
    expected = embits.search.top_k(codes[:8700], codes[:50], 4)
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(got, expected, strict=True))


def test_a_single_query_has_a_single_answer():
    codes = np.arange(200, dtype=np.uint8)[:, None]
    distances, rows = embits.search.DeviceIndex(codes, SEARCHES).top_k(codes[5], 2)
    assert (distances.tolist(), rows.tolist()) == ([0, 1], [5, 1])


@pytest.mark.parametrize("method", list(METHODS))
def test_encoding_gives_the_codes_of_the_cpu(method):
    rng = np.random.default_rng(0)
    X = rng.normal(0, 0.4, (3000, 24)).astype(np.float32)
    X[7] = 0
    quick = {"near-lossless": {"steps": 20}, "sparse": {"iterations": 2}}.get(method, {})
    coder = METHODS[method](**quick)
    if method != "sign":
        coder.set_params(n_bits=100)
    coder.fit(X[:1000])
    codes = coder.transform(X)
    assert np.array_equal(coder.transform(X, device=ENCODES), codes)
    there = torch.from_numpy(X).to(ENCODES)
    assert np.array_equal(coder.transform(there, device=ENCODES), codes)
    assert np.array_equal(coder.transform(there), codes)  # without being told where


def test_what_the_cpu_refuses_is_refused_on_a_device():
    coder = embits.RandomHyperplanes(n_bits=8).fit(np.eye(4))
    X = np.ones((5, 4), np.float32)
    X[3, 1] = np.nan
    with pytest.raises(embits.InputError, match="row 3 of the vectors contains NaN"):
        coder.transform(X, device=ENCODES)
    with pytest.raises(embits.InputError, match="X has 3 features"):
        coder.transform(X[:, :3], device=ENCODES)


def test_rows_in_doubt_are_decided_by_the_cpu():
    planes = np.array([[1.0, -1.0]], dtype=np.float32)
    coder = embits.RandomHyperplanes(n_bits=1).fit(planes)
    coder.planes_ = planes
    x = np.float32(1) + np.float32(2) ** -np.arange(10, 40, dtype=np.float32)
    X = np.stack([x, np.ones_like(x)], axis=1)
    assert np.array_equal(coder.transform(X, device=ENCODES), coder.transform(X))


def test_binary_vectors_search_on_a_device():
    X = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    bits = embits.binarize(X, n_bits=64, method="lsh")
    few = {"metric": "hamming", "where": bits.select(np.arange(0, 300, 9), [18])}
    near = {"metric": "hamming", "rescore": embits.Rescore(by=X)}
    for options in ({"metric": "hamming"}, near, {"metric": "asymmetric", "rescore": 20}, few):
        got = bits.on(device=SEARCHES + ":0").search(X[:40], 5, **options)
        expected = bits.search(X[:40], 5, **options)
        assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))


def test_a_device_that_is_not_there_is_refused():
    with pytest.raises(embits.InputError, match="device 'cuda:99' cannot be used"):
        embits.search.DeviceIndex(np.zeros((1, 1), np.uint8), "cuda:99")
    with pytest.raises(embits.InputError, match="expected"):
        embits.search.DeviceIndex(np.zeros((1, 1), np.uint8), "")
