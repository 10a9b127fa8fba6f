"""word2vec's .bin, honest and lying."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import ReadError, ReadWarning
from embits.readers import read_vectors


def content(
    words: list[bytes], matrix: object, end: bytes = b"\n", header: str | None = None
) -> bytes:
    rows = np.asarray(matrix, dtype="<f4")
    first = header or f"{len(rows)} {rows.shape[1]}"
    body = b"".join(
        word + b" " + row.tobytes() + end for word, row in zip(words, rows, strict=True)
    )
    return first.encode() + b"\n" + body


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.bin"


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters=" \n"), min_size=1),
        min_size=1,
        unique=True,
    ),
    st.integers(1, 40),
    st.sampled_from([b"\n", b""]),
    st.integers(0, 2**32 - 1),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], dims: int, end: bytes, seed: int
) -> None:
    matrix = np.random.default_rng(seed).standard_normal((len(words), dims)).astype(np.float32)
    matrix[:, 0] = 0  # zero bytes, so that even one short row is no text
    path = tmp_path_factory.mktemp("round") / "trip.bin"
    path.write_bytes(content([word.encode() for word in words], matrix, end))
    vectors = read_vectors(path)
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.matrix, matrix)


def test_gensim_writes_what_we_read(path: Path) -> None:
    gensim = pytest.importorskip("gensim.models")
    matrix = np.random.default_rng(0).standard_normal((500, 20)).astype(np.float32)
    keyed = gensim.KeyedVectors(20)
    keyed.add_vectors([f"w{i}" for i in range(500)], matrix)
    keyed.save_word2vec_format(path, binary=True)
    vectors = read_vectors(path)
    assert vectors.words == keyed.index_to_key
    np.testing.assert_array_equal(vectors.matrix, matrix)


def test_rows_across_blocks_are_read_whole(path: Path) -> None:
    matrix = np.random.default_rng(0).standard_normal((9_000, 100)).astype(np.float32)
    path.write_bytes(content([b"w%d" % i for i in range(9_000)], matrix))
    np.testing.assert_array_equal(read_vectors(path).matrix, matrix)


def test_limit_stops_early(path: Path) -> None:
    path.write_bytes(content([b"a", b"b"], [[1, 2], [np.nan, 4]]))
    assert read_vectors(path, limit=1).words == ["a"]


@pytest.mark.parametrize(
    "header", ["900000000000 2", "3 2", "2 900000000000", "2 3", "99999999999999 99999999999999"]
)
def test_sizes_that_the_file_does_not_have_are_refused_before_allocating(
    path: Path, header: str
) -> None:
    path.write_bytes(content([b"a", b"b"], [[0, 2], [0, 4]], b"", header))
    with pytest.raises(ReadError, match=r"vectors\.bin, byte \d+: found .* expected"):
        read_vectors(path)


def test_a_header_of_zero_is_refused(path: Path) -> None:
    path.write_bytes(content([b"a"], [[0, 2]], b"", "0 2"))
    with pytest.raises(ReadError, match="a header of 0 rows"):
        read_vectors(path)


def test_a_cut_off_last_row_is_refused(path: Path) -> None:
    whole = content([b"w%d" % i for i in range(50)], np.zeros((50, 9)))
    path.write_bytes(whole[:-4])
    with pytest.raises(
        ReadError, match=r"byte \d+: found the end of the file in row 50, expected 50 rows"
    ):
        read_vectors(path)


def test_nan_is_refused_with_its_byte(path: Path) -> None:
    path.write_bytes(content([b"a", b"b"], [[1, 2], [np.nan, 4]]))
    with pytest.raises(ReadError, match="byte 15: found nan or inf"):
        read_vectors(path)


def test_nan_rows_may_be_skipped(path: Path) -> None:
    path.write_bytes(content([b"a", b"b", b"c"], [[1, 2], [np.nan, 4], [0, 1]]))
    with pytest.warns(ReadWarning, match="1 row left out, the first at byte 15"):
        assert read_vectors(path, on_bad="skip").words == ["a", "c"]


@pytest.mark.parametrize("on_bad", ["raise", "skip"])
def test_a_word_without_an_end_is_refused_in_any_case(path: Path, on_bad: Any) -> None:
    path.write_bytes(b"100 2\n" + b"\x01" * 200_000)
    with pytest.raises(ReadError, match="byte 6: found no space in 65536 bytes"):
        read_vectors(path, on_bad=on_bad)


def test_a_newline_within_a_word_is_refused(path: Path) -> None:
    path.write_bytes(content([b"a", b"b\nc"], np.zeros((2, 2))))
    with pytest.raises(ReadError, match="found a newline within a word"):
        read_vectors(path)


def test_bytes_after_the_last_row_are_warned_of(path: Path) -> None:
    path.write_bytes(content([b"a", b"b"], [[0, 2], [0, 4]]) + b"more")
    with pytest.warns(ReadWarning, match="bytes after"):
        assert read_vectors(path).words == ["a", "b"]


def test_repeats_and_bad_utf8_are_put_right(path: Path) -> None:
    path.write_bytes(content([b"a", b"\xff", b"a"], np.zeros((3, 4))))
    with pytest.warns(ReadWarning) as caught:
        assert read_vectors(path).words == ["a", "\\xff"]
    assert len(caught) == 2
