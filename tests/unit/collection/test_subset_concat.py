"""Subsets of rows, and files joined into one."""

import numpy as np
import pytest

import embits
from tests.support.vectors import clustered

ROWS = clustered(20)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
CODES = CODER.encode(ROWS)


def names(n):
    return [f"w{i}" for i in range(n)]


@pytest.fixture
def bits():
    return embits.BinaryVectors(names(20), CODES[:20], CODER)


def test_a_subset_has_the_rows_that_were_chosen_in_their_order(bits):
    for chosen in ({"which": ["w7", "w2"]}, {"rows": [7, 2]}, {"rows": np.array([7, 2])}):
        part = bits.subset(**chosen)
        assert list(part.words) == ["w7", "w2"]
        assert np.array_equal(part.codes, CODES[[7, 2]])
    assert list(bits.subset(np.arange(20) % 7 == 3).words) == ["w3", "w10", "w17"]
    assert len(bits.subset([])) == 0
    numbered = embits.BinaryVectors(None, CODES[:20], CODER)
    assert list(numbered.subset([4, 2]).words) == ["4", "2"]
    with pytest.raises(embits.InputError, match="expected ids or rows=, one of them"):
        bits.subset(["w7"], rows=[7])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"which": ["w7", "w99"]}, "no word or id 'w99'"),
        ({"rows": [20]}, "no row 20"),
        ({"rows": [-1]}, "no row -1"),
        ({"rows": [3, 3]}, "'w3' appears twice"),
        ({"which": [True, False]}, "a mask of 2 rows, but there are 20"),
        ({"which": [1.5]}, "expected ids or a mask"),
        ({"rows": [1.5]}, "expected row numbers"),
        ({"which": [["w1"]]}, "shape"),
    ],
)
def test_a_subset_of_rows_that_are_not_there_is_refused(bits, chosen, message):
    with pytest.raises(embits.EmbitsError, match=message):
        bits.subset(**chosen)


def test_files_are_joined(bits, tmp_path):
    joined = embits.concat([bits.subset(["w3"]), bits.subset(["w1", "w9"])])
    assert list(joined.words) == ["w3", "w1", "w9"]
    assert np.array_equal(joined.codes, CODES[[3, 1, 9]])
    numbered = embits.BinaryVectors(None, CODES[:3], CODER)
    assert embits.concat([numbered, numbered]).ids([5]).tolist() == ["5"]
    collection = embits.open_collection(tmp_path / "c", CODER)
    collection.add(ROWS[:10], names(10))
    collection.remove(["w0"])
    assert len(embits.concat([collection, bits.subset(["w15"])])) == 10


def test_files_that_do_not_fit_are_not_joined(bits):
    other = embits.RandomHyperplanes(n_bits=64, random_state=1).fit(ROWS)
    with pytest.raises(embits.InputError, match="fitted differently"):
        embits.concat([bits, embits.BinaryVectors(["x"], CODES[:1], other)])
    wide = embits.RandomHyperplanes(n_bits=128).fit(ROWS)
    with pytest.raises(embits.InputError, match=r"128 bits .*, expected lsh, 64 bits"):
        embits.concat([bits, embits.BinaryVectors(["x"], wide.encode(ROWS[:1]), wide)])
    with pytest.raises(embits.InputError, match="'w3' appears twice"):
        embits.concat([bits, bits.subset(["w3"])])
    with pytest.raises(embits.InputError, match="some of the files have ids"):
        embits.concat([bits, embits.BinaryVectors(None, CODES[:1], CODER)])
    with pytest.raises(embits.InputError, match="at least one"):
        embits.concat([])
