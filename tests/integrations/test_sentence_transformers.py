"""Matrices of sentence embeddings: ids, arrays of other libraries, and others' packed bits."""

import importlib.util

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import embits
from embits.arrays import to_numpy
from embits.integrations.sentence_transformers import (
    from_quantized,
    packed,
    quantize_embeddings,
    sign_coder,
)
from tests.support.vectors import clustered

X = clustered(300, 40)
floats = hnp.arrays(
    st.sampled_from([np.float16, np.float32, np.float64]),
    st.tuples(st.integers(0, 9), st.integers(1, 40)),
    elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 6e-8, -6e-8, 0.25, -3.0]),
)


def as_documented(matrix, precision):
    """sentence-transformers' definition, bit by bit."""
    codes = np.zeros((len(matrix), -(-matrix.shape[1] // 8)), dtype=np.int64)
    for row, column in zip(*np.nonzero(matrix > 0), strict=True):
        codes[row, column // 8] += 128 >> column % 8
    return codes.astype(np.uint8) if precision == "ubinary" else (codes - 128).astype(np.int8)


@given(floats, st.sampled_from(["ubinary", "binary"]))
def test_signs_are_packed_as_sentence_transformers_documents(matrix, precision):
    codes = quantize_embeddings(matrix, precision)
    expected = as_documented(matrix, precision)
    assert codes.dtype == expected.dtype
    np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("precision", ["ubinary", "binary"])
@pytest.mark.parametrize("dims", [1, 8, 13, 384])
def test_signs_are_packed_as_sentence_transformers_itself_packs_them(dims, precision):
    util = pytest.importorskip("sentence_transformers.util.quantization")
    matrix = np.random.default_rng(dims).normal(size=(50, dims)).astype("f4")
    matrix[matrix < -1] = 0
    for given_ in (matrix, matrix.astype("f2"), matrix.astype("f8")):
        theirs = util.quantize_embeddings(given_, precision=precision)
        ours = quantize_embeddings(given_, precision)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def test_the_strict_sign_coder_packs_the_same_bits_and_keeps_them_in_a_file(tmp_path):
    matrix = np.array([[0.0, -0.0, 1e-38, -1e-38, 2, -2, 0, 3, 0, 1]], dtype="f4")
    bits = embits.binarize(matrix, method="sign", strict=True)
    np.testing.assert_array_equal(bits.codes, as_documented(matrix, "ubinary"))
    bits.save(tmp_path / "bits")
    again = embits.load(tmp_path / "bits", verify=True)
    np.testing.assert_array_equal(again.encode(matrix), bits.codes)
    np.testing.assert_array_equal(embits.SignBits().fit(matrix).transform(matrix)[0], [235, 192])


@given(floats.filter(len))
def test_codes_of_either_precision_come_back_as_they_were(matrix):
    codes = quantize_embeddings(matrix)
    dims = matrix.shape[1]
    for precision in ("ubinary", "binary"):
        given_ = quantize_embeddings(matrix, precision)
        np.testing.assert_array_equal(packed(given_), codes)
        bits = from_quantized(given_, dims=dims)
        np.testing.assert_array_equal(bits.codes, codes)
        signs = np.where(matrix > 0, 1, -1) / np.sqrt(dims)
        np.testing.assert_allclose(bits.decode(), signs, rtol=1e-6)
        np.testing.assert_array_equal(bits.encode(bits.decode()), codes)


def test_learned_bits_travel_in_the_same_bytes():
    coder = embits.RandomHyperplanes(n_bits=100).fit(X)
    codes = quantize_embeddings(X, "binary", coder)
    assert codes.dtype == np.int8
    assert codes.shape == (300, 13)
    bits = from_quantized(codes, coder=coder, ids=range(1000, 1300))
    np.testing.assert_array_equal(bits.codes, coder.transform(X))
    assert bits.ids(bits.search(X[5], k=1)[1], int).tolist() == [1005]


def test_the_asymmetric_search_ranks_as_their_rescoring_does():
    """Theirs: a shortlist by Hamming distance, then the dot product of the floats and the bits."""
    bits = from_quantized(quantize_embeddings(X))
    queries = clustered(20, 40, seed=3)
    distances = np.bitwise_count(bits.codes[None] ^ bits.encode(queries)[:, None]).sum(axis=2)
    shortlist = np.argsort(distances, axis=1, kind="stable")[:, :20]
    dots = np.einsum("qd,qkd->qk", queries, np.unpackbits(bits.codes, axis=1)[shortlist])
    best = np.take_along_axis(shortlist, np.argsort(-dots, axis=1, kind="stable")[:, :5], 1)
    scores, rows = bits.search(queries, k=5, metric="asymmetric", rescore=20)
    np.testing.assert_array_equal(rows, best)
    # Ours is the cosine of the floats and the signs, theirs the dot product with 0 and 1.
    signed = 2 * np.sort(dots, axis=1)[:, ::-1][:, :5] - queries.sum(axis=1)[:, None]
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.sqrt(bits.n_bits)
    np.testing.assert_allclose(scores, signed / lengths, rtol=1e-4)


@pytest.mark.parametrize(
    ("codes", "options", "message"),
    [
        (np.zeros((2, 4), "f4"), {}, "codes are float32, expected uint8"),
        (np.zeros(4, "u1"), {}, "1 dimension"),
        (np.full((2, 1), 255, "u1"), {"dims": 5}, "bits set past the coder's 5 bits"),
        (np.zeros((2, 1), "u1"), {"dims": 9}, r"expected packed bits: uint8 of shape \(n, 2\)"),
        (np.zeros((2, 1), "u1"), {"dims": 0}, "dims is 0"),
        (np.zeros((2, 1), "u1"), {"dims": 7, "coder": sign_coder(8)}, "dims is 7, but the coder"),
        (np.zeros((2, 1), "u1"), {"ids": ["a"]}, "1 ids for 2 codes"),
    ],
)
def test_codes_that_do_not_fit_are_refused(codes, options, message):
    with pytest.raises(embits.InputError, match=message):
        from_quantized(codes, **options)


def test_embeddings_that_cannot_be_quantized_are_refused():
    for embeddings, precision, message in (
        (X, "int8", "precision is 'int8'"),
        (np.zeros((2, 8), "i1"), "binary", "already quantized"),
        (np.array([[1, np.nan]]), "ubinary", "row 0 of the vectors contains NaN"),
    ):
        with pytest.raises(embits.InputError, match=message):
            quantize_embeddings(embeddings, precision)
    assert quantize_embeddings(X[0]).shape == (5,)


# -- ids -------------------------------------------------------------------------------------------


def test_rows_are_told_by_their_ids_in_any_shape(tmp_path):
    names = [f"doc/{i}" for i in range(300)]
    embits.binarize(X, 64, "lsh", ids=names).save(tmp_path / "bits")
    bits = embits.load(tmp_path / "bits")
    _, rows = bits.search(X[:7], k=3)
    found = bits.ids(rows)
    assert found.shape == (7, 3)
    assert found.tolist() == [[names[row] for row in line] for line in rows]
    assert bits.ids(4) == "doc/4"
    assert bits.ids([]).shape == (0,)
    assert bits.key_to_index["doc/9"] == 9


@pytest.mark.parametrize("kind", [list, np.array, lambda ids: np.array(ids, dtype=np.uint8)])
def test_whole_numbers_are_ids_too(kind):
    ids = [7, 3, 200]
    bits = embits.binarize(X[:3], 64, "lsh", ids=kind(ids))
    assert list(bits.words) == ["7", "3", "200"]
    assert bits.ids([2, 0], int).tolist() == [200, 7]
    assert bits.ids([2, 0], np.int32).dtype == np.int32
    assert bits.similarity("200", 200) == bits.similarity(200, bits.codes[2]) == 1


def test_rows_without_ids_are_their_own():
    bits = embits.binarize(X, 64, "lsh")
    rows = bits.search(X[:2], k=2)[1]
    np.testing.assert_array_equal(bits.ids(rows), rows.astype(str))
    np.testing.assert_array_equal(bits.ids(rows, int), rows)


def test_ids_that_cannot_be_are_refused():
    for ids, message in (
        ([1.5, 2.5], "strings or whole numbers: that of row 0 is 1.5"),
        ([1, 1], "'1' appears twice"),
        ([True, False], "strings or whole numbers: that of row 0 is True"),
        (["a"], "1 ids for 2 rows"),
    ):
        with pytest.raises(embits.InputError, match=message):
            embits.binarize(X[:2], 64, "lsh", ids=ids)
    bits = embits.binarize(X[:2], 64, "lsh", ids=["a", "b"])
    for rows, dtype, message in (
        ([2], None, "there is no row 2: there are 2 rows"),
        ([-2], None, "there is no row -2"),
        ([0.5], None, "float64"),
        ([0], int, "cannot be converted to int64"),
    ):
        with pytest.raises(embits.InputError, match=message):
            bits.ids(rows, dtype)


# -- arrays of other libraries ---------------------------------------------------------------------


class Tensor:
    """As PyTorch's behave: no way to NumPy but detached, on the CPU, and not as bfloat16."""

    def __init__(self, array, dtype="torch.float32", steps=0):
        self.array, self.dtype, self.steps = np.asarray(array), dtype, steps

    def detach(self):
        return Tensor(self.array, self.dtype, self.steps + 1)

    def cpu(self):
        return Tensor(self.array, self.dtype, self.steps + 1)

    def float(self):
        return Tensor(self.array.astype("f4"), steps=self.steps)

    def __array__(self, dtype=None, copy=None):
        if self.steps < 2 or self.dtype == "torch.bfloat16":
            raise TypeError("can't convert tensor to numpy")
        return self.array


def test_tensors_are_taken_wherever_vectors_are():
    expected = embits.binarize(X, 64, "lsh")
    for tensors in (Tensor(X), Tensor(X, "torch.bfloat16"), [Tensor(x) for x in X]):
        bits = embits.binarize(tensors, 64, "lsh")
        np.testing.assert_array_equal(bits.codes, expected.codes)
    _, rows = bits.search(Tensor(X[:2]), k=3, floats=Tensor(X))
    np.testing.assert_array_equal(rows, expected.search(X[:2], k=3, floats=X)[1])
    np.testing.assert_array_equal(bits.encode(Tensor(X[0])), expected.codes[0])
    np.testing.assert_array_equal(quantize_embeddings(Tensor(X)), quantize_embeddings(X))


def test_tensors_of_pytorch_itself_are_taken():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(to_numpy(tensor), X)
    np.testing.assert_array_equal(to_numpy(list(tensor)), X)
    half = to_numpy(tensor.to(torch.bfloat16))
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, X, rtol=1e-2)


def test_bfloat16_of_numpy_is_taken():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert to_numpy(X.astype(ml_dtypes.bfloat16)).dtype == np.float32


def test_columns_of_vectors_are_taken():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": range(300), "vector": list(X)}, index=range(7, 307))
    for column in (frame["vector"], frame["vector"].map(list)):
        bits = embits.binarize(column, 64, "lsh", ids=frame["id"])
        np.testing.assert_array_equal(bits.codes, embits.binarize(X, 64, "lsh").codes)
    if importlib.util.find_spec("pyarrow"):
        import pyarrow

        np.testing.assert_array_equal(to_numpy(pyarrow.array(list(X))), X)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1.0, 2.0], [1.0]], "different lengths"),
        (np.array([[1.0, 2.0], None, [3.0, 4.0]], dtype=object), "row 1 is missing"),
        (np.array([[1.0, 2.0], [3.0]], dtype=object), r"row 1 is of shape \(1,\)"),
    ],
)
def test_rows_that_are_missing_or_ragged_are_named(column, message):
    with pytest.raises(embits.InputError, match=message):
        embits.binarize(column, 64, "lsh")


def test_mapped_float16_is_binarized_and_rescored_in_place(tmp_path):
    np.save(tmp_path / "x.npy", X.astype("f2"))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    bits = embits.binarize(mapped, 64, "lsh")
    by_path = bits.search(mapped[:3], k=4, floats=tmp_path / "x.npy")
    by_array = bits.search(mapped[:3], k=4, floats=mapped)
    for one, other in zip(by_path, by_array, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(by_array[1][:, 0], [0, 1, 2])
