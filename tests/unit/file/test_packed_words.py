"""Words of files of version 2: the same answers as those of version 1."""

import itertools
import re
import uuid

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import embits
from embits.errors import FormatError
from embits.ids.keys import encoded_words, number_keys
from embits.ids.packed import (
    MAX_CODE_BITS,
    STEP,
    NumberIds,
    PackedVocabulary,
    UuidIds,
    check_codes,
    code_lengths,
    code_table,
    cycle_links,
    open_words,
    pack,
    pack_numbers,
    packed_size,
    to_bytes,
    unpack_numbers,
)
from embits.ids.vocabulary import Vocabulary

ANY = st.lists(st.text(max_size=12), unique=True, max_size=150)
ALIKE = st.lists(st.text("abü", max_size=9), unique=True, max_size=150)
LONG = st.lists(st.text("ab", min_size=240, max_size=520), unique=True, max_size=40)
NUMBERS = st.lists(st.integers(0, 2**64 - 1).map(str), unique=True, max_size=80)
UUIDS = st.lists(st.uuids().map(str), unique=True, max_size=80)
ids = st.one_of(ANY, ALIKE, LONG, NUMBERS, UUIDS, NUMBERS.map(sorted), UUIDS.map(sorted))


def stored(words):
    """The words as a file of version 2 has them."""
    return open_words(pack(Vocabulary.from_words(words)), len(words))


@given(ids, st.text(max_size=12))
@settings(max_examples=200)
@example([], "")
@example([""], "")
@example(["a"], "b")
@example([str(i) for i in range(100)], "7")
@example([str(2**64 + i) for i in range(3)], "7")
@example(["0", "00"], "000")
def test_stored_words_are_those_that_were_packed(words, other):
    vocabulary = stored(words)
    rows = {word: row for row, word in enumerate(words)}
    assert list(vocabulary) == words
    assert [vocabulary[row] for row in range(len(words))] == words
    assert vocabulary[::-2] == words[::-2]
    assert [vocabulary.find(word) for word in words] == list(range(len(words)))
    assert vocabulary.find(other) == rows.get(other)
    wanted = [*words, other, "\ud800", other + "\0"]
    assert vocabulary.find_many(wanted).tolist() == [rows.get(word, -1) for word in wanted]
    assert [vocabulary.find_all(word) for word in words] == [[row] for row in range(len(words))]
    vocabulary.verify()


@given(ALIKE, st.lists(st.text("abcü", max_size=9), max_size=150), st.booleans())
@settings(max_examples=200)
@example([f"{i:03}" for i in range(0, 300, 3)], [f"{i:03}" for i in range(300)], True)
@example(["b"], ["c", "b", "a", "b"], False)
def test_words_looked_up_together_are_found_in_any_order(words, others, ascending):
    wanted = [*others, *words, *others[::-1]]
    if ascending:
        wanted.sort(key=str.encode)
    rows = {word: row for row, word in enumerate(words)}
    found = stored(words).find_many(wanted).tolist()
    assert found == [rows.get(word, -1) for word in wanted]


