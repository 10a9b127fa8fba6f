"""WordVectors: ids of any kind are kept, and what does not fit is refused in one line."""

import uuid
from typing import Any

import numpy as np
import pytest

import embits

MATRIX = np.eye(3, 4, dtype="f4")


@pytest.mark.parametrize(
    "ids",
    [
        ["doc-1", "doc-2", "doc-3"],
        ("doc-1", "doc-2", "doc-3"),
        np.array(["doc-1", "doc-2", "doc-3"]),
        np.array(["doc-1", "doc-2", "doc-3"], dtype=object),
        [7, 8, 9],
        range(7, 10),
        np.array([7, 8, 9], dtype=np.uint8),
        [7, "doc-2", np.int32(9)],
        iter(["doc-1", "doc-2", "doc-3"]),
    ],
)
def test_ids_of_any_sequence_come_back_from_a_file(ids: Any, tmp_path: Any) -> None:
    vectors = embits.WordVectors(ids, MATRIX)
    assert vectors.words is not None
    assert {type(word) for word in vectors.words} == {str}
    embits.binarize(vectors, 8, "lsh").save(tmp_path / "bits")
    assert list(embits.load(tmp_path / "bits").words) == list(vectors.words)
    if not hasattr(ids, "__next__"):
        assert list(vectors.words) == [str(each) for each in ids]


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", "b", "a"], "the id 'a' appears twice: in rows 0 and 2"),
        ([1, 2, "1"], "the id '1' appears twice: in rows 0 and 2"),
        (np.array([5, 5, 6]), "the id '5' appears twice: in rows 0 and 1"),
        ("abc", "ids is 'abc', expected one id for each row"),
        ({"a": 0, "b": 1, "c": 2}, "ids is {'a': 0, .*, expected one id for each row"),
        (5, "ids is 5, expected one id for each row"),
        (["a", "b", 1.5], "strings or whole numbers: that of row 2 is 1.5"),
        ([True, False, 2], "strings or whole numbers: that of row 0 is True"),
        (["a", None, "c"], "strings or whole numbers: that of row 1 is None"),
        ([b"a", b"b", b"c"], "strings or whole numbers: that of row 0 is b'a'"),
        (["a", "b"], "2 words for 3 rows"),
    ],
)
def test_ids_that_cannot_name_the_rows_are_refused_at_once(ids: Any, says: str) -> None:
    with pytest.raises(embits.InputError, match=says) as caught:
        embits.WordVectors(ids, MATRIX)
    assert "\n" not in str(caught.value)
    if not isinstance(ids, int) and len(ids) == 3:
        with pytest.raises(embits.InputError, match=says):
            embits.binarize(MATRIX, 8, "lsh", ids=ids)


def test_a_dict_of_vectors_is_binarized_and_refused_as_a_matrix() -> None:
    vectors = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    assert list(embits.binarize(vectors, 8, "lsh").words) == ["a", "b"]
    with pytest.raises(embits.InputError, match=r"a dict, expected .* WordVectors\(list"):
        embits.WordVectors(None, vectors)


def test_uuids_are_ids():
    ids = [uuid.UUID(int=i) for i in range(3)]
    bits = embits.binarize(np.eye(3), n_bits=16, method="lsh", ids=ids)
    assert bits.ids().tolist() == list(map(str, ids))
