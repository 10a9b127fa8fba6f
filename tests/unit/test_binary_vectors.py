"""What users hold: asked in words, answered against a slow oracle."""

import inspect
import pickle
import pydoc
import threading
import uuid

import numpy as np
import pytest

import embits
from embits.ids.subwords import Subwords


def oracle(bits, code, without):
    """All other rows by falling share of equal bits, ties in row order."""
    unpacked = np.unpackbits(bits.codes, axis=1, count=bits.n_bits)
    agree = (unpacked == np.unpackbits(code, count=bits.n_bits)).mean(axis=1)
    order = np.argsort(-agree, kind="stable")
    return [(bits.words[i], agree[i]) for i in order if i not in without]


def same(got, wanted):
    assert [word for word, _ in got] == [word for word, _ in wanted]
    assert np.allclose([s for _, s in got], [s for _, s in wanted])


def test_codes_of_a_file_are_read_only_and_their_copy_is_writable(tmp_path):
    bits = embits.binarize(np.eye(8), n_bits=16, method="lsh")
    bits.save(tmp_path / "b")
    codes = embits.load(tmp_path / "b").codes
    assert not codes.flags.writeable
    assert codes.copy().flags.writeable


def test_most_similar_is_the_share_of_equal_bits_without_the_word_itself(bits):
    for row in (0, 17, 599):
        same(bits.most_similar(f"word{row}", topn=12), oracle(bits, bits.codes[row], {row})[:12])


def test_several_words_are_combined_by_and_not_then_or(bits):
    b, c, a = (bits[f"word{i}"] for i in (1, 2, 3))
    code = (b & ~a) | c
    got = bits.most_similar(positive=["word1", "word2"], negative=["word3"], topn=7)
    same(got, oracle(bits, code, {1, 2, 3})[:7])
    only_not = bits.most_similar("word1", negative="word3", topn=7)
    code = b & ~a
    same(only_not, oracle(bits, code, {1, 3})[:7])


def test_codes_ask_as_words_do(bits):
    assert bits.most_similar(bits["word5"], topn=1) == [("word5", 1.0)]
    assert np.array_equal(bits[["word5", "word6"]], bits.codes[5:7])


def test_whole_numbers_are_ids_everywhere(vectors):
    ids = list(range(1000, 1600))
    bits = embits.BinaryVectors(ids, *_codes(vectors))
    for key, named in ((1005, "1005"), (np.int64(1005), "1005")):
        assert key in bits
        assert np.array_equal(bits[key], bits.codes[5])
        assert bits.most_similar(key) == bits.most_similar(named)
        assert bits.similarity(key, 1006) == bits.similarity(named, "1006")
        assert np.array_equal(bits.decode(key), bits.decode(named))
        assert bits.search(key, k=3).ids.tolist() == bits.search(named, k=3).ids.tolist()
    assert 5 not in bits
    assert bits.search(bits.codes[0], where=[1007, 1009]).ids.tolist() == ["1007", "1009"]
    assert len(bits.select(exclude=[1007])) == 599
    assert bits.subset([1009, 1007]).ids().tolist() == ["1009", "1007"]


