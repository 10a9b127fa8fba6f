"""Words to rows and back, against a dict."""

import pickle
import random
import uuid

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embits
from embits.ids import packed
from embits.ids.keys import RowNumbers
from embits.ids.packed import open_words, pack
from embits.ids.vocabulary import Vocabulary, WordRun

words = st.lists(st.text(max_size=12), unique=True, max_size=60)


@given(words, st.text(max_size=12))
def test_a_vocabulary_is_a_dict_and_a_list(words, other):
    vocabulary = Vocabulary.from_words(words)
    rows = {word: row for row, word in enumerate(words)}
    assert list(vocabulary) == words
    assert len(vocabulary) == len(words)
    assert [vocabulary.find(word) for word in words] == list(range(len(words)))
    assert vocabulary.find(other) == rows.get(other)
    assert (other in vocabulary) == (other in rows)
    assert vocabulary[::-2] == words[::-2]
    vocabulary.verify()


def test_it_costs_its_text_and_8_bytes_a_word():
    vocabulary = Vocabulary.from_words([f"word{i}" for i in range(1000)])
    size = vocabulary.ends.nbytes + vocabulary.order.nbytes
    assert size == 8 * len(vocabulary)


def test_a_word_that_appears_twice_is_refused_with_both_rows():
    with pytest.raises(embits.InputError, match="'b' appears twice: in rows 1 and 3"):
        Vocabulary.from_words(["a", "b", "c", "b"])


def test_words_that_cannot_be_utf8_are_refused_and_never_found():
    with pytest.raises(embits.InputError, match="UTF-8"):
        Vocabulary.from_words(["a", "\ud800"])
    with pytest.raises(embits.InputError, match="strings"):
        Vocabulary.from_words([1, 2])
    assert Vocabulary.from_words(["a"]).find("\ud800") is None


def edits(a, b):
    """Edits by the book: a byte put in, taken out or replaced, or two neighbors swapped."""
    table = np.add.outer(np.arange(len(a) + 1), np.arange(len(b) + 1))
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            ways = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (x != y)]
            if i > 1 and j > 1 and a[i - 2 : i] == b[j - 2 : j][::-1]:
                ways.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(ways)
    return table[-1, -1]


@given(
    st.lists(st.text("abü", max_size=8), unique=True, max_size=40),
    st.text("abü", min_size=1, max_size=8),
)
def test_near_spellings_have_few_edits_early_rows_and_the_same_first_letter(words, word):
    if word in words:
        words.remove(word)
    limit = 1 if len(word.encode()) <= 4 else 2
    costs = {
        row: 8 * d + 12 * (other.encode()[:1] != word.encode()[:1]) + (row + 1).bit_length()
        for row, other in enumerate(words)
        if (d := edits(other.encode(), word.encode())) <= limit
    }
    suggestions = Vocabulary.from_words(words).suggest(word, most=5)
    cases = [w for w in suggestions if w in {word.upper(), word.title(), word.capitalize()}]
    near = sorted(costs, key=lambda row: (costs[row], row))
    expected = [words[row] for row in near if words[row] not in cases]
    assert [w for w in suggestions if w not in cases] == expected[: 5 - len(cases)]


def test_the_likeliest_word_is_suggested_first():
    """In the order of GloVe, where "been" is 50 times as frequent as "queen"."""
    words = ["the", "of", "been", "seen", "green", "keen", "queen", "teen", "qeer", "queens"]
    vocabulary = Vocabulary.from_words([*words, *(f"w{i}" for i in range(3000)), "qen", "geen"])
    assert vocabulary.suggest("qeen")[0] == "queen"
    assert vocabulary.suggest("Queenns")[0] == "queens"


@given(st.lists(st.text(max_size=4), max_size=30), st.lists(st.text(max_size=4), max_size=10))
def test_words_that_repeat_are_found_as_a_list_finds_them(words, others):
    vocabulary, repeated = Vocabulary.with_repeats(words)
    wanted = [*others, *words, "\ud800"]
    expected = [words.index(word) if word in words else -1 for word in wanted]
    assert vocabulary.find_many(wanted).tolist() == expected
    assert [vocabulary.find_all(word) for word in words] == [
        [row for row, other in enumerate(words) if other == word] for word in words
    ]
    assert repeated == [row for row, word in enumerate(words) if word in words[:row]]


lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=4)


@given(st.lists(lines, max_size=30))
def test_lines_are_the_words_between_line_ends(words):
    for end in ("\n", "\r\n"):
        content = "".join(word + end for word in words).encode()
        ends = (content, content.removesuffix(end.encode())) if any(words[-1:]) else (content,)
        for lines in map(WordRun.from_lines, ends if words else ()):
            assert list(lines) == words
            assert lines[1:] == words[1:]
            assert [lines[row] for row in range(-len(words), len(words))] == words * 2


