"""Ids, keys and arguments: what is taken, and what is refused in one clear line."""

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import embits
from embits.file.store import open_file
from embits.ids.subwords import Subwords

# -- arguments that contradict each other ----------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "ignored"),
    [({"n_bits": 64}, "n_bits"), ({"method": "itq"}, "method"),
     ({"n_bits": 64, "random_state": 1}, "n_bits, random_state")],
)  # fmt: skip
def test_binarize_refuses_arguments_that_a_given_coder_replaces(arguments, ignored):
    with pytest.raises(embits.InputError, match=f"so {ignored} would be ignored"):
        embits.binarize(np.eye(40), coder=embits.ITQ(n_bits=32), **arguments)
    assert embits.binarize(np.eye(40), coder=embits.ITQ(n_bits=32)).n_bits == 32


@pytest.mark.parametrize("coder", ["itq", embits.ITQ, 64])
def test_a_coder_that_is_none_is_refused_in_one_line(coder):
    with pytest.raises(embits.InputError, match="expected a coder such as") as refused:
        embits.binarize(np.eye(40), coder=coder)
    assert "\n" not in str(refused.value)


# -- ids ----------------------------------------------------


@pytest.fixture
def documents():
    X = np.random.default_rng(0).normal(size=(6, 12))
    coder = embits.RandomHyperplanes(n_bits=40).fit(X)
    return X, coder


@pytest.mark.parametrize(
    "ids", [[f"doc-{i}" for i in range(6)], tuple("abcdef"), np.arange(10, 16), list(range(6))]
)
def test_plain_lists_of_ids_survive_saving(documents, tmp_path, ids):
    X, coder = documents
    bits = embits.BinaryVectors(ids, coder.encode(X), coder)
    bits.save(tmp_path / "bits")
    again = embits.load(tmp_path / "bits", verify=True)
    assert list(again.words) == [str(each) for each in ids]
    assert again.words.find(str(ids[4])) == 4


def test_rows_without_ids_go_by_their_number(documents):
    X, coder = documents
    bits = embits.BinaryVectors(None, coder.encode(X), coder)
    assert list(bits.words) == list("012345")


@pytest.mark.parametrize(
    ("ids", "message"),
    [(["a", "b", "a", "c", "d", "e"], "the id 'a' appears twice: in rows 0 and 2"),
     (["a", "b"], "2 ids for 6 codes"), ("abcdef", "ids is 'abcdef', expected one id for each row"),
     ([1.5] * 6, "ids must be strings or whole numbers"), ([b"a"] * 6, "ids must be strings")],
)  # fmt: skip
def test_wrong_ids_are_refused_at_once(documents, ids, message):
    X, coder = documents
    with pytest.raises(embits.InputError, match=message):
        embits.BinaryVectors(ids, coder.encode(X), coder)


def test_search_takes_ids(documents):
    X, coder = documents
    bits = embits.BinaryVectors([f"doc-{i}" for i in range(6)], coder.encode(X), coder)
    for one in ("doc-5", np.str_("doc-5")):
        assert bits.search(one, k=3).rows.tolist() == bits.search(bits.codes[5], k=3).rows.tolist()
    for several in (["doc-5", "doc-0"], np.array(["doc-5", "doc-0"], object)):
        found = bits.search(several, k=2)
        assert found.rows.shape == (2, 2)
        assert found.rows[:, 0].tolist() == [5, 0]
    with pytest.raises(embits.UnknownWordError, match="there is no word or id 'doc-9'"):
        bits.search("doc-9")
    for needs_floats in ({"metric": "asymmetric"}, {"floats": X}):
        with pytest.raises(embits.InputError, match="needs the float vectors"):
            bits.search("doc-5", **needs_floats)
    with pytest.raises(embits.InputError, match=r"the query is 5\.5, expected a float vector"):
        bits.search(5.5)


def test_slices_give_codes_and_other_keys_one_clear_line(documents):
    X, coder = documents
    bits = embits.BinaryVectors([f"doc-{i}" for i in range(6)], coder.encode(X), coder)
    assert np.array_equal(bits[0:3], bits.codes[:3])
    assert np.array_equal(bits.decode(slice(0, 3)), coder.inverse_transform(bits.codes[:3]))
    for key in (None, 1.5, {"doc-1"}, slice("doc-1", "doc-3"), np.array(3.5), object()):
        with pytest.raises(embits.InputError, match="the key is") as refused:
            bits[key]
        assert "\n" not in str(refused.value)