def test_whole_numbers_that_are_no_ids_are_refused_and_rows_have_a_name(vectors):
    bits = embits.BinaryVectors(vectors.words, *_codes(vectors))
    for ask in (
        lambda: bits[5],
        lambda: bits.most_similar(5),
        lambda: bits.similarity(5, 6),
        lambda: bits.decode([5]),
        lambda: bits.search(5),
        lambda: bits.search(bits.codes[0], where=[5]),
        lambda: bits.search(bits.codes[0], where=np.array([5])),
        lambda: bits.search(bits.codes[0], exclude=[5]),
        lambda: bits.within(bits.codes[0], 5, where=[5]),
        lambda: bits.select([5]),
        lambda: bits.subset([5]),
    ):
        with pytest.raises(embits.UnknownWordError, match="give row numbers as rows="):
            ask()
    assert 5 not in bits
    assert bits.search(bits.codes[0], rows=[7, 5], k=9).rows.tolist() in ([5, 7], [7, 5])
    assert set(bits.within(bits.codes[0], 32, rows=[7, 5]).rows.tolist()) == {5, 7}
    assert {word for word, _ in bits.most_similar("word0", rows=[5, 7])} == {"word5", "word7"}
    assert bits.subset(rows=[7, 5]).ids().tolist() == ["word7", "word5"]
    assert np.array_equal(bits.decode(rows=[7, 5]), bits.decode(["word7", "word5"]))
    assert 5 not in bits.search(bits.codes[0], exclude=bits.select(rows=[5]), k=600).rows
    with pytest.raises(embits.InputError, match="where and rows are given"):
        bits.search(bits.codes[0], rows=[5], where=["word7"])
    with pytest.raises(embits.InputError, match="rows has row 600, but there are 600 rows"):
        bits.search(bits.codes[0], rows=[600])


def test_uuid_objects_are_ids_everywhere(vectors):
    ids = [uuid.UUID(int=i) for i in range(600)]
    bits = embits.BinaryVectors(ids, *_codes(vectors))
    assert ids[5] in bits
    assert bits.search(ids[5], k=1, where=ids[:9]).ids.tolist() == [str(ids[5])]
    assert np.array_equal(bits[ids[5]], bits.codes[5])


def _codes(vectors):
    coder = embits.RandomHyperplanes(n_bits=32).fit(vectors.matrix)
    return coder.encode(vectors.matrix), coder


def test_similarity_is_sokal_michener(bits):
    a, b = (np.unpackbits(bits[w], count=bits.n_bits).astype(bool) for w in ("word1", "word2"))
    n11, n00 = (a & b).sum(), (~a & ~b).sum()
    assert bits.similarity("word1", "word2") == pytest.approx((n11 + n00) / bits.n_bits)
    assert bits.similarity("word1", "word1") == 1


def test_doesnt_match_finds_the_word_of_another_cluster(vectors, bits):
    near = [word for word, _ in bits.most_similar("word0", topn=4)]
    far = oracle(bits, bits["word0"], set())[-1][0]
    assert bits.doesnt_match(["word0", *near, far]) == far


def test_an_unknown_word_offers_near_spellings(bits):
    with pytest.raises(embits.UnknownWordError, match="did you mean 'word0', 'word1'") as error:
        bits.most_similar("wordl")
    assert error.value.word == "wordl"
    assert "word1" in error.value.suggestions
    assert isinstance(error.value, KeyError)
    again = pickle.loads(pickle.dumps(error.value))  # noqa: S301 - our own, made just now
    assert str(again) == str(error.value)


def test_words_map_to_rows_as_in_gensim(bits):
    assert bits.key_to_index["word3"] == 3
    assert dict(bits.key_to_index) == {f"word{i}": i for i in range(600)}
    assert "word3" in bits
    assert "word600" not in bits
    assert len(bits) == 600


def test_decode_gives_one_vector_several_or_all(bits):
    one, two, everything = bits.decode("word4"), bits.decode(["word4", "word5"]), bits.decode()
    assert one.shape == (bits.dims,)
    assert np.allclose(two, everything[4:6], atol=1e-6)
    assert np.allclose(one, two[0], atol=1e-6)
    assert np.allclose(bits.decode(bits.codes[4:6]), two, atol=1e-6)


def test_encode_gives_unseen_vectors_the_codes_of_their_kind(vectors, bits):
    assert np.array_equal(bits.encode(vectors.matrix), bits.codes)
    assert np.array_equal(bits.encode(vectors.matrix[7]), bits.codes[7])


def test_search_takes_codes_or_floats(vectors, bits):
    by_code = bits.search(bits.codes[:5], k=3)
    by_float = bits.search(vectors.matrix[:5], k=3)
    for a, b in zip(by_code, by_float, strict=True):
        assert np.array_equal(a, b)
    assert bits.search(vectors.matrix[0], k=3)[1].shape == (3,)


