"""Exports to files: word2vec floats and the paper's text format, read back."""

import importlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.integrations import export


def some_bits(words, n_bits=70, dims=5, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(len(words), dims))
    return embits.binarize(embits.WordVectors(words, matrix), n_bits, "lsh")


@pytest.mark.parametrize("suffix", [".bin", ".vec", ".txt.gz"])
def test_word2vec_holds_the_floats_that_the_codes_decode_to(bits, tmp_path, suffix):
    done = []
    target = tmp_path / f"floats{suffix}"
    facts = export(bits, "word2vec", str(target), progress=lambda *at: done.append(at))
    read = embits.read_vectors(target)
    assert list(read.words) == list(bits.words)
    assert np.array_equal(read.matrix, bits.decode())
    assert facts == {"dims": bits.dims, "bytes": target.stat().st_size}
    assert done[-1] == (len(bits), len(bits))


def test_word2vec_has_vectors_of_their_true_length(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(50, 8)) * np.linspace(1, 9, 50)[:, None]
    bits = embits.binarize(matrix, 64, "lsh", lengths=True)
    export(bits, "word2vec", str(tmp_path / "f.bin"))
    read = embits.read_vectors(tmp_path / "f.bin")
    np.testing.assert_allclose(np.linalg.norm(read.matrix, axis=1), bits.lengths, rtol=1e-5)


def test_gensim_reads_the_exported_floats(bits, tmp_path):
    models = pytest.importorskip("gensim.models")
    export(bits, "word2vec", str(tmp_path / "f.bin"))
    read = models.KeyedVectors.load_word2vec_format(tmp_path / "f.bin", binary=True)
    assert np.array_equal(read.vectors, bits.decode())
    assert read.index_to_key == list(bits.words)


def test_word2vec_is_written_without_the_whole_matrix_in_memory(tmp_path):
    words = [str(i) for i in range(16_000)]
    bits = some_bits(words, n_bits=64, dims=100)
    tracemalloc.start()
    export(bits, "word2vec", str(tmp_path / "f.bin"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < len(bits) * bits.dims * 4 / 2


def test_word2vec_has_two_formats(bits, tmp_path):
    with pytest.raises(embits.InputError, match=r"use one of \.txt, \.vec, .*\.bin$"):
        export(bits, "word2vec", str(tmp_path / "floats.npy"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "name"),
    [("npy", "x.npy"), ("npy", "x.words"), ("faiss", "x"), ("faiss", "x.words"),
     ("word2vec", "x.bin"), ("paper", "x.txt")],
)  # fmt: skip
def test_a_file_that_embits_did_not_write_is_replaced_only_when_asked(bits, tmp_path, to, name):
    pytest.importorskip("faiss")
    target = {"npy": "x.npy", "faiss": "x", "word2vec": "x.bin", "paper": "x.txt"}[to]
    (tmp_path / name).write_text("mine")
    with pytest.raises(embits.InputError, match="exists: choose another output"):
        export(bits, to, str(tmp_path / target))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]
    export(bits, to, str(tmp_path / target), overwrite=True)
    assert (tmp_path / name).read_bytes() != b"mine"


plain_words = st.lists(
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\v\f\r\0"),
        min_size=1,
        max_size=9,
    ),
    unique=True,
    min_size=1,
    max_size=20,
)


@settings(max_examples=60)
@given(plain_words, st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_the_papers_format_gives_words_and_codes_back(memory_folder, words, n_bits, seed):
    bits = some_bits(words, n_bits, seed=seed)
    target = memory_folder / "codes.txt"
    export(bits, "paper", str(target), overwrite=True)
    header, *lines = target.read_bytes().decode().split("\n")[:-1]
    assert header == f"{len(words)} {-(-n_bits // 64) * 64}"
    fields = [line.split(" ") for line in lines]
    assert [each[0] for each in fields] == words
    integers = np.array([[int(number) for number in each[1:]] for each in fields], dtype=">u8")
    codes = integers.view(np.uint8)
    assert np.array_equal(codes[:, : bits.codes.shape[1]], bits.codes)
    assert not codes[:, bits.codes.shape[1] :].any()


@pytest.fixture(scope="module")
def memory_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("paper")


def test_the_papers_format_is_a_header_and_integers_with_the_first_bit_highest(tmp_path):
    words = ["naïve", "b"]
    bits = some_bits(words, 70)
    export(bits, "paper", str(tmp_path / "codes.txt"))
    lines = (tmp_path / "codes.txt").read_text().split("\n")
    assert lines[0] == "2 128"  # their programs read whole groups of 64 bits
    assert lines[-1] == ""
    for word, line in zip(words, lines[1:3], strict=True):
        ones = "".join(map(str, np.unpackbits(bits[word], count=70))).ljust(128, "0")
        assert line == f"{word} {int(ones[:64], 2)} {int(ones[64:], 2)}"


@pytest.mark.parametrize("word", ["two words", "tab\tbed", "", "nul\0", "é" * 128])
def test_words_that_the_papers_programs_would_misread_are_refused(tmp_path, word):
    with pytest.raises(embits.InputError, match="of row 1 cannot be written"):
        export(some_bits(["a", word]), "paper", str(tmp_path / "codes.txt"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("to", "name"),
    [("npy", "x.npy"), ("faiss", "x"), ("word2vec", "x.bin"), ("paper", "x.txt"),
     ("sqlite", "x.db"), ("duckdb", "x.duckdb"), ("lancedb", "x"), ("milvus", "x.db")],
)  # fmt: skip
@pytest.mark.parametrize("named", [True, False])
def test_a_collection_of_several_pieces_is_exported_as_its_rows(tmp_path, to, name, named):
    packages = {"sqlite": "sqlite_vec", "milvus": "milvus_lite"}
    if to not in ("npy", "word2vec", "paper"):
        pytest.importorskip(packages.get(to, to), reason=f"embits[{to}] is not installed")
    bits = some_bits([f"w{i}" for i in range(30)])
    collection = embits.open_collection(tmp_path / "pieces", bits.coder)
    for rows in (slice(0, 10), slice(10, 30)):
        ids = bits.words[rows] if named else None
        collection.add(bits.codes[rows], ids)
    collection.remove([collection.words[4]])
    loaded = embits.load(tmp_path / "pieces")
    facts = export(loaded, to, str(tmp_path / name))
    assert facts is not None
    if to in ("sqlite", "duckdb", "lancedb", "milvus"):
        tool = importlib.import_module(f"embits.integrations.{to}")
        back = tool.read(tmp_path / name, bits.coder)
        assert list(back.words) == list(loaded.words)
        np.testing.assert_array_equal(back.codes, np.delete(bits.codes, 4, axis=0))
