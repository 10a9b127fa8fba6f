"""Matrices: .npy and .npz."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embits.errors import InputError, ReadError, ReadWarning
from embits.readers import read_vectors
from tests.support.reading import MATRIX, WORDS


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
        with pytest.raises(ReadError, match=r"no usable array \(Python objects, which are never"):
            read_vectors(npy)

    def test_a_false_length_of_the_header_is_refused_before_it_is_read(self, npy: Path) -> None:
        npy.write_bytes(b"\x93NUMPY\x02\x00\xf0\xff\xff\xff" + npy.read_bytes()[10:])
        with pytest.raises(ReadError, match=r"no usable array \(a header of 4,294,967,280 bytes\)"):
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
            ({"limit": "10"}, "limit is '10', expected a whole number of 1"),
            ({"limit": 2.0}, "limit is 2.0, expected a whole number of 1"),
            ({"limit": True}, "limit is True, expected a whole number of 1"),
            ({"repeats": "last"}, "repeats is 'last', expected 'first' or 'refuse'"),
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


def test_an_empty_file_holds_no_words(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 4), np.float32))
    (tmp_path / "a.words").write_text("")
    with pytest.raises(ReadError, match=r"a\.words: found 0 words for 3 rows"):
        read_vectors(tmp_path / "a.npy")