def test_asymmetric_search_scores_floats_against_bits(vectors, bits):
    signs = 2.0 * np.unpackbits(bits.codes, axis=1, count=bits.n_bits) - 1
    weights, offsets = bits.coder.query_weights(vectors.matrix[:4])
    wanted = weights.astype("f8") @ signs.T + offsets[:, None]
    scores, rows = bits.search(vectors.matrix[:4], k=9, metric="asymmetric")
    assert np.allclose(scores, -np.sort(-wanted, axis=1)[:, :9], atol=1e-4)
    assert np.array_equal(rows, np.argsort(-wanted, axis=1, kind="stable")[:, :9])
    all_rows = bits.search(vectors.matrix[:4], k=9, metric="asymmetric", rescore=600)[1]
    assert np.array_equal(all_rows, rows)


@pytest.mark.parametrize("method", ["lsh", "near-lossless"])
def test_scores_of_float_queries_do_not_grow_with_the_query(vectors, method):
    options = {"steps": 10} if method == "near-lossless" else {}
    bits = embits.binarize(vectors, n_bits=64, method=method, **options)
    scores, rows = bits.search(vectors.matrix[:4], k=9, metric="asymmetric")
    for factor in (1e-3, 40):
        again, same = bits.search(factor * vectors.matrix[:4], k=9, metric="asymmetric")
        assert np.array_equal(rows, same)
        assert np.allclose(scores, again, atol=1e-4)
    assert np.abs(scores).max() <= 1.1


def test_decoded_search_asks_with_the_vector_rebuilt_from_a_code(vectors, bits):
    wanted = bits.search(bits.decode(bits.codes[:3]), k=5, metric="asymmetric")
    for queries in (bits.codes[:3], vectors.matrix[:3]):
        got = bits.search(queries, k=5, metric="decoded")
        assert np.array_equal(got.rows, wanted.rows)
        assert np.array_equal(got.scores, wanted.scores)
    one = bits.search(bits.codes[1], k=5, metric="decoded")
    assert np.array_equal(one.rows, wanted.rows[1])
    shortlist = bits.search(bits.codes[:3], k=5, metric="decoded", rescore=600)
    assert np.array_equal(shortlist.rows, wanted.rows)


def test_words_are_compared_by_rebuilt_vectors_when_asked_to(bits):
    a, b = (row / np.linalg.norm(row) for row in bits.decode(["word0", "word1"]))
    assert bits.similarity("word0", "word1", metric="decoded") == pytest.approx(
        float(a @ b), abs=1e-5
    )
    query = b - a
    rows = bits.search(query, k=6, metric="asymmetric").rows
    wanted = [bits.words[row] for row in rows.tolist() if row not in (0, 1)][:3]
    got = bits.most_similar(["word1"], ["word0"], topn=3, metric="decoded")
    assert [word for word, _ in got] == wanted
    with pytest.raises(embits.InputError, match="expected 'hamming' or 'decoded'"):
        bits.similarity("word0", "word1", metric="cosine")


def test_a_shortlist_is_put_in_order_by_the_original_floats(vectors, bits, tmp_path):
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    wanted = np.argsort(-(unit @ unit[3]), kind="stable")[:5]
    np.save(tmp_path / "x.npy", vectors.matrix)
    for metric in ("hamming", "asymmetric"):
        _, rows = bits.search(
            vectors.matrix[3], k=5, metric=metric, rescore=600, floats=tmp_path / "x.npy"
        )
        assert np.array_equal(rows, wanted)


def test_searches_that_need_floats_refuse_codes(vectors, bits):
    for wrong in (
        {"metric": "asymmetric"},
        {"floats": vectors.matrix},
        {"rescore": 40},
        {"metric": "cosine"},
    ):
        with pytest.raises(embits.InputError):
            bits.search(bits.codes[:2], **wrong)
    with pytest.raises(embits.InputError, match="expected the originals"):
        bits.search(vectors.matrix[:2], floats=vectors.matrix[:5])


