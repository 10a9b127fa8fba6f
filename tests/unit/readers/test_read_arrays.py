"""Matrices: .npy, .npz and safetensors, and the words beside them."""

from __future__ import annotations

import json
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import InputError, ReadError, ReadWarning
from embits.readers import read_vectors

MATRIX = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)
WORDS = ["a", "b", "c"]


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    path = tmp_path / "glove.npy"
    np.save(path, MATRIX)
    return path


class TestNpy:
    def test_float32_stays_mapped(self, npy: Path) -> None:
        vectors = read_vectors(npy)
        assert vectors.words is None
        assert isinstance(vectors.matrix.base, np.memmap)
        np.testing.assert_array_equal(vectors.matrix, MATRIX)

    @pytest.mark.parametrize("dtype", ["<f2", "<f8", ">f4", "<i4"])
    def test_other_numbers_are_converted(self, npy: Path, dtype: str) -> None:
        np.save(npy, MATRIX.astype(dtype))
        matrix = read_vectors(npy).matrix
        assert matrix.dtype == np.float32
        np.testing.assert_array_equal(matrix, MATRIX)

    def test_columns_first_is_turned_round(self, npy: Path) -> None:
        np.save(npy, np.asfortranarray(MATRIX))
        assert read_vectors(npy).matrix.flags.c_contiguous

    def test_limit_takes_the_first_rows(self, npy: Path) -> None:
        vectors = read_vectors(npy, limit=2, words=WORDS)
        assert vectors.words == ["a", "b"]
        np.testing.assert_array_equal(vectors.matrix, MATRIX[:2])

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros(3),
            np.zeros((2, 2, 2)),
            np.array([["a", "b"]]),
            np.zeros((0, 3)),
            np.zeros((3, 0)),
        ],
    )
    def test_what_is_no_matrix_is_refused(self, npy: Path, array: Any) -> None:
        np.save(npy, array)
        with pytest.raises(ReadError, match=r"glove\.npy: found"):
            read_vectors(npy)

    def test_pickled_objects_are_refused(self, npy: Path) -> None:
        np.save(npy, np.array([[{}]], dtype=object), allow_pickle=True)
        with pytest.raises(ReadError, match="no usable array"):
            read_vectors(npy)

    def test_a_cut_off_file_is_refused(self, npy: Path) -> None:
        npy.write_bytes(npy.read_bytes()[:-4])
        with pytest.raises(ReadError, match="no usable array"):
            read_vectors(npy)

    def test_nan_is_refused_with_its_row(self, npy: Path) -> None:
        np.save(npy, np.array([[1, 2], [np.inf, 4]], dtype=np.float32))
        with pytest.raises(ReadError, match="row 1: found nan or inf"):
            read_vectors(npy)

    def test_a_float64_too_large_is_refused(self, npy: Path) -> None:
        np.save(npy, np.array([[1e300, 2]]))
        with pytest.raises(ReadError, match=r"row 0: found 1e\+300, too large for float32"):
            read_vectors(npy)

    def test_nan_rows_may_be_skipped_with_their_words(self, npy: Path) -> None:
        np.save(npy, np.array([[1, 2], [np.nan, 4], [5, 6]], dtype=np.float32))
        with pytest.warns(ReadWarning, match="1 row left out"):
            vectors = read_vectors(npy, words=WORDS, on_bad="skip")
        assert vectors.words == ["a", "c"]
        np.testing.assert_array_equal(vectors.matrix, [[1, 2], [5, 6]])

    def test_rows_keep_their_numbers_as_ids_if_others_are_skipped(self, npy: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_vectors(npy, on_bad="skip").words is None
        np.save(npy, np.array([[1, 2], [np.nan, 4], [5, 6]], dtype=np.float32))
        with pytest.warns(ReadWarning, match="row 1: .*; the other rows have their numbers"):
            assert read_vectors(npy, on_bad="skip").words == ["0", "2"]

    def test_repeated_words_are_left_out_on_request(self, npy: Path) -> None:
        with pytest.warns(ReadWarning, match="1 repeated word left out, the first at row 1"):
            vectors = read_vectors(npy, words=["a", "a", "c"], repeats="first")
        np.testing.assert_array_equal(vectors.matrix, MATRIX[[0, 2]])

    def test_repeated_words_that_are_given_or_beside_are_refused(self, npy: Path) -> None:
        again = (
            r"row 1: found the word .a. again( in .*glove\.words)?, expected each word once \(rep"
        )
        with pytest.raises(ReadError, match=again):
            read_vectors(npy, words=["a", "a", "c"])
        npy.with_suffix(".words").write_text("a\na\nc\n")
        with pytest.raises(ReadError, match=again):
            read_vectors(npy)
        with pytest.raises(ReadError, match=again):
            read_vectors(npy, words=npy.with_suffix(".words"))

    @pytest.mark.parametrize(
        "words", [np.array(WORDS), tuple(WORDS), [1, "b", np.int64(3)], np.array([7, 8, 9])]
    )
    def test_words_are_any_sequence_of_ids(self, npy: Path, words: Any) -> None:
        assert read_vectors(npy, words=words).words == [str(word) for word in words]

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            ({"limit": "10"}, "limit is '10', expected 1 or more"),
            ({"limit": 2.0}, "limit is 2.0, expected 1 or more"),
            ({"limit": True}, "limit is True, expected 1 or more"),
            ({"repeats": "last"}, 'repeats is \'last\', expected "first", "refuse" or None'),
            (
                {"words": {"a": 0, "b": 1, "c": 2}},
                "ids is .*, expected one id for each row",
            ),
            ({"words": {"a", "b", "c"}}, "ids is .*, expected one id for each row"),
            ({"words": 3}, "ids is .*, expected one id for each row"),
            ({"words": ["a", None, "c"]}, "strings or whole numbers: that of row 1 is None"),
            ({"words": ["a", 1.5, "c"]}, "strings or whole numbers: that of row 1 is 1.5"),
        ],
    )
    def test_wrong_arguments_are_refused_in_one_line(
        self, npy: Path, options: dict[str, Any], says: str
    ) -> None:
        with pytest.raises(InputError, match=says):
            read_vectors(npy, **options)

    def test_what_is_no_path_is_refused_in_one_line(self) -> None:
        with pytest.raises(InputError, match="int is not a path"):
            read_vectors(5)  # type: ignore[arg-type]