@given(ids, st.text("abü0123", max_size=4))
@settings(max_examples=100)
def test_both_versions_answer_alike(words, asked):
    plain, packed = Vocabulary.from_words(words), stored(words)
    for each in (asked, *(word[: len(word) // 2] for word in words[:5])):
        assert packed.starting_with(each, 4) == plain.starting_with(each, 4)
        assert packed.suggest(each) == plain.suggest(each)
    assert packed.text.tobytes() == plain.text.tobytes()
    assert packed.ends.tolist() == plain.ends.tolist()
    assert packed.order.tolist() == plain.order.tolist()
    rows = np.arange(len(words))[::-1].reshape(1, -1)
    assert packed.names(rows).tolist() == plain.names(rows).tolist()


@given(ids, st.slices(40))
def test_slices_are_the_same_before_and_after_the_words_are_unpacked(words, part):
    vocabulary = stored(words)
    before = vocabulary[part]
    assert len(vocabulary.ends) == len(words)
    assert before == vocabulary[part] == words[part]


@given(ids)
def test_the_same_words_give_the_same_tensors(words):
    once, twice = pack(Vocabulary.from_words(words)), pack(stored(words))
    assert {k: v.tobytes() for k, v in once.items()} == {k: v.tobytes() for k, v in twice.items()}


@pytest.mark.parametrize("sizes", [(65_536,), (65_536, 65_535, 1), (254, 255, 508, 509, 253)])
def test_ids_may_be_long(sizes):
    words = [letter * size for size in sizes for letter in ("x", "ü")] + ["x" * 300 + "y"]
    assert list(stored(words)) == words
    assert [stored(words).find(word) for word in words] == list(range(len(words)))


def test_thousands_of_words_in_any_order_of_rows():
    words = ["".join(each) for each in itertools.product("abcdefgh", repeat=4)]
    rows = np.arange(4096)
    shuffled = np.random.default_rng(0).permutation(4096)
    transposed = rows.reshape(64, 64).T.ravel()
    for order in (rows, rows[::-1], transposed, (rows * 31 + 7) % 4096, shuffled):
        given = [words[i] for i in order]
        vocabulary = stored(given)
        assert [vocabulary[row] for row in range(4096)] == given
        assert vocabulary.find_many(given).tolist() == list(range(4096))
        vocabulary.verify()


def test_words_take_a_third_of_their_former_bytes():
    words = [f"word{i * 7919 % 20_000}" for i in range(20_000)]
    plain = Vocabulary.from_words(words)
    assert sum(stored(words).byte_sizes) < sum(plain.byte_sizes) / 3
    assert sum(stored(sorted(words)).byte_sizes) < sum(plain.byte_sizes) / 6


def test_numbers_and_uuids_are_packed():
    count = [str(i) for i in range(10, 5_010)]
    assert isinstance(stored(count), NumberIds)
    assert sum(stored(count).byte_sizes) == 4
    squares = [str(i * i) for i in range(5_000)]
    assert sum(stored(squares).byte_sizes) == 4 * 5_000
    many = [str(uuid.UUID(int=i * 2**64 + i)) for i in range(5_000)]
    assert isinstance(stored(many), UuidIds)
    assert sum(stored(many).byte_sizes) == 16 * 5_000


@pytest.mark.parametrize(
    "words",
    [["1", "02"], ["1", "-2"], ["1", ""], ["1", "1.0"], ["1", "²"], ["1", str(2**64)], ["1", "１"],
     [str(uuid.UUID(int=1)) + "A"], ["{" + str(uuid.UUID(int=1))[1:]], [uuid.UUID(int=1).hex]],
)  # fmt: skip
def test_what_is_not_quite_a_number_or_uuid_is_text(words):
    assert isinstance(stored(words), PackedVocabulary)
    assert list(stored(words)) == words


@given(st.lists(st.integers(0, 2**40 - 1), max_size=50), st.integers(40, 50), st.data())
def test_packed_numbers_are_unpacked(numbers, width, data):
    packed = pack_numbers(np.array(numbers, np.uint64), width)
    assert len(packed) == packed_size(len(numbers), width)
    start = data.draw(st.integers(0, len(numbers)))
    stop = data.draw(st.integers(start, len(numbers)))
    assert unpack_numbers(packed, width, np.arange(start, stop)).tolist() == numbers[start:stop]
    whole = int.from_bytes(packed.tobytes(), "little")
    assert [whole >> width * i & ((1 << width) - 1) for i in range(len(numbers))] == numbers


@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=255))
def test_codes_are_prefix_codes_as_short_as_huffman_makes_them(counts):
    lengths = code_lengths(np.array(counts))
    used = [length for length in lengths.tolist() if length]
    assert max(used, default=0) <= MAX_CODE_BITS
    assert sum(2.0**-length for length in used) <= 1
    codes = [f"{entry >> 4:0{entry & 15}b}" for entry in code_table(lengths).tolist() if entry & 15]
    assert not any(a != b and b.startswith(a) for a in codes for b in codes)
    assert len(set(codes)) == len(used) == sum(count > 0 for count in counts)
    check_codes(to_bytes(lengths), 1)


def test_rare_symbols_get_codes_of_15_bits_at_most():
    fibonacci = [1, 1]
    while len(fibonacci) < 60:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    assert code_lengths(np.array(fibonacci)).max() == MAX_CODE_BITS


@given(st.permutations(range(100)))
def test_links_name_the_link_before_on_the_cycle(rows):
    for place, link in zip(range(0, 100, STEP), cycle_links(np.array(rows)), strict=True):
        at = rows[link]
        while at % STEP:
            at = rows[at]
        assert at == place


WORDS = [f"{a}{b}" for a in "abcdefghij" for b in range(30)][::-1]


@given(st.integers(0, 2**32), st.sampled_from(["words", "word_codes", "word_starts", "word_rows",
                                               "word_links"]), st.booleans())  # fmt: skip
@settings(max_examples=300)
def test_damaged_arrays_raise_format_errors_and_nothing_else(seed, name, is_noise):
    rng = np.random.default_rng(seed)
    tensors = {key: array.copy() for key, array in pack(Vocabulary.from_words(WORDS)).items()}
    array = tensors[name]
    at = rng.integers(0, len(array), 1 + rng.integers(0, 4))
    array[at] = rng.integers(0, 256, len(at))
    if is_noise:
        tensors[name] = rng.integers(0, 256, len(array), dtype=np.uint8)

    def ask(question):
        try:
            return question()
        except FormatError:
            return None

    words = ask(lambda: open_words(tensors, len(WORDS)))
    if words is None:
        return
    ask(lambda: list(words))
    ask(lambda: [words[row] for row in range(len(WORDS))])
    ask(lambda: [words.find(word) for word in WORDS])
    ask(lambda: words.find_many(WORDS))
    ask(lambda: words.find_many(sorted(WORDS)))
    ask(lambda: words.starting_with("a", 5))
    ask(lambda: words.suggest("a9b"))
    ask(words.verify)
    assert words._core.near(b"a1", 1, 3) is not None


@pytest.mark.parametrize("name", ["words", "word_codes", "word_starts", "word_rows", "word_links"])
@pytest.mark.parametrize("change", ["missing", "shorter", "longer", "floats", "flat"])
def test_arrays_that_do_not_fit_are_refused_when_opened(name, change):
    tensors = pack(Vocabulary.from_words(WORDS))
    array = tensors.pop(name)
    changed = {"shorter": array[:-1], "longer": np.append(array, array[:1]),
               "floats": array.astype("f4"), "flat": array.reshape(1, -1)}  # fmt: skip
    if change != "missing":
        tensors[name] = changed[change]
    if name == "words" and change in ("shorter", "longer"):  # as many bits to an offset
        with pytest.raises(FormatError):
            open_words(tensors, len(WORDS)).verify()
        return
    with pytest.raises(FormatError):
        open_words(tensors, len(WORDS))


def test_verify_finds_a_wrong_order_and_wrong_links():
    for name in ("word_rows", "word_links"):
        tensors = {key: array.copy() for key, array in pack(Vocabulary.from_words(WORDS)).items()}
        tensors[name][3] ^= 1
        with pytest.raises(FormatError, match="order"):
            open_words(tensors, len(WORDS)).verify()


def test_a_file_of_version_1_is_saved_as_version_2_with_the_same_answers(tmp_path):
    coder = embits.binarize(np.eye(20), 8, "lsh").coder
    codes = np.arange(len(WORDS), dtype=np.uint8).reshape(-1, 1)
    bits = embits.BinaryVectors(WORDS, codes, coder)
    bits.save(tmp_path / "once")
    loaded = embits.load(tmp_path / "once", verify=True)
    loaded.save(tmp_path / "twice")
    assert (tmp_path / "once").read_bytes() == (tmp_path / "twice").read_bytes()
    assert loaded.most_similar("a1") == bits.most_similar("a1")
    assert loaded.nbytes == bits.nbytes


TOLD = st.one_of(
    st.integers(0, 2**70).map(str),
    st.from_regex("[0-9]{0,21}", fullmatch=True),
    st.text("0123456789abcdefg-", max_size=37),
    st.uuids().map(str),
    st.text(max_size=40),
)


@given(st.lists(TOLD))
@example([str(2**64 - 1), str(2**64), "99999999999999999999", "30000000000000000000"])
@example(["00000000-0000-0000-0000-000000000000", "0000000000000-0000-0000-000000000000"])
def test_numbers_and_uuids_are_told_from_words_as_python_tells_them(words):
    text, ends = encoded_words(words)
    numbers, are_numbers = number_keys(text, ends)
    expected = [word.isascii() and word.isdigit() and str(int(word)) == word for word in words]
    expected = [ok and int(word) < 2**64 for ok, word in zip(expected, words, strict=True)]
    assert are_numbers.tolist() == expected
    known = [int(word) for word, ok in zip(words, expected, strict=True) if ok]
    assert numbers[are_numbers].tolist() == known
    pattern = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
    uuids, are_uuids = UuidIds.keys_of(text, ends)
    assert are_uuids.tolist() == [bool(pattern.fullmatch(word)) for word in words]
    found = [uuid.UUID(word).bytes for word in words if pattern.fullmatch(word)]
    assert uuids[are_uuids].tobytes() == b"".join(found)