def test_a_file_answers_as_the_object_it_was_saved_from(bits, saved):
    opened = embits.load(saved, verify=True)
    assert opened.most_similar("word9") == bits.most_similar("word9")
    assert np.array_equal(opened.decode("word9"), bits.decode("word9"))
    assert repr(opened) == repr(bits)
    assert not opened.codes.flags.writeable


def test_a_matrix_without_words_goes_by_row_numbers(vectors, tmp_path):
    bits = embits.binarize(vectors.matrix, n_bits=32, method="lsh")
    bits.save(tmp_path / "rows")
    opened = embits.load(tmp_path / "rows", verify=True)
    assert opened.most_similar(3, topn=2) == opened.most_similar("3", topn=2)
    with pytest.raises(embits.UnknownWordError):
        opened["six hundred"]
    for row in (600, -1):
        with pytest.raises(embits.UnknownWordError, match="give a row number from 0 to 599"):
            opened[row]


def test_wrong_questions_are_refused(bits):
    for ask in (
        lambda: bits.most_similar([]),
        lambda: bits.doesnt_match([]),
        lambda: bits.search(np.zeros((2, 3), "u1")),
        lambda: bits.search(np.zeros((2, 3), "f4")),
        lambda: bits[1.5],
        lambda: bits[np.zeros(3, "u1")],
    ):
        with pytest.raises(embits.InputError):
            ask()


def test_wrong_parameters_name_the_right_ones(vectors):
    with pytest.raises(embits.InputError, match=r"no parameter 'epochs' \(it has n_bits, r"):
        embits.binarize(vectors, method="lsh", epochs=3)
    with pytest.raises(embits.InputError, match="there is no method 'x'"):
        embits.binarize(vectors, method="x")


def test_many_threads_may_ask_one_object(bits):
    wanted = {word: bits.most_similar(word) for word in bits.words[:100]}
    wrong = []

    def ask():
        wrong.extend(word for word in wanted if bits.most_similar(word) != wanted[word])

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_subwords_answer_for_unknown_words_also_after_a_file(tmp_path):
    rng = np.random.default_rng(0)
    subwords = Subwords(rng.normal(0, 0.3, (50, 12)).astype("f4"), minn=3, maxn=5)
    words = [f"word{i}" for i in range(40)]
    matrix = np.stack([subwords.vector(word) for word in words])
    bits = embits.binarize(embits.WordVectors(words, matrix, subwords), 64, "paper")
    bits.save(tmp_path / "f")
    opened = embits.load(tmp_path / "f", verify=True)
    assert np.array_equal(opened["unseen"], bits["unseen"])
    assert np.array_equal(opened["unseen"], bits.encode(subwords.vector("unseen")))
    assert opened.most_similar("unseen", topn=40)
    assert "unseen" not in opened
    opened.subwords = None
    with pytest.raises(embits.UnknownWordError):
        opened["unseen"]


@pytest.mark.parametrize("method", ["lsh", "itq", "sparse", "paper", "near-lossless"])
@pytest.mark.parametrize("seed", ["x", -1, 1.5])
def test_a_wrong_seed_is_refused(vectors, method, seed):
    with pytest.raises(embits.InputError, match=r"^random_state is .*, expected a whole number"):
        embits.binarize(vectors, 8, method, random_state=seed)


def test_most_similar_names_the_right_method(bits, vectors):
    vector = vectors.matrix[0]
    for floats in (vector, vectors.matrix[:2], [vector], vector.tolist()):
        with pytest.raises(embits.InputError, match=r"use bits\.search\(vector\)"):
            bits.most_similar(floats)


def test_the_repr_of_word_vectors_is_short(vectors):
    assert repr(vectors) == f"<WordVectors: {len(vectors):,} × {vectors.dims} floats>"


@pytest.mark.parametrize("of", [embits.BinaryVectors, embits.Collection])
def test_classes_can_be_inspected(of):
    names = dict(inspect.getmembers(of))
    assert {"search", "ids", "coder", "codes"} & names.keys()
    assert "search" in pydoc.render_doc(of)
