"""pairs_within and duplicates, next to a comparison of all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.errors import InputError, TooManyResultsError
from embits.search import (
    PairsResult,
    duplicates,
    iter_pairs_within,
    pairs,
    pairs_within,
    within,
)
from embits.search.stored import RowMap, StoredCodes


def near_copies(seed, n, n_bits):
    """Codes with copies, near copies, complements and bits that are nearly constant."""
    rng = np.random.default_rng(seed)
    bits = rng.random((n, n_bits)) < rng.random(n_bits)
    copied = rng.integers(0, max(n // 3, 1), n)
    bits = np.where(rng.random((n, 1)) < 0.7, bits[copied], bits) if n else bits
    bits ^= rng.random((n, n_bits)) < rng.choice([0, 0.02, 0.2])
    bits ^= rng.random((n, 1)) < 0.1  # complements
    return np.packbits(bits, axis=1)


def all_pairs(codes, distance):
    differing = np.bitwise_count(codes[:, np.newaxis] ^ codes).sum(axis=2, dtype=int)
    first, second = np.nonzero(np.triu(differing <= distance, 1))
    return first.tolist(), second.tolist(), differing[first, second].tolist()


def groups_of(n, first, second):
    """Connected components, by search from row to row."""
    neighbors = {row: set() for row in range(n)}
    for a, b in zip(first, second, strict=True):
        neighbors[a].add(b)
        neighbors[b].add(a)
    seen, groups = set(), []
    for row in range(n):
        group, waiting = set(), [row]
        while waiting:
            at = waiting.pop()
            if at not in seen:
                seen.add(at)
                group.add(at)
                waiting += neighbors[at]
        if len(group) > 1:
            groups.append(sorted(group))
    return groups


def as_lists(found):
    return tuple(array.tolist() for array in found)


@pytest.fixture
def small_sizes(monkeypatch):
    """Limits so small that few rows need blocks, large buckets and tables."""
    monkeypatch.setattr(pairs, "_MIN_ROWS", 2)
    monkeypatch.setattr(pairs, "_SCAN_NS", 1e9)
    monkeypatch.setattr(pairs, "_MAX_BUCKET", 5)
    monkeypatch.setattr(pairs, "_MAX_COMPARED", 20)
    monkeypatch.setattr(pairs, "_MAX_FOUND", 10)
    monkeypatch.setattr(pairs, "BLOCK_PAIRS", 7)


CASES = {
    "seed": st.integers(0, 2**32),
    "n": st.integers(0, 120),
    "n_bits": st.integers(1, 300),
    "share": st.floats(0, 1),
    "threads": st.sampled_from([None, 1, 2]),
}


@settings(max_examples=80, deadline=None)
@given(**CASES)
def test_pairs_are_those_of_a_comparison_of_all(seed, n, n_bits, share, threads):
    codes = near_copies(seed, n, n_bits)
    distance = round(share * n_bits)
    found = pairs_within(codes, distance, threads)
    assert [array.dtype for array in found] == [np.int64, np.int64, np.int32]
    assert as_lists(found) == all_pairs(codes, distance)


@pytest.mark.parametrize("distance", [0, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("n_bits", [7, 8, 24, 64, 100, 192])
def test_tables_and_blocks_give_the_same_pairs(small_sizes, n_bits, distance):
    for seed in range(6):
        codes = near_copies(seed, 150, n_bits)
        expected = all_pairs(codes, distance)
        found = pairs_within(codes, distance, threads=1 + seed % 2)
        assert as_lists(found) == expected
        blocks = [as_lists(block) for block in iter_pairs_within(codes, distance)]
        assert max((len(block[0]) for block in blocks), default=0) <= 7 + 150
        assert sorted(pair for block in blocks for pair in zip(*block, strict=True)) == list(
            zip(*expected, strict=True)
        )


@pytest.mark.parametrize("distance", [1, 3])
def test_tables_of_many_rows_give_the_pairs_of_within(simd, monkeypatch, distance):
    monkeypatch.setattr(pairs, "_SCAN_NS", 1e9)
    codes = near_copies(distance, 30_000, 40)
    assert len(pairs.best_blocks(codes, distance)) > 0
    found = within(codes, codes, distance)
    queries = np.repeat(np.arange(len(codes)), np.diff(found.offsets))
    upper = queries < found.rows
    order = np.lexsort((found.rows[upper], queries[upper]))
    expected = PairsResult(queries[upper], found.rows[upper], found.distances[upper])
    got = pairs_within(codes, distance)
    for ours, theirs in zip(got, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs[order])


@settings(max_examples=60, deadline=None)
@given(**CASES)
def test_groups_are_connected_components(seed, n, n_bits, share, threads):
    codes = near_copies(seed, n, n_bits)
    distance = round(share * share * n_bits)
    offsets, rows, distances = duplicates(codes, distance, threads)
    first, second, _ = all_pairs(codes, distance)
    groups = groups_of(n, first, second)
    assert [group.tolist() for group in np.split(rows, offsets[1:-1])] == (groups or [[]])
    expected = [
        int(np.bitwise_count(codes[row] ^ codes[group[0]]).sum())
        for group in groups
        for row in group
    ]
    assert distances.tolist() == expected


def test_progress_is_reported(small_sizes):
    calls = []
    duplicates(near_copies(0, 300, 64), 2, progress=lambda done, total: calls.append((done, total)))
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert 0 < calls[-1][0] <= calls[-1][1]
    assert len({total for _, total in calls}) == 1


def test_many_joins_of_large_groups(monkeypatch, small_sizes):
    rows = np.random.default_rng(0).permutation(600)
    chain = np.packbits(np.arange(600) < rows[:, np.newaxis], axis=1)  # neighbors differ in one bit
    monkeypatch.setattr(pairs, "_MAX_TABLES", 3)
    offsets, members, distances = duplicates(chain, 1)
    assert offsets.tolist() == [0, 600]
    assert members.tolist() == list(range(600))
    assert distances.tolist() == np.abs(rows - rows[0]).tolist()


def test_thousands_of_identical_rows_are_a_group_and_an_error_as_pairs():
    codes = np.zeros((20_000, 8), np.uint8)
    codes[7] = 255
    message = (
        "more than 1,000,000 pairs are within distance 2: choose a smaller distance, take the "
        "groups of duplicates or the blocks of iter_pairs_within, or pass a larger max_results"
    )
    with pytest.raises(TooManyResultsError, match=message):
        pairs_within(codes, 2, max_results=1_000_000)
    groups = duplicates(codes, 2)
    assert groups.offsets.tolist() == [0, 19_999]
    assert 7 not in groups.rows
    first = next(iter_pairs_within(codes, 2))
    assert len(first.first) < 2_000_000


def test_codes_that_share_a_hash_are_told_apart(monkeypatch):
    codes = near_copies(0, 200, 100)
    expected = all_pairs(codes, 3)
    monkeypatch.setattr(pairs, "_factors", lambda: np.zeros(4, np.uint64))
    assert as_lists(pairs_within(codes, 3)) == expected


def test_pairs_that_do_not_fit_into_64_bits_are_sorted_as_well():
    blocks = [
        PairsResult(np.array([first]), np.array([second]), np.array([2], np.int32))
        for first, second in ((2**39, 2**39 + 1), (5, 9), (5, 7))
    ]
    found = pairs.sorted_pairs(blocks, 2**40, 3)
    assert as_lists(found) == ([5, 5, 2**39], [7, 9, 2**39 + 1], [2, 2, 2])
    assert as_lists(pairs.sorted_pairs([], 2**40, 3)) == ([], [], [])
    with pytest.raises(TooManyResultsError):
        pairs.sorted_pairs(blocks, 2**40, 3, 2)


def test_every_bit_is_in_one_block_and_even_bits_are_spread():
    rng = np.random.default_rng(0)
    share = np.where(np.arange(64) < 16, 0.5, 0.001)
    sample = np.packbits(rng.random((2000, 64)) < share, axis=1)
    blocks = np.unpackbits(pairs.balanced_blocks(sample, 4), axis=1)
    assert (blocks.sum(axis=0) == 1).all()
    assert blocks[:, :16].sum(axis=1).tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize("search", [pairs_within, iter_pairs_within, duplicates])
@pytest.mark.parametrize(
    ("distance", "threads", "message"),
    [
        (-1, None, "distance is -1"),
        (65, None, "distance is 65"),
        (0.5, None, "distance is 0.5"),
        (1, 0, "threads is 0"),
    ],
)
def test_wrong_arguments_are_refused(search, distance, threads, message):
    with pytest.raises(InputError, match=message):
        search(np.zeros((3, 8), np.uint8), distance, threads)


def test_binary_vectors_have_the_same_results():
    vectors = np.random.default_rng(0).normal(size=(300, 12))
    vectors = np.vstack([vectors, vectors[:50] + 0.01, vectors[:5]])
    bits = embits.binarize(vectors, n_bits=61, method="lsh")
    expected = all_pairs(bits.codes, 3)
    assert as_lists(bits.pairs_within(3)) == expected
    assert sum(len(block.first) for block in bits.iter_pairs_within(3)) == len(expected[0])
    assert as_lists(bits.duplicates(3)) == as_lists(duplicates(bits.codes, 3))
    for search in (bits.pairs_within, bits.iter_pairs_within, bits.duplicates):
        with pytest.raises(InputError, match="distance is 62"):
            search(62)


def test_codes_in_pieces_are_searched_as_one_array():
    codes = near_copies(0, 300, 64)
    removed = np.array([0, 5, 150, 299])
    pieces = StoredCodes(
        [codes[:100], codes[100:101], codes[101:]], RowMap([100, 1, len(codes) - 101], removed)
    )
    left = np.delete(codes, removed, axis=0)
    for queries in (left[:20], left[7]):
        assert as_lists(within(pieces, queries, 9)) == as_lists(within(left, queries, 9))
    assert as_lists(pairs_within(pieces.in_row_order(), 4)) == all_pairs(left, 4)
    assert as_lists(duplicates(pieces.in_row_order(), 4)) == as_lists(duplicates(left, 4))


def test_the_pairs_of_identical_rows_may_be_as_many_as_allowed():
    codes = np.zeros((4, 8), np.uint8)
    assert len(pairs_within(codes, 0, max_results=6).first) == 6
    with pytest.raises(TooManyResultsError):
        pairs_within(codes, 0, max_results=5)
