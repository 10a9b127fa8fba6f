"""Lengths of vectors, a byte each: decoding, inner products, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import embits
from embits.errors import FormatError, InputError
from embits.file.store import VERSIONS
from embits.search.rescoring import exact_scores
from embits.search.scan import asymmetric_top_k
from embits.segment import Lengths

# The lengths vary on purpose, also by more than a byte holds.
pytestmark = [
    pytest.mark.filterwarnings("ignore:lengths of vectors vary widely"),
    pytest.mark.filterwarnings("ignore:.* times shorter than the longest"),
]


def vectors(n: int = 400, dims: int = 24, seed: int = 0) -> np.ndarray:
    """Vectors whose lengths vary by a factor of 100, one of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dims)) * np.exp(rng.uniform(-2.3, 2.3, size=(n, 1)))
    X[7] = 0
    return X.astype(np.float32)


@example(np.array([63.0, 2.0**-9]))  # the longest rounds up to the next doubling
@given(arrays(np.float64, st.integers(0, 30), elements=st.floats(1e-3, 1e3) | st.just(0.0)))
def test_a_length_is_off_by_at_most_two_percent(lengths: np.ndarray) -> None:
    kept = lengths >= lengths.max(initial=0) / 2**13.9
    found = Lengths.of(lengths).floats
    np.testing.assert_allclose(found[kept], lengths[kept], rtol=0.0225)
    assert ((found == 0) == (lengths == 0)).all()
    assert (Lengths.of(found).floats == found).all()  # the scale is a fixed point


@given(st.lists(arrays(np.float64, st.integers(0, 8), elements=st.floats(0.1, 100.0)), min_size=1))
def test_joined_lengths_are_those_of_the_parts(parts: list[np.ndarray]) -> None:
    stored = [Lengths.of(part) for part in parts]
    expected = np.concatenate([part.floats for part in stored])
    np.testing.assert_array_equal(Lengths.joined(stored).floats, expected)


def test_decoded_vectors_have_their_true_lengths() -> None:
    X = vectors()
    bits = embits.binarize(X, n_bits=64, method="itq", lengths=True)
    np.testing.assert_allclose(
        np.linalg.norm(bits.decode(), axis=1), np.linalg.norm(X, axis=1), rtol=0.0225
    )
    for keys, rows in (([3, 5], [3, 5]), ("3", 3), (slice(2, 4), [2, 3]), (["6", 7], [6, 7])):
        np.testing.assert_allclose(bits.decode(keys), bits.decode()[rows], atol=1e-6)


@pytest.mark.parametrize("method", ["lsh", "near-lossless"])
@pytest.mark.parametrize("filtered", ["no", "mask", "few", "each"])
def test_inner_products_are_ordered_as_the_slow_sum_orders_them(method: str, filtered: str) -> None:
    X = vectors(600)
    bits = embits.binarize(X, n_bits=72, method=method, lengths=True)
    rng = np.random.default_rng(1)
    queries = vectors(20, seed=2)
    where = {
        "no": None,
        "mask": rng.random(len(X)) < 0.7,
        "few": rng.choice(len(X), 9, replace=False),
        "each": [None, [1, 2, 3], *(rng.random(len(X)) < 0.5 for _ in range(18))],
    }[filtered]
    found = bits.search(queries, k=12, metric="dot", where=where)
    weights, offsets = embits.search.METRICS["dot"].prepare(bits.coder, queries)
    for q in range(len(queries)):
        allowed = where[q] if filtered == "each" else where
        rows = bits.select(allowed).rows
        own = np.repeat(weights[[q]], len(rows), axis=0)
        sums = exact_scores(bits.codes[rows], own) + np.float64(offsets[q, 0])
        scores = bits.lengths[rows].astype(np.float64) * sums
        order = np.lexsort((rows, -scores))[:12]
        shown = found.rows[q][found.rows[q] >= 0]
        np.testing.assert_array_equal(shown, rows[order])
        np.testing.assert_array_equal(
            found.scores[q][: len(order)], scores[order].astype(np.float32)
        )


