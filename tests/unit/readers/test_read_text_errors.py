"""Text vectors that are refused, or read without their bad lines."""

from __future__ import annotations

import pytest

from embits import _core
from embits.errors import InputError, ReadWarning
from embits.readers import read_vectors
from tests.support.reading import Write, refusal, rows

pytestmark = pytest.mark.usefixtures("no_silent_warning")


class TestRefused:
    def test_a_line_with_too_few_numbers(self, write: Write) -> None:
        assert refusal(write("a 1 2 3\nb 1 2 3\nc 4 5\nd 1 2 3\n")) == (
            ", line 3: found 2 numbers, expected 3 numbers"
        )

    def test_a_line_with_too_many_numbers(self, write: Write) -> None:
        assert (
            refusal(write("a 1 2\nb 1 2\nc 4 5 6\n"))
            == ", line 3: found 3 numbers, expected 2 numbers"
        )

    def test_a_last_line_that_is_cut_off(self, write: Write) -> None:
        assert refusal(write("3 3\na 1 2 3\nb 1 2 3\nc 4")) == (
            ", line 4: found 1 number, expected 3 numbers (the file ends in this line)"
        )
        assert "line 4: found 0 numbers" in refusal(write("3 3\na 1 2 3\nb 1 2 3\nc"))

    def test_header_dims_that_the_rows_do_not_have(self, write: Write) -> None:
        assert refusal(write("2 4\na 1 2 3\nb 1 2 3\n")) == (
            ", line 2: found 3 numbers, expected 4 as the header in line 1 says"
        )

    def test_a_header_without_rows(self, write: Write) -> None:
        assert "line 2: found" in refusal(write("5 300\n"))

    @pytest.mark.parametrize(
        "value", ["nan", "NaN", "-nan", "inf", "-Infinity", "1e39", "3.5e38", "-1e999"]
    )
    def test_values_that_no_float32_holds(self, write: Write, value: str) -> None:
        assert refusal(write(f"a 1 2\nb 3 {value}\n")) == (
            f", line 2: found {value}, expected a finite float32"
        )

    @pytest.mark.parametrize(
        "value", ["0,5", "x", "1e", "--1", "1.2.3", "0x10", "1_000", "٣", ".", "-", "+", "1f"]
    )
    def test_fields_that_are_no_numbers(self, write: Write, value: str) -> None:
        assert refusal(write(f"a 1 2\nb 3 {value}\n")) == (
            f", line 2: found '{value}', expected 2 numbers after the word"
        )

    def test_a_long_field_is_shown_in_part(self, write: Write) -> None:
        assert len(refusal(write(f"a 1 2\nb 3 {'x' * 10_000}\n"))) < 120

    @pytest.mark.parametrize("on_bad", ["raise", "skip"])
    def test_a_line_without_an_end(self, on_bad: str) -> None:
        rows = _core.Rows(2, 10, on_bad == "skip", 7)
        for _ in range(65):
            rows.parse_text(b"x" * (1 << 20), 2)
        assert rows.lost
        assert rows.first_bad == (7, b"no line end in 64 MiB", b"lines of text")

    def test_prose(self, write: Write) -> None:
        assert "line 1" in refusal(write("It was the best of times,\nit was the worst of times,\n"))

    def test_words_alone(self, write: Write) -> None:
        assert (
            refusal(write("a\nb\nc\n"))
            == ", line 1: found no numbers, expected a word and its numbers"
        )

    @pytest.mark.parametrize(
        "text",
        ["cat,1,2,3\ndog,2,1,3\n", "cat, 1, 2, 3\ndog, 2, 1, 3\n", "word;x;y\ncat;1;2\n"],
    )
    def test_comma_separated_values(self, write: Write, text: str) -> None:
        message = refusal(write(text))
        assert message.startswith(", line 1: found comma-separated values, expected a word and")
        assert "replace the commas by spaces" in message

    def test_commas_as_words(self, write: Write) -> None:
        assert list(rows(read_vectors(write(", 1 2\na,b,c 3 4\n\n")))) == [",", "a,b,c"]
        assert list(rows(read_vectors(write("\n\na, 3\nb, 4\n")))) == ["a,", "b,"]

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("cat 1 2 3\ndog 2 1\n", 2),
            ("dog 2 1\ncat 1 2 3\n", 2),
            ("cat 1 2\ndog 2 1\nemu 1 2 3\nfox 1 2 3\n", 3),
            ("cat 1 2 3\ndog 2 1\nemu 1 2\n", 1),
        ],
    )
    def test_rows_of_two_lengths(self, write: Write, text: str, line: int) -> None:
        assert refusal(write(text)).startswith(f", line {line}: ")

    def test_spaces_in_the_first_word_are_not_counted_as_numbers(self, write: Write) -> None:
        assert rows(read_vectors(write("New York 1 2\ncat 3 4\n"))) == {
            "New York": [1, 2],
            "cat": [3, 4],
        }

    @pytest.mark.parametrize("limit", [None, 2])
    def test_numbers_in_place_of_words(self, write: Write, limit: int | None) -> None:
        path = write("1.5e+00 2.5 3\n-1 2 3\n4 5 6\n")
        with pytest.warns(ReadWarning, match=r"first column was read .* as \.npy$") as caught:
            read_vectors(path, limit)
        assert len(caught) == 1

    @pytest.mark.parametrize(
        "text", ["1 2.5 3\n2 2 3\n", "2 2\n1.5 2 3\n2.5 2 3\n", "1.5 2 3\ncat 2 3\n"]
    )
    def test_numbers_that_may_be_words(self, write: Write, text: str) -> None:
        assert len(read_vectors(write(text))) == 2

    def test_blank_lines_alone(self, write: Write) -> None:
        refusal(write("\n\n\n"))

    def test_a_limit_below_one(self, write: Write) -> None:
        with pytest.raises(InputError, match="limit is 0"):
            read_vectors(write("a 1 2\n"), limit=0)

    def test_an_unknown_way_with_bad_rows(self, write: Write) -> None:
        with pytest.raises(InputError, match="on_bad is 'ignore'"):
            read_vectors(write("a 1 2\n"), on_bad="ignore")  # type: ignore[arg-type]

    def test_words_for_a_file_that_has_its_own(self, write: Write) -> None:
        with pytest.raises(InputError, match="holds its own words"):
            read_vectors(write("a 1 2\n"), words=["b"])


class TestSkip:
    def test_bad_rows_are_left_out_and_counted_once(self, write: Write) -> None:
        with pytest.warns(
            ReadWarning, match=r"3 rows left out, the first at line 3: found nan"
        ) as caught:
            vectors = read_vectors(
                write("5 2\na 1 2\nb nan 2\nc 3\nd 1 2 3\ne 5 6\n"), on_bad="skip"
            )
        assert rows(vectors) == {"a": [1, 2], "e": [5, 6]}
        assert len(caught) == 1

    def test_a_file_of_bad_rows_alone_is_refused(self, write: Write) -> None:
        with pytest.warns(ReadWarning, match="2 rows left out"):
            assert "no vectors" in refusal(write("a nan 2\nb 1 inf\n"), on_bad="skip")