def test_search_results_name_what_they_hold(documents):
    X, coder = documents
    bits = embits.BinaryVectors(None, coder.encode(X), coder)
    for field, options in (
        ("distances", {}),
        ("scores", {"metric": "asymmetric"}),
        ("scores", {"metric": "asymmetric", "rescore": 4}),
        ("cosines", {"floats": X}),
    ):
        found = bits.search(X, k=2, **options)
        values, rows = found
        assert found._fields == (field, "rows")
        assert getattr(found, field) is values
        assert found.rows is rows
        best_first = np.diff(values.astype(float)) * (1 if field == "distances" else -1)
        assert (best_first >= 0).all()


def test_a_mapping_of_words_to_vectors_can_be_binarized():
    bits = embits.binarize({"up": [1.0, 0.5], "down": [-1.0, 0.5]}, n_bits=16, method="lsh")
    assert list(bits.words) == ["up", "down"]


# -- where the bytes are ----------------------------------------------------


def test_nbytes_are_those_of_the_file(documents, tmp_path):
    X, coder = documents
    bits = embits.BinaryVectors([f"doc-{i}" for i in range(6)], coder.encode(X), coder)
    bits.save(tmp_path / "bits")
    counts = bits.byte_counts()
    assert counts.codes == 6 * 5
    tensors = open_file(tmp_path / "bits").tensors
    text = sum(tensors[name].nbytes for name in ("words", "word_codes", "word_starts"))
    assert (counts.words, counts.order) == (text, 0)  # the rows are in the order of their words
    assert counts.subwords == 0
    assert counts.total == sum(counts)
    header = 8 + int.from_bytes((tmp_path / "bits").read_bytes()[:8], "little")
    padding = -counts.codes % 8
    assert header + counts.total + padding == (tmp_path / "bits").stat().st_size
    assert embits.load(tmp_path / "bits").byte_counts() == counts


def test_a_file_that_is_mostly_subwords_says_so(documents, tmp_path):
    X, coder = documents
    subwords = Subwords(np.zeros((500, 12), np.float32), minn=3, maxn=5)
    bits = embits.BinaryVectors(None, coder.encode(X), coder, subwords)
    with pytest.warns(embits.errors.SizeWarning, match="subwords take 75% of the file"):
        bits.save(tmp_path / "bits")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda bits, X: bits.most_similar("doc-1", topn="3"), "topn is '3'"),
        (lambda bits, X: bits.most_similar(1.5), "the key is 1.5"),
        (lambda bits, X: bits.search("doc-1", metric="asymmetric"), 'or metric="decoded"'),
        (lambda bits, X: bits.ids([1, 24000]), "there is no row 24000: there are 6 rows"),
        (lambda bits, X: bits.ids([-2, 2]), "there is no row -2: there are 6 rows"),
        (lambda bits, X: bits.search([7, 8]), "neither ids .strings. nor vectors of 12 dim"),
        (lambda bits, X: bits.search(X[0, :3]), "a vector of 3 dimensions, expected 12"),
        (lambda bits, X: bits.within(X[0, :3], 4), "a vector of 3 dimensions, expected 12"),
        (lambda bits, X: bits.search(X[:, :3], metric="asymmetric"), "vectors of 3 dimensions"),
        (lambda bits, X: bits.encode(X[:, :3]), "vectors of 3 dimensions, expected 12"),
        (lambda bits, X: bits.search(X[None]), r"3 dimensions, expected .* \(n, 12\) or \(12,\)"),
        (lambda bits, X: bits.search(X[None].astype("i4")), r"expected .* \(n, 12\) or \(12,\)"),
        (lambda bits, X: bits.within(X[:, :3] > 0, 4), "vectors of 3 dimensions, expected 12"),
        (lambda bits, X: bits.encode(X[None]), r"3 dimensions, expected .* \(n, 12\) or \(12,\)"),
        (lambda bits, X: bits.encode(None), "found a single value, expected vectors of shape"),
        (lambda bits, X: bits.encode(csr_matrix(X)), r"sparse, expected .*: X\.toarray\(\)"),
        (lambda bits, X: bits[-1], r"no word or id '-1'; .* or bits\.codes\[row\]"),
        (lambda bits, X: bits.decode(rows=[-1]), "no row -1: .* -1 is no row .* last row is 5"),
        (lambda bits, X: bits[True], "the key is True"),
        (lambda bits, X: bits[[True, False]], "the key is True"),
        (lambda bits, X: embits.binarize(X, 8, "lsh", ids=[*"abcde", ""]), r"ids\[5\] is empty"),
        (lambda bits, X: bits.search(X[0], where="doc-2"), r"list of ids: where=\['doc-2'\]"),
        (lambda bits, X: bits.search(X[0], device="tpu"), "device is 'tpu', expected"),
        (lambda bits, X: bits.search(np.ma.masked_greater(X[0], 0)), "has masked values"),
        (lambda bits, X: bits.encode(np.ma.masked_greater(X, 0)), "has masked values"),
        (lambda bits, X: bits.similarity("doc-1", None), "the key is None"),
        (lambda bits, X: bits.doesnt_match("doc-1"), "needs a list"),
        (lambda bits, X: embits.BinaryVectors(None, bits.codes, "lsh"), "coder is 'lsh'"),
        (lambda bits, X: embits.binarize(X, 8, "lsh", ids=["a"]), "1 ids for 6 rows"),
        (lambda bits, X: embits.binarize({"a": [1.0], "b": [1.0, 2.0]}), "different lengths"),
        (lambda bits, X: embits.ITQ(8).fit(embits.WordVectors(None, X)), "pass its `matrix`"),
        (lambda bits, X: embits.binarize_to_file(X, "out"), "expected the path of a file"),
        (lambda bits, X: embits.encode_to_file(embits.ITQ(8), "m.npy", "out"), "not fitted"),
    ],
)
def test_wrong_uses_give_one_clear_line(documents, call, message):
    X, coder = documents
    bits = embits.BinaryVectors([f"doc-{i}" for i in range(6)], coder.encode(X), coder)
    with pytest.raises(embits.EmbitsError, match=message) as refused:
        call(bits, X)
    assert "\n" not in str(refused.value)


