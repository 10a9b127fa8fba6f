"""Words in a file beside a matrix."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embits.errors import ReadError, ReadWarning
from embits.readers import read_vectors
from embits.vectors import WordVectors
from embits.writers import write_vectors
from tests.support.reading import MATRIX, WORDS


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
        with pytest.warns(ReadWarning, match=r"ids from some_index\.parquet"):
            assert read_vectors(npy).words == WORDS

    @pytest.mark.parametrize("name", ["glove.parquet", "vocab.parquet", "codes.parquet"])
    @pytest.mark.parametrize("has_metadata", [True, False])
    def test_a_table_of_codes_is_not_one_of_ids(
        self, npy: Path, name: str, has_metadata: bool
    ) -> None:
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        codes = pa.array([b"ab"] * len(WORDS), pa.binary() if has_metadata else pa.binary(2))
        table = pa.table({"id": WORDS, "code": codes})
        if has_metadata:
            table = table.replace_schema_metadata({"embits": "{}"})
        pq.write_table(table, npy.with_name(name))
        assert read_vectors(npy).words is None

    @pytest.mark.parametrize("name", ["glove.txt", "words.txt"])
    def test_where_words_were_found_is_logged(
        self, npy: Path, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        npy.with_name(name).write_text("a\nb\nc\n")
        with caplog.at_level("INFO", "embits"):
            read_vectors(npy)
        assert caplog.messages == [f"ids from {name}"]

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
        with pytest.warns(ReadWarning, match=r"vocab\.txt beside it is not used: 2 words for 3"):
            assert read_vectors(npy).words is None

    @pytest.mark.parametrize("content", ["a\n\nc\n", "a\nb\na\n", '["a", 1, 2]', '["a"'])
    def test_a_file_without_an_id_for_each_row_is_used_only_if_it_has_the_same_name(
        self, npy: Path, content: str
    ) -> None:
        npy.with_name("vocab.txt").write_text(content)
        with pytest.warns(ReadWarning, match=r"vocab\.txt beside it is not used: "):
            assert read_vectors(npy).words is None
        npy.with_name("vocab.txt").rename(npy.with_suffix(".txt"))
        with pytest.raises(ReadError, match=r"glove\.txt.*--no-ids"):
            read_vectors(npy)
        assert read_vectors(npy, ids=False).words is None

    def test_another_parquet_beside_it_that_has_no_ids_is_not_used(self, npy: Path) -> None:
        npy.with_name("broken.parquet").write_text("not a table")
        with pytest.warns(ReadWarning, match=r"broken\.parquet beside it is not used: "):
            assert read_vectors(npy).words is None

    def test_empty_words_are_refused(self, npy: Path) -> None:
        with pytest.raises(ReadError, match="row 1: found an empty word"):
            read_vectors(npy, words=["a", "", "c"])
        write_vectors(npy.with_suffix(".npz"), WordVectors(["a", "", "c"], MATRIX))  # of words
        assert read_vectors(npy.with_suffix(".npz")).words == ["a", "", "c"]

    @pytest.mark.parametrize(
        "content", [b"\xff\xfe\n", b'["a", 1]', b'["a"', b'{"a": 0, "b": 0, "c": 1}']
    )
    def test_broken_words_are_refused(self, npy: Path, content: bytes) -> None:
        names = npy.with_name("names")
        names.write_bytes(content)
        with pytest.raises(ReadError, match="names"):
            read_vectors(npy, words=names)

    def test_a_line_that_does_not_end_is_not_read_whole(self, npy: Path) -> None:
        words = npy.with_suffix(".words")
        words.write_bytes(b"a\n")
        os.truncate(words, 10 << 20)
        with pytest.raises(
            ReadError, match=r"words: found a line of over 1,048,576 bytes, expected"
        ):
            read_vectors(npy)

    def test_a_missing_file_of_words_is_refused(self, npy: Path) -> None:
        with pytest.raises(ReadError, match="no such file"):
            read_vectors(npy, words="nowhere.txt")
