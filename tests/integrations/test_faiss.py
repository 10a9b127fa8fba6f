"""FAISS's binary indexes hold our codes, give our answers, and give the codes back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.integrations import export
from embits.search import top_k
from tests.support.vectors import clustered

pytest.importorskip("faiss")
import faiss

from embits.integrations.faiss import from_faiss, to_faiss
from tests.support.codes import of_codes

KINDS = ["flat", "ivf", "hnsw"]


@pytest.fixture(scope="module")
def bits():
    """Codes of a width that is no multiple of 8, with many equal distances among them."""
    matrix = clustered(3000)
    words = [f"word {i}" for i in range(len(matrix))]  # as sentences have them: with spaces
    return embits.binarize(embits.WordVectors(words, matrix), n_bits=100, method="lsh")


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS),
    st.integers(1, 100),
    st.sampled_from([1, 7, 8, 9, 64, 100]),
    st.integers(0, 2**32 - 1),
)
def test_codes_come_back_bit_for_bit_from_every_kind(kind, n, n_bits, seed):
    rng = np.random.default_rng(seed)
    codes = np.packbits(rng.integers(0, 2, (n, n_bits), dtype=np.uint8), axis=1)
    index = to_faiss(codes, kind)
    assert index.d == 8 * codes.shape[1]
    assert np.array_equal(from_faiss(index, of_codes(codes, n_bits).coder).codes, codes)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exported_file_gives_the_same_binary_vectors_back(bits, kind, tmp_path):
    target = tmp_path / "codes.faiss"
    facts = export(bits, "faiss", str(target), kind=kind)
    assert facts["bytes"] == target.stat().st_size
    back = from_faiss(target, bits.coder)
    assert np.array_equal(back.codes, bits.codes)
    assert list(back.words) == list(bits.words)
    assert back.most_similar("word 7") == bits.most_similar("word 7")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codes.faiss", "codes.words"]


def test_the_flat_index_answers_as_our_search_does_but_for_its_order_among_ties(bits):
    queries = bits.codes[::37]
    distances, rows = to_faiss(bits).search(queries, 20)
    ours, our_rows = bits.search(queries, 20)
    assert np.array_equal(distances, ours)
    for i in range(len(queries)):
        nearer = ours[i] < ours[i, -1]  # beyond, ties at the last place may be other rows
        assert set(rows[i][nearer]) == set(our_rows[i][nearer])
        recounted = np.bitwise_count(bits.codes[rows[i]] ^ queries[i]).sum(axis=1)
        assert np.array_equal(recounted, distances[i])


def test_ivf_that_visits_all_lists_answers_as_the_flat_index(bits):
    index = to_faiss(bits, "ivf", nlist=20, nprobe=20)
    queries = bits.codes[::37]
    assert np.array_equal(index.search(queries, 20)[0], top_k(bits.codes, queries, 20)[0])


def test_settings_reach_the_index_and_its_file(bits, tmp_path):
    export(bits, "faiss", str(tmp_path / "i"), kind="ivf", nlist=9, nprobe=4)
    lists = faiss.read_index_binary(str(tmp_path / "i"))
    assert (lists.nlist, lists.nprobe) == (9, 4)
    export(bits, "faiss", str(tmp_path / "h"), kind="hnsw", M=8, efConstruction=50, efSearch=77)
    graph = faiss.read_index_binary(str(tmp_path / "h"))
    assert (graph.hnsw.efConstruction, graph.hnsw.efSearch, graph.hnsw.nb_neighbors(0)) == (
        50, 77, 16,
    )  # fmt: skip


def test_the_same_seed_gives_the_same_lists(bits, tmp_path):
    for name in "ab":
        export(bits, "faiss", str(tmp_path / name), kind="ivf")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_graph_finds_nearly_all(bits):
    queries = bits.codes[::37]
    distances, _ = to_faiss(bits, "hnsw").search(queries, 10)
    ours, _ = bits.search(queries, 10)
    assert (distances <= ours[:, -1:]).mean() > 0.95


def test_wrong_settings_are_refused_and_nothing_is_written(bits, tmp_path):
    wrong = [
        ("tree", {}),
        ("flat", {"nlist": 3}),
        ("hnsw", {"nlist": 3}),
        ("hnsw", {"M": 1}),
        ("ivf", {"nlist": 0}),
        ("ivf", {"nlist": "x"}),
        ("ivf", {"nlist": 3001}),
        ("ivf", {"nlist": 4, "nprobe": 5}),
    ]
    for kind, options in wrong:
        with pytest.raises(embits.InputError, match="|".join(["kind", *options])):
            export(bits, "faiss", str(tmp_path / "codes.faiss"), kind=kind, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_word_that_the_words_file_cannot_hold_leaves_the_old_files(bits, tmp_path):
    export(bits, "faiss", str(tmp_path / "x.faiss"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    odd = embits.binarize(embits.WordVectors(["a\nb", "c"], np.eye(2)), 8, "lsh")
    with pytest.raises(embits.InputError, match="cannot be written"):
        export(odd, "faiss", str(tmp_path / "x.faiss"), overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_no_index_of_ours_is_refused_in_one_line(bits, tmp_path):
    (tmp_path / "junk").write_bytes(b"junk, not an index")
    floats = faiss.IndexFlatL2(4)
    for index in ("absent", "junk"):
        with pytest.raises(embits.ReadError) as refused:
            from_faiss(tmp_path / index, bits.coder)
        assert "\n" not in str(refused.value)
    with pytest.raises(embits.InputError, match="IndexFlatL2"):
        from_faiss(floats, bits.coder)
    ids = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(8), 8, 1)
    ids.train(np.arange(50, dtype=np.uint8)[:, None])
    ids.add_with_ids(np.arange(3, dtype=np.uint8)[:, None], np.array([0, 0, 1]))
    with pytest.raises(embits.InputError, match="id 2"):
        from_faiss(ids, bits.coder)
    with pytest.raises(embits.InputError, match="expected packed bits"):
        from_faiss(to_faiss(bits.codes[:, :5]), bits.coder)
    with pytest.raises(embits.InputError, match="past the coder's 100 bits"):
        from_faiss(to_faiss(np.full((2, 13), 255, np.uint8)), bits.coder)
    with pytest.raises(embits.InputError, match="2 ids for 3000 codes"):
        from_faiss(to_faiss(bits), bits.coder, ids=["a", "b"])


def test_no_codes_at_all_make_an_empty_index():
    none = np.empty((0, 4), np.uint8)
    for kind in ("flat", "hnsw"):
        assert from_faiss(to_faiss(none, kind), of_codes(none, 32).coder).codes.shape == (0, 4)
    with pytest.raises(embits.InputError, match="needs codes"):
        to_faiss(none, "ivf")


def test_another_coder_of_the_same_width_is_refused(tmp_path, bits, vectors):
    path = tmp_path / "codes.faiss"
    export(bits, "faiss", str(path))
    other = embits.binarize(vectors, bits.n_bits, "lsh").coder
    with pytest.raises(embits.InputError, match=r"method 'lsh'\) did not make the codes"):
        from_faiss(path, other)
    assert len(from_faiss(path, bits.coder)) == len(bits)


def test_a_file_that_faiss_wrote_does_not_name_its_coder(tmp_path, bits, vectors):
    path = tmp_path / "codes.faiss"
    export(bits, "faiss", str(path))
    faiss.write_index_binary(faiss.read_index_binary(str(path)), str(path))
    other = embits.binarize(vectors, bits.n_bits, "lsh").coder
    assert len(from_faiss(path, other)) == len(bits)
