"""Text vectors: word2vec with a header, GloVe without, and fastText .vec."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import embits
from embits import _core
from embits.errors import InputError, ReadError, ReadWarning
from embits.readers import read_vectors
from embits.readers.source import CHUNK_BYTES
from tests.support.reading import Write, refusal, rows

pytestmark = pytest.mark.usefixtures("no_silent_warning")


class TestKinds:
    def test_word2vec_text_has_a_header(self, write: Write) -> None:
        assert rows(read_vectors(write("2 3\na 1 2 3\nb 4 5 6\n"))) == {
            "a": [1, 2, 3],
            "b": [4, 5, 6],
        }

    def test_glove_text_has_none(self, write: Write) -> None:
        assert rows(read_vectors(write("a 1 2 3\nb 4 5 6\n"))) == {"a": [1, 2, 3], "b": [4, 5, 6]}

    def test_fasttext_vec_has_spaces_at_the_line_ends(self, write: Write) -> None:
        assert rows(read_vectors(write("2 2\n</s> 1 2 \nb 4 5 \n"))) == {
            "</s>": [1, 2],
            "b": [4, 5],
        }

    def test_words_in_another_encoding(self, tmp_path: Path) -> None:
        (tmp_path / "v.txt").write_bytes("2 2\nnaïve 1 2\ncafé 4 5\n".encode("latin-1"))
        wanted = {"naïve": [1, 2], "café": [4, 5]}
        assert rows(read_vectors(tmp_path / "v.txt", encoding="latin-1")) == wanted
        assert "café" in embits.binarize(tmp_path / "v.txt", 8, "lsh", encoding="latin-1")
        with pytest.raises(InputError, match="for the path of a file"):
            embits.binarize(np.eye(2), 8, "lsh", encoding="latin-1")
        np.save(tmp_path / "m.npy", np.array([[1, 2], [4, 5]], "f4"))
        (tmp_path / "words").write_bytes("naïve\ncafé\n".encode("cp1252"))
        with pytest.raises(ReadError, match="--encoding"):
            read_vectors(tmp_path / "m.npy", words=tmp_path / "words")
        found = read_vectors(tmp_path / "m.npy", words=tmp_path / "words", encoding="cp1252")
        assert rows(found) == wanted
        for wrong in ("latin-9000", "utf-16", "cp037", 7):
            with pytest.raises(InputError, match="encoding is"):
                read_vectors(tmp_path / "v.txt", encoding=wrong)  # type: ignore[arg-type]

    def test_two_whole_numbers_before_one_number_a_line_are_a_row(self, write: Write) -> None:
        assert rows(read_vectors(write("7 300\n8 301\n"))) == {"7": [300], "8": [301]}

    def test_a_header_of_one_dimension_is_a_header(self, write: Write) -> None:
        assert rows(read_vectors(write("2 1\na 0.5\nb 1.5\n"))) == {"a": [0.5], "b": [1.5]}

    def test_words_may_be_numbers(self, write: Write) -> None:
        assert rows(read_vectors(write("2 2\n1 3 4\n2 5 6\n"))) == {"1": [3, 4], "2": [5, 6]}

    def test_the_name_of_the_file_says_nothing(self, write: Write) -> None:
        path = write("a 1 2\nb 3 4\n")
        assert rows(read_vectors(path.rename(path.with_suffix(".npy")))) == {
            "a": [1, 2],
            "b": [3, 4],
        }

    def test_the_matrix_is_contiguous_float32_that_may_be_written_to(self, write: Write) -> None:
        matrix = read_vectors(write("a 1 2\nb 3 4\n")).matrix
        assert matrix.dtype == np.float32
        assert matrix.flags.c_contiguous
        assert matrix.flags.writeable


class TestUglyButReadable:
    @pytest.mark.parametrize("ending", ["\n", "\r\n"])
    @pytest.mark.parametrize("last", ["", "\n", "\n\n\n"])
    def test_line_ends_of_any_kind(self, write: Write, ending: str, last: str) -> None:
        text = ("2 2\na 1 2\nb 3 4" + last).replace("\n", ending)
        assert rows(read_vectors(write(text))) == {"a": [1, 2], "b": [3, 4]}

    def test_an_empty_line_in_the_middle_is_left_out(self, write: Write) -> None:
        assert rows(read_vectors(write("a 1 2\n\n \nb 3 4\n"))) == {"a": [1, 2], "b": [3, 4]}

    def test_a_byte_order_mark_is_no_part_of_the_first_word(self, write: Write) -> None:
        assert rows(read_vectors(write(b"\xef\xbb\xbfa 1 2\nb 3 4"))) == {"a": [1, 2], "b": [3, 4]}
        assert rows(read_vectors(write(b"\xef\xbb\xbf1 2\na 1 2\n"))) == {"a": [1, 2]}

    def test_tabs_and_runs_of_spaces_separate(self, write: Write) -> None:
        assert rows(read_vectors(write("a\t1\t2\nb  3   4\n"))) == {"a": [1, 2], "b": [3, 4]}

    def test_words_may_hold_spaces(self, write: Write) -> None:
        text = "x 1 2\n. . . 3 4\nat name@domain.com 5 6\ny 7 8\n"
        expected = {"x": [1, 2], ". . .": [3, 4], "at name@domain.com": [5, 6], "y": [7, 8]}
        assert rows(read_vectors(write(text))) == expected
        assert rows(read_vectors(write("4 2\n" + text))) == expected

    def test_the_first_word_may_hold_spaces(self, write: Write) -> None:
        text = "at name@domain.com 5 6\ny 7 8\nz 1 2\n"
        expected = {"at name@domain.com": [5, 6], "y": [7, 8], "z": [1, 2]}
        assert rows(read_vectors(write(text))) == expected
        assert rows(read_vectors(write("3 2\n" + text))) == expected

    def test_of_two_lines_the_shorter_says_how_many_numbers(self, write: Write) -> None:
        assert list(rows(read_vectors(write(". . . 1 2\ny 3 4\n")))) == [". . .", "y"]

    def test_other_spaces_are_part_of_a_word(self, write: Write) -> None:
        assert list(rows(read_vectors(write("a\u00a0b 1 2\n\u0085 3 4\n\u3000 5 6\n")))) == [
            "a\u00a0b",
            "\u0085",
            "\u3000",
        ]

    def test_a_header_that_promises_too_few_or_too_many_rows_is_warned_of(
        self, write: Write
    ) -> None:
        for promised in (1, 900_000_000_000):
            with pytest.warns(ReadWarning, match=f"promises {promised} rows, the file holds 2"):
                vectors = read_vectors(write(f"{promised} 2\na 1 2\nb 3 4\n"))
            assert rows(vectors) == {"a": [1, 2], "b": [3, 4]}

    def test_words_that_are_not_utf8_are_escaped(self, write: Write) -> None:
        with pytest.warns(ReadWarning, match=r"2 words not in valid UTF-8.* at line 2") as caught:
            vectors = read_vectors(write(b"a 1 2\n\xffb 3 4\nc\xc3 5 6\n"))
        assert rows(vectors) == {"a": [1, 2], "\\xffb": [3, 4], "c\\xc3": [5, 6]}
        assert len(caught) == 1

    def test_repeated_words_are_refused_on_request(self, write: Write) -> None:
        with pytest.raises(
            ReadError, match="line 2: found the word 'a' again, expected each word once"
        ):
            read_vectors(write("a 1 2\na 3 4\n"), repeats="refuse")

    def test_of_repeated_words_the_first_is_kept(self, write: Write) -> None:
        with pytest.warns(
            ReadWarning, match=r"2 repeated words left out.* at line 4: 'a'"
        ) as caught:
            vectors = read_vectors(write("5 2\na 1 2\nb 3 4\na 5 6\nc 7 8\nb 9 9\n"))
        assert rows(vectors) == {"a": [1, 2], "b": [3, 4], "c": [7, 8]}
        assert len(caught) == 1

    def test_a_warning_points_at_the_caller(self, write: Write) -> None:
        with pytest.warns(ReadWarning) as caught:
            read_vectors(write("a 1 2\na 3 4\n"))
        assert caught[0].filename == __file__


class TestLimit:
    def test_the_first_rows_are_read(self, write: Write) -> None:
        assert rows(read_vectors(write("3 2\na 1 2\nb 3 4\nc 5 6\n"), limit=2)) == {
            "a": [1, 2],
            "b": [3, 4],
        }

    def test_what_comes_after_is_not_looked_at(self, write: Write) -> None:
        assert len(read_vectors(write("a 1 2\nb 3 4\nc nan\n"), limit=2)) == 2
        assert len(read_vectors(write("a 1 2\nb 3 4\nc nan\n"), limit=2, on_bad="skip")) == 2

    def test_reading_stops_early(self, write: Write) -> None:
        path = write("".join(f"w{i} 0.25 0.5\n" for i in range(400_000)))
        seen: list[int] = []
        read_vectors(path, limit=10, progress=lambda done, total: seen.append(done))
        assert len(seen) <= 2

    def test_more_than_there_is_reads_all(self, write: Write) -> None:
        assert len(read_vectors(write("a 1 2\nb 3 4\n"), limit=99)) == 2


def test_progress_goes_up_to_the_size_of_the_file(write: Write) -> None:
    path = write("".join(f"w{i} 0.25 0.5\n" for i in range(200_000)))
    seen: list[tuple[int, int]] = []
    read_vectors(path, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_lines_across_blocks_are_read_whole_and_counted_right(write: Write) -> None:
    lines = [f"word{i} {i} {i / 8}" for i in range(CHUNK_BYTES // 8)]
    matrix = read_vectors(write("\n".join(lines))).matrix
    assert len(matrix) == len(lines)
    np.testing.assert_array_equal(matrix[:, 0], np.arange(len(lines), dtype=np.float32))
    bad = len(lines) - 5
    lines[bad] = "bad 1 x"
    assert f"line {bad + 1}: found 'x'" in refusal(write("\n".join(lines)))


def test_no_second_matrix_is_held(write: Write) -> None:
    path = write("".join(f"w{i} " + "0.125 " * 100 + "\n" for i in range(5_000)))
    tracemalloc.start()
    matrix = read_vectors(path).matrix
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The matrix itself is native memory: what Python holds beside it is words and two blocks.
    assert peak < 3 * CHUNK_BYTES + 200 * len(matrix)


LINES = st.lists(
    st.one_of(
        st.just("good 1 2"),
        st.just(". . . 1e-3 2"),
        st.just("bad 1 nan"),
        st.just("ragged 1"),
        st.just(""),
        st.just("long 1 2 3"),
    ),
    max_size=40,
)


def parsed(text: bytes, threads: int, limit: int, skip_bad: bool, cut: int) -> tuple[object, ...]:
    rows = _core.Rows(2, limit, skip_bad, 1)
    for block in (text[:cut], text[cut:]):
        if not rows.stopped:
            rows.parse_text(block, threads)
    rows.end_text()
    places = rows.take_places().tolist()
    return places, rows.n_bad, rows.first_bad, rows.take_words(), rows.take_matrix().tolist()


@settings(deadline=None)
@given(LINES, st.integers(1, 9), st.integers(1, 50), st.booleans(), st.integers(0, 300))
def test_any_number_of_threads_and_any_cut_give_the_same(
    lines: list[str], threads: int, limit: int, skip_bad: bool, cut: int
) -> None:
    text = "\n".join(lines).encode()
    assert parsed(text, threads, limit, skip_bad, cut) == parsed(text, 1, limit, skip_bad, 0)


WORDS = st.lists(
    st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters=" "), min_size=1),
    min_size=1,
    max_size=20,
    unique=True,
)


@example(["0."], 1, False, Random(0))
@settings(deadline=None, max_examples=60)
@given(WORDS, st.integers(1, 5), st.booleans(), st.randoms(use_true_random=False))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    words: list[str],
    dims: int,
    header: bool,
    random: object,
) -> None:
    generator = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    matrix = generator.standard_normal((len(words), dims)).astype(np.float32)
    lines = [
        word + " " + " ".join(map(repr, row.tolist()))
        for word, row in zip(words, matrix, strict=True)
    ]
    text = "\n".join([f"{len(words)} {dims}"] * header + lines)
    path = tmp_path_factory.mktemp("round") / "trip.txt"
    path.write_bytes(text.encode())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*first column was read as the words")  # such as "0."
        vectors = read_vectors(path)
    assert vectors.words == words or text.startswith("\ufeff")
    np.testing.assert_array_equal(vectors.matrix, matrix)