def test_two_swapped_letters_are_one_edit():
    vocabulary = Vocabulary.from_words(["queens", "the", "queen", "tea"])
    assert vocabulary.suggest("teh") == ["the", "tea"]
    assert vocabulary.suggest("quene")[0] == "queen"


def test_another_letter_case_is_the_first_suggestion():
    vocabulary = Vocabulary.from_words(["BERLIM", "berlin"])
    assert vocabulary.suggest("BERLIN") == ["berlin", "BERLIM"]


def test_damaged_arrays_give_format_errors_and_nothing_else():
    good = Vocabulary.from_words(["one", "two", "three"])
    damaged = [
        (good.text, np.array([9, 3, 11], "u4"), good.order),
        (good.text, np.array([3, 6, 2**31], "u4"), good.order),
        (good.text, good.ends, np.array([7, 8, 9], "u4")),
        (good.text, good.ends, np.array([0, 0, 0], "u4")),
        (np.full_like(good.text, 0xFF), good.ends, good.order),
    ]
    for arrays in damaged:
        with pytest.raises(embits.FormatError):
            Vocabulary(*arrays).verify()
        broken = Vocabulary(*arrays)
        for ask in (
            lambda v: v.find("two"),
            lambda v: v.find_many(["two", "three", ""]),
            lambda v: v.suggest("tw"),
            lambda v: v.starting_with("", 5),
            lambda v: v.find_all("two"),
            lambda v: list(v),
        ):
            try:
                ask(broken)
            except embits.FormatError:
                continue


def test_a_row_that_does_not_exist_between_the_words_of_a_prefix_is_damage():
    good = Vocabulary.from_words(list("abcde"))
    broken = Vocabulary(good.text, good.ends, np.array([0, 1, 2, 2**31, 4], "u4"))
    with pytest.raises(embits.FormatError, match="points at row 2147483648 of 5"):
        broken.starting_with("", 1)


def test_rows_without_words_go_by_their_number():
    rows = RowNumbers(12)
    assert list(rows)[:3] == ["0", "1", "2"]
    assert rows[-1] == "11"
    assert [rows.find(w) for w in ("0", "11", "12", "-1", "01", "x", "²", "9" * 99)] == [
        0, 11, None, None, None, None, None, None,
    ]  # fmt: skip


@given(words, st.lists(st.text(max_size=12), max_size=60), st.booleans())
def test_many_words_are_found_as_in_a_dict(words, others, stored):
    vocabulary = Vocabulary.from_words(words)
    if stored and words:
        vocabulary = open_words(pack(vocabulary), len(words))
    rows = {word: row for row, word in enumerate(words)}
    wanted = [*others, *words, *others]
    for _ in range(3):  # one by one, then by the index
        assert vocabulary.find_many(wanted).tolist() == [rows.get(word, -1) for word in wanted]
    assert words == [] or "_index" in vars(vocabulary) or "_in_order" in vars(vocabulary)


@pytest.mark.parametrize("size", [32, 128])
def test_many_numbers_and_uuids_are_found_by_their_order(size):
    rng = random.Random(0)
    numbers = [rng.getrandbits(size) for _ in range(1000)]
    ids = [str(uuid.UUID(int=number)) if size == 128 else str(number) for number in numbers]
    of_fixed_size = packed._uuids if size == 128 else packed._numbers
    stored = open_words(of_fixed_size(Vocabulary.from_words(ids)), len(ids))
    assert [stored.find(each) for each in (*ids[:20], "x", "8")] == [*range(20), None, None]
    assert "_in_order" not in vars(stored)
    assert stored.find_many([*ids[::-1], "x"]).tolist() == [*range(999, -1, -1), -1]
    assert "_in_order" in vars(stored)


def test_of_a_repeated_word_the_index_finds_the_first_row():
    words, repeated = Vocabulary.with_repeats(["b", "a", "b", "a"])
    assert repeated == [2, 3]
    for _ in range(3):
        assert words.find_many(["a", "b", "c"]).tolist() == [1, 0, -1]
    assert "_index" in vars(words)
    assert pickle.loads(pickle.dumps(words)).find("a") == 1  # noqa: S301


def test_ends_that_do_not_fit_are_refused_before_an_index_is_built():
    text, ends = np.frombuffer(b"abcd", np.uint8), np.array([2, 1, 4], np.uint32)
    damaged = Vocabulary(text, ends, np.arange(3, dtype=np.uint32))
    with pytest.raises(embits.FormatError, match="ends do not fit"):
        damaged.find_many(["ab"] * 9)