class TestWordsBeside:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("glove.words", "a\nb\nc\n"),
            ("glove.txt", "a\r\nb\r\nc"),
            ("glove.json", '["a", "b", "c"]'),
            ("glove.json", '{"b": 1, "a": 0, "c": 2}'),
            ("words.txt", "a\nb\nc\n"),
            ("vocab.txt", "\ufeffa\nb\nc\n"),
            ("vocab.json", '{"b": 1, "a": 0, "c": 2}'),
            ("tokenizer.json", '{"model": {"vocab": {"b": 1, "a": 0, "c": 2}}}'),
        ],
    )
    def test_a_file_of_words_is_found(self, npy: Path, name: str, content: str) -> None:
        npy.with_name(name).write_text(content, newline="")
        assert read_vectors(npy).words == WORDS

    @pytest.mark.parametrize(
        ("name", "content", "left_out"),
        [
            ("glove.vocab", "a 1061396\nb 593677\nc 416629\n", "counts"),
            ("vocab.txt", "a 9\nb 7\nc 7\n", "counts"),
            ("glove.tsv", "1\ta\n1\tb\n2\tc\n", "column without repeats"),
            ("glove.txt", "a 1.0 2.0\nb 3.0 4.0\nc 5.0 6.0\n", "vectors"),
        ],
    )
    def test_what_clearly_is_no_word_is_left_out_with_a_warning(
        self, npy: Path, name: str, content: str, left_out: str
    ) -> None:
        npy.with_name(name).write_text(content)
        with pytest.warns(ReadWarning, match=rf"{name}: the {left_out}.*--words FILE"):
            assert read_vectors(npy).words == WORDS

    @pytest.mark.parametrize(
        "lines",
        [
            ["Alpha 1", "Beta 2", "Gamma 2024"],
            ["doc 0", "doc 1", "doc 2"],
            ["doc 2", "doc 1", "doc 0"],
            ["a\tb 5", "b\tb 5", "c\tb 5"],
            ["x 3", "y 2", "z 1"],
            ["v 1.0 2.0", "w 3.0 4.0", "x 5.0 6.0"],
        ],
    )
    def test_a_line_of_a_words_file_is_one_id(self, npy: Path, lines: list[str]) -> None:
        beside = npy.with_suffix(".words")
        beside.write_text("\n".join(lines) + "\n")
        assert read_vectors(npy).words == lines
        given = beside.rename(npy.with_name("vocab.tsv"))
        assert read_vectors(npy, words=given).words == lines

    @pytest.mark.parametrize("name", ["glove.txt", "glove.vocab", "glove.tsv", "words.txt"])
    @pytest.mark.parametrize("content", ["Alpha 1\nBeta 2\nGamma 24\n", "d 2\nd 1\nd 0\n"])
    def test_ids_that_end_in_numbers_stay_whole(self, npy: Path, name: str, content: str) -> None:
        npy.with_name(name).write_text(content)
        assert read_vectors(npy).words == content.splitlines()

    def test_the_only_parquet_beside_it_is_taken_when_it_fits(self, npy: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"index": WORDS}), npy.with_name("some_index.parquet"))
        assert read_vectors(npy).words == WORDS

    def test_words_may_be_given(self, npy: Path) -> None:
        assert read_vectors(npy, words=WORDS).words == WORDS

    def test_words_may_be_given_as_a_file(self, npy: Path) -> None:
        names = npy.with_name("names.lst")
        names.write_text("a\nb\nc\n")
        assert read_vectors(npy, words=names).words == WORDS

    def test_words_of_the_same_stem_have_to_fit(self, npy: Path) -> None:
        npy.with_suffix(".words").write_text("a\nb\n")
        with pytest.raises(
            ReadError, match=r"glove\.words: found 2 words for 3 rows of .*glove\.npy"
        ):
            read_vectors(npy)

    def test_a_file_by_a_usual_name_that_does_not_fit_is_not_used(self, npy: Path) -> None:
        npy.with_name("vocab.txt").write_text("a\nb\n")
        with pytest.warns(ReadWarning, match=r"vocab\.txt beside it has 2 words for 3 rows"):
            assert read_vectors(npy).words is None

    @pytest.mark.parametrize(
        "content", [b"\xff\xfe\n", b'["a", 1]', b'["a"', b'{"a": 0, "b": 0, "c": 1}']
    )
    def test_broken_words_are_refused(self, npy: Path, content: bytes) -> None:
        names = npy.with_name("names")
        names.write_bytes(content)
        with pytest.raises(ReadError, match="names"):
            read_vectors(npy, words=names)

    def test_a_missing_file_of_words_is_refused(self, npy: Path) -> None:
        with pytest.raises(ReadError, match="no readable file"):
            read_vectors(npy, words="nowhere.txt")