def test_inner_products_find_more_of_the_true_ones_than_cosines() -> None:
    X = vectors(2000, seed=3)
    bits = embits.binarize(X, n_bits=128, method="itq", lengths=True)
    queries = vectors(50, seed=4)[8:]
    true = np.argsort(-(queries @ X.T), axis=1)[:, :10]

    def recall(metric: str) -> float:
        rows = bits.search(queries, k=10, metric=metric).rows
        return float(np.mean([len(np.intersect1d(a, b)) for a, b in zip(rows, true, strict=True)]))

    assert recall("dot") > 3 * recall("asymmetric")


def test_threads_do_not_change_inner_products() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 256, (90_000, 32), dtype=np.uint8)
    lengths = np.exp(rng.normal(size=len(codes))).astype(np.float32)
    weights = rng.normal(size=(2, 256)).astype(np.float32)
    one, many = (
        asymmetric_top_k(codes, weights, 20, threads, lengths=lengths, offsets=np.float32([3, -3]))
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.rows, many.rows)
    np.testing.assert_array_equal(one.scores, many.scores)


def test_lengths_stay_with_their_rows(tmp_path: Path) -> None:
    X = vectors()
    bits = embits.binarize(
        X, n_bits=64, method="lsh", ids=[f"r{i}" for i in range(400)], lengths=True
    )
    bits.save(tmp_path / "a.safetensors")
    for each in (
        embits.load(tmp_path / "a.safetensors", verify=True),
        embits.concat([bits.subset(rows=range(100)), bits.subset(rows=range(100, 400))]),
        bits.slim(without=["order"]),
    ):
        order = each.key_to_index
        rows = [order[f"r{i}"] for i in range(400)]
        np.testing.assert_array_equal(each.lengths[rows], bits.lengths)
    assert bits.slim(without=["lengths"]).lengths is None


def test_a_file_with_lengths_says_so_to_older_versions(tmp_path: Path) -> None:
    for lengths, version in ((False, b'"format_version":"2"'), (True, b'"format_version":"3"')):
        file = tmp_path / f"{lengths}.safetensors"
        embits.binarize(vectors(), n_bits=64, method="lsh", lengths=lengths).save(file)
        assert version in file.read_bytes()[:4000]
    assert VERSIONS == ("1", "2", "3", "4")


def test_what_lengths_are_needed_for_is_refused_without_them() -> None:
    bits = embits.binarize(vectors(), n_bits=64, method="lsh")
    with pytest.raises(InputError, match="lengths"):
        bits.search(vectors()[0], metric="dot")
    with pytest.raises(InputError, match="lengths"):
        embits.concat(
            [bits, embits.BinaryVectors(None, bits.codes, bits.coder, lengths=np.ones(400))]
        )
    with pytest.raises(InputError, match="lengths"):
        embits.BinaryVectors(None, bits.codes, bits.coder, lengths=[1.0])
    with pytest.raises(InputError, match="lengths"):
        embits.BinaryVectors(None, bits.codes, bits.coder, lengths=np.full(400, np.nan))


def test_a_damaged_scale_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    embits.binarize(vectors(), n_bits=64, method="lsh", lengths=True).save(file)
    content = file.read_bytes()
    file.write_bytes(content.replace(b"lengths_base", b"lengths_bass", 1))
    with pytest.raises(FormatError):
        embits.load(file)


