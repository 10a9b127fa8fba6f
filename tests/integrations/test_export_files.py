"""Files for other programs: word2vec floats and the paper's text of integers, read back."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.integrations import export
from embits.integrations.paper import read_paper_codes


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
    with pytest.raises(embits.InputError, match=r"take one of \.txt, \.vec, .*\.bin$"):
        export(bits, "word2vec", str(tmp_path / "floats.npy"))
    assert list(tmp_path.iterdir()) == []


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
    export(bits, "paper", str(target))
    read = read_paper_codes(target, n_bits)
    assert read.words == words
    assert np.array_equal(read.codes, bits.codes)
    assert read.n_bits == n_bits


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
    ("text", "says"),
    [
        ("", "line 1: found another line, expected two numbers"),
        ("queen 1 2\n", "line 1: found another line"),
        ("1 63\nqueen\n", "line 1: found another line"),
        ("1 999999999999999999\nqueen 1\n", "line 1: found another line"),
        ("2 64\nqueen 1\n", "found 1 lines of codes, expected 2 as line 1 says"),
        ("1 64\nqueen 1 2\n", "line 2: found 'queen 1 2', expected a word and 1 integers"),
        ("2 64\na 1\n\n", "line 3: found ''"),
        ("1 64\nqueen 18446744073709551616\n", "line 2: found"),
        ("1 64\nqueen -1\n", "line 2: found"),
        ("1 64\nqueen 0.5\n", "line 2: found"),
    ],
)
def test_what_is_not_the_papers_format_is_refused_with_its_line(tmp_path, text, says):
    (tmp_path / "codes.txt").write_text(text)
    with pytest.raises(embits.ReadError, match=says):
        read_paper_codes(tmp_path / "codes.txt")
    with pytest.raises(embits.ReadError, match="no readable file"):
        read_paper_codes(tmp_path / "absent.txt")


def test_bits_that_are_set_are_not_cut_off(tmp_path):
    (tmp_path / "codes.txt").write_text("1 64\nqueen 1\n")
    with pytest.raises(embits.InputError, match="there are bits set beyond"):
        read_paper_codes(tmp_path / "codes.txt", n_bits=63)
    with pytest.raises(embits.InputError, match="expected 1 to the file's 64"):
        read_paper_codes(tmp_path / "codes.txt", n_bits=65)