class TestNpz:
    def test_matrix_and_words_are_told_apart_by_their_types(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.npz"
        np.savez_compressed(path, whatever=MATRIX.astype(np.float16), names=np.array(WORDS))
        vectors = read_vectors(path)
        assert vectors.words == WORDS
        np.testing.assert_array_equal(vectors.matrix, MATRIX)

    def test_a_matrix_alone_has_no_words(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.npz"
        np.savez(path, MATRIX)
        assert read_vectors(path).words is None

    def test_two_matrices_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.npz"
        np.savez(path, MATRIX, MATRIX)
        with pytest.raises(ReadError, match="expected one matrix"):
            read_vectors(path)

    def test_pickled_words_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.npz"
        np.savez(path, matrix=MATRIX, words=np.array(WORDS, dtype=object))
        with pytest.raises(ReadError, match="no usable arrays"):
            read_vectors(path)

    def test_a_damaged_archive_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "vectors.npz"
        np.savez(path, MATRIX)
        path.write_bytes(path.read_bytes()[:-30])
        with pytest.raises(ReadError):
            read_vectors(path)


def safetensors_bytes(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class TestSafetensors:
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_what_the_safetensors_package_writes_is_read(self, tmp_path: Path, dtype: Any) -> None:
        numpy = pytest.importorskip("safetensors.numpy")
        path = tmp_path / "model.safetensors"
        numpy.save_file({"embeddings": MATRIX.astype(dtype), "norms": np.ones(3, np.float32)}, path)
        path.with_suffix(".words").write_text("a\nb\nc\n")
        vectors = read_vectors(path)
        assert vectors.words == WORDS
        np.testing.assert_array_equal(vectors.matrix, MATRIX)

    def test_bfloat16_is_the_upper_half_of_a_float32(self, tmp_path: Path) -> None:
        data = (MATRIX.view(np.uint32) >> 16).astype("<u2").tobytes()
        path = tmp_path / "model.safetensors"
        entry = {"dtype": "BF16", "shape": [3, 2], "data_offsets": [0, 12]}
        path.write_bytes(safetensors_bytes({"weight": entry}, data))
        np.testing.assert_array_equal(read_vectors(path).matrix, MATRIX)
        np.testing.assert_array_equal(read_vectors(path, limit=1).matrix, MATRIX[:1])

    def test_a_file_of_ours_is_sent_to_load(self, tmp_path: Path) -> None:
        path = tmp_path / "bits.safetensors"
        path.write_bytes(safetensors_bytes({"__metadata__": {"format": "embits/1"}}, b""))
        with pytest.raises(ReadError, match=r"embits\.load"):
            read_vectors(path)

    def test_two_matrices_of_unusual_names_are_refused(self, tmp_path: Path) -> None:
        entry = {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}
        path = tmp_path / "model.safetensors"
        path.write_bytes(safetensors_bytes({"x": entry, "y": entry}, MATRIX.tobytes()))
        with pytest.raises(ReadError, match=r"2 float matrices \(x, y\)"):
            read_vectors(path)

    @pytest.mark.parametrize(
        "entry",
        [
            {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 20]},
            {"dtype": "F32", "shape": [30, 2], "data_offsets": [0, 240]},
            {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 24]},
            {"dtype": "F32", "shape": [3, -2], "data_offsets": [0, 24]},
            {"dtype": "F32", "shape": [3, "2"], "data_offsets": [0, 24]},
            {"dtype": "F32", "shape": [3, 2], "data_offsets": [24, 0]},
            {"dtype": "F32", "shape": [3, 2], "data_offsets": [2**63, 2**63 + 24]},
            {"dtype": "F32", "shape": [3, 2]},
            {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]},
            {"dtype": "I8", "shape": [3, 2], "data_offsets": [0, 6]},
            {"dtype": ["F32"], "shape": [3, 2], "data_offsets": [0, 24]},
            "nonsense",
        ],
    )
    def test_a_lying_header_is_refused(self, tmp_path: Path, entry: object) -> None:
        path = tmp_path / "model.safetensors"
        path.write_bytes(safetensors_bytes({"x": entry}, MATRIX.tobytes()))
        with pytest.raises(ReadError, match=r"model\.safetensors"):
            read_vectors(path)

    @settings(deadline=None, max_examples=100)
    @given(st.binary(max_size=60))
    def test_a_broken_header_is_refused(
        self, tmp_path_factory: pytest.TempPathFactory, rest: bytes
    ) -> None:
        path = tmp_path_factory.mktemp("broken") / "model.safetensors"
        path.write_bytes(struct.pack("<Q", 2 + len(rest)) + b"{ " + rest)
        with pytest.raises(ReadError):
            read_vectors(path)


def test_an_empty_file_holds_no_words(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4), np.float32))
    (tmp_path / "a.words").write_text("")
    with pytest.raises(ReadError, match=r"a\.words: found 0 words for 3 rows"):
        read_vectors(tmp_path / "a.npy")