def test_codes_with_padding_bits_are_not_saved(documents, tmp_path):
    X, _ = documents
    coder = embits.RandomHyperplanes(n_bits=9).fit(X)
    bits = embits.BinaryVectors(None, np.full((6, 2), 255, np.uint8), coder)
    with pytest.raises(embits.InputError, match="bits set past the coder's 9 bits"):
        bits.save(tmp_path / "bits")


def test_a_file_that_cannot_be_written_is_named(documents, tmp_path):
    X, coder = documents
    bits = embits.BinaryVectors(None, coder.encode(X), coder)
    for target, named in ((tmp_path, tmp_path), (tmp_path / "no" / "bits", tmp_path / "no")):
        with pytest.raises(OSError, match="folder") as refused:
            bits.save(target)
        assert str(refused.value).endswith(f"'{named}'")


def test_names_that_left_the_root_warn():
    with pytest.warns(DeprecationWarning, match=r"import it from embits\.errors"):
        assert embits.TrainingWarning is embits.errors.TrainingWarning


def test_ids_given_replace_those_beside_and_in_a_file(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(3, 8))
    np.save(tmp_path / "m.npy", matrix)
    (tmp_path / "m.txt").write_text("only one line\n")
    bits = embits.binarize(tmp_path / "m.npy", 8, "lsh", ids=["x 1", "y 2", "z 3"])
    assert list(bits.words) == ["x 1", "y 2", "z 3"]
    (tmp_path / "own.vec").write_text("a 1 2\nb 2 3\n")
    assert list(embits.binarize(tmp_path / "own.vec", 8, "lsh", ids=[7, 8]).words) == ["7", "8"]
    with pytest.raises(embits.InputError, match="the id 'a' appears twice: in rows 0 and 2"):
        embits.binarize(tmp_path / "m.npy", 8, "lsh", ids=["a", "b", "a"])


def test_nothing_to_binarize_is_refused() -> None:
    with pytest.raises(embits.InputError, match="vectors is None, expected a matrix"):
        embits.binarize(None)  # type: ignore[arg-type]


def test_values_too_large_for_float32_are_refused_with_their_row() -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 8))
    matrix[3, 2] = -1e300
    with pytest.raises(
        embits.InputError, match=r"row 3 .* contains 1e\+300, too large for float32"
    ):
        embits.binarize(matrix, 8, "lsh")


def test_floats_of_another_format_are_refused(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(5, 8))
    bits = embits.binarize(matrix, 8, "lsh")
    bits.save(tmp_path / "docs.safetensors")
    expected = r"found a file of another format, expected a \.npy; .*embits\.read_vectors\('.*docs"
    with pytest.raises(embits.ReadError, match=expected) as refused:
        bits.search(matrix[:1], k=2, floats=tmp_path / "docs.safetensors")
    assert str(refused.value).count("found") == 1


def test_a_fitted_coder_is_used_as_it_is():
    X, Y = (np.random.default_rng(seed).normal(size=(60, 12)).astype("f4") for seed in (0, 1))
    bits = embits.binarize(X, n_bits=32, method="itq")
    other = embits.binarize(Y, coder=bits.coder)
    assert np.array_equal(bits.coder.encode(X), bits.codes)
    assert np.array_equal(other.codes, bits.coder.encode(Y))
    with pytest.raises(embits.InputError, match="sample"):
        embits.binarize(Y, coder=bits.coder, sample=10)