def test_columns_of_any_name_stay_with_their_rows(tmp_path: Path) -> None:
    year = np.arange(400, dtype=np.uint32)
    coder = embits.RandomHyperplanes(64).fit(vectors())
    bits = embits.BinaryVectors(
        None, coder.encode(vectors()), coder, lengths=np.ones(400), columns={"year": year}
    )
    bits.save(tmp_path / "a.safetensors")
    loaded = embits.load(tmp_path / "a.safetensors", verify=True)
    np.testing.assert_array_equal(loaded.columns["year"], year)
    some = embits.concat([loaded.subset([5, 3]), loaded.subset([8])])
    np.testing.assert_array_equal(some.columns["year"], [5, 3, 8])
    assert "year" in bits.slim(without=["lengths"]).columns
    without = embits.BinaryVectors(None, bits.codes, coder, columns={"year": year})
    without.save(tmp_path / "b.safetensors")
    assert b'"format_version":"3"' in (tmp_path / "b.safetensors").read_bytes()[:4000]
    assert without.lengths is None


def test_columns_of_arrow_are_taken_and_joined_but_not_saved(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    coder = embits.RandomHyperplanes(64).fit(vectors())
    texts = pa.array([f"text {i}" for i in range(400)])
    bits = embits.BinaryVectors(None, coder.encode(vectors()), coder, columns={"text": texts})
    some = embits.concat([bits.subset([5, 3]), bits.subset([8])])
    assert some.columns["text"].to_pylist() == ["text 5", "text 3", "text 8"]
    with pytest.raises(InputError, match="'text'"):
        bits.save(tmp_path / "a.safetensors")
    with pytest.raises(InputError, match="3 text for 400"):
        embits.BinaryVectors(None, bits.codes, coder, columns={"text": texts[:3]})


def test_rescoring_orders_inner_products_by_those_of_the_floats() -> None:
    X = vectors(500, seed=6)
    X[7] = X[8] + 1
    bits = embits.binarize(X, n_bits=128, method="itq", lengths=True)
    query = vectors(20, seed=7)[9]
    found = bits.search(query, k=5, metric="dot", rescore=embits.Rescore(500, X))
    np.testing.assert_array_equal(found.rows, np.argsort(-(X @ query))[:5])
    np.testing.assert_allclose(found.scores, np.sort(X @ query)[::-1][:5], rtol=1e-5)
    by_id = embits.WordVectors([str(i) for i in range(500)][::-1], X[::-1])
    same = bits.search(query, k=5, metric="dot", rescore=embits.Rescore(500, by_id))
    np.testing.assert_array_equal(same.rows, found.rows)


def test_a_collection_without_lengths_refuses_them(tmp_path: Path) -> None:
    coder = embits.RandomHyperplanes(64).fit(vectors())
    collection = embits.open_collection(tmp_path / "c", coder)
    collection.add(vectors()[:5])
    with pytest.raises(InputError, match="lengths"):
        collection.add(vectors()[5:8], lengths=True)
    assert len(collection) == 5


def test_a_collection_keeps_the_columns_of_a_file(tmp_path: Path) -> None:
    coder = embits.RandomHyperplanes(64).fit(vectors())
    year = np.arange(400, dtype=np.uint32)
    bits = embits.BinaryVectors(
        None, coder.encode(vectors()), coder, lengths=np.ones(400), columns={"year": year}
    )
    collection = embits.open_collection(tmp_path / "c", coder)
    collection.add(bits)
    collection.add(vectors()[:5])
    opened = embits.load(tmp_path / "c", verify=True)
    assert opened.columns["year"].to_pylist() == [*range(400), *[None] * 5]
    assert opened.lengths is not None
    assert opened.lengths[0] == 1


def test_lengths_that_a_byte_cannot_hold_are_told():
    lengths = np.array([1.0, 2.0, 1e6])
    with pytest.warns(embits.errors.ReadWarning, match="2 of 3 vectors are over 16,000 times"):
        assert Lengths.of(lengths).floats[2] == pytest.approx(1e6, rel=0.022)
    with pytest.warns(embits.errors.ReadWarning, match="2 of 2 vectors"):
        Lengths.joined([Lengths.of(lengths[:2]), Lengths.of(lengths[2:])])
