"""What a collection does, beside the states of test_states.py."""

import pickle
import threading

import numpy as np
import pytest

import embits
from embits.collection import changes
from tests.support.vectors import clustered

ROWS = clustered(300)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
CODES = CODER.encode(ROWS)


@pytest.fixture
def collection(tmp_path):
    return embits.open_collection(tmp_path / "c", CODER)


def names(n, start=0):
    return [f"w{i}" for i in range(start, start + n)]


def filled(collection, n=60, size=10, removed=()):
    """A collection of n rows in several pieces."""
    for start in range(0, n, size):
        collection.add(ROWS[start : start + size], names(size, start))
    if len(removed):
        collection.remove(list(removed))
    return collection


def test_an_empty_collection_is_searched_as_an_empty_file(collection):
    assert len(collection) == 0
    assert list(collection.words) == []
    assert collection.search(ROWS[:3], k=5).rows.shape == (3, 0)
    assert collection.most_similar(CODES[0]) == []
    assert collection.decode().shape == (0, 24)
    assert collection.byte_counts().codes == 0
    collection.compact()
    assert not collection.refresh()


def test_it_answers_as_one_file_of_the_same_rows(collection, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 0)
    monkeypatch.setattr(changes, "MAX_ADDED", 0)
    filled(collection, removed=["w0", "w13", "w14", "w59"])
    left = [i for i in range(60) if i not in (0, 13, 14, 59)]
    one = embits.BinaryVectors([f"w{i}" for i in left], CODES[left], CODER)
    assert len(collection.manifest.pieces) == 6
    for k in (1, 7, 100):
        for metric in ("hamming", "asymmetric", "decoded"):
            ours = collection.search(ROWS[:9], k, metric=metric)
            assert all(map(np.array_equal, ours, one.search(ROWS[:9], k, metric=metric)))
    ours = collection.search(ROWS[:9], 5, metric="asymmetric", rescore=15)
    theirs = one.search(ROWS[:9], 5, metric="asymmetric", rescore=15)
    assert all(map(np.array_equal, ours, theirs))
    ours = collection.search(ROWS[:2], 5, rescore=embits.Rescore(by=ROWS[left]))
    assert all(
        map(np.array_equal, ours, one.search(ROWS[:2], 5, rescore=embits.Rescore(by=ROWS[left])))
    )
    assert collection.search("w5").rows.tolist() == one.search("w5").rows.tolist()
    assert collection.most_similar("w5") == one.most_similar("w5")
    analogy = {"positive": ["w5", "w6"], "negative": ["w7"], "metric": "decoded"}
    assert collection.most_similar(**analogy) == one.most_similar(**analogy)
    assert collection.similarity("w5", "w58") == one.similarity("w5", "w58")
    assert np.array_equal(collection.decode(), one.decode())
    assert np.array_equal(collection.decode(["w58", "w3"]), one.decode(["w58", "w3"]))
    assert np.array_equal(collection.decode(rows=[5, 3]), one.decode(rows=[5, 3]))
    assert np.array_equal(collection[5:40], one[5:40])
    assert np.array_equal(collection[::-7], one[::-7])
    assert np.array_equal(list(collection), list(one))
    assert np.array_equal(list(one), one.codes)
    assert np.array_equal(collection[["w58", "w3"]], one[["w58", "w3"]])
    assert np.array_equal(collection.encode(ROWS[:3]), one.encode(ROWS[:3]))
    assert collection.key_to_index["w58"] == one.key_to_index["w58"]
    assert dict(collection.key_to_index) == dict(one.key_to_index)
    assert collection.words[-3:] == one.words[-3:]
    assert collection.words.starting_with("w1", 4) == one.words.starting_with("w1", 4)
    assert collection.byte_counts().codes == one.byte_counts().codes
    assert collection.doesnt_match(["w1", "w2", "w30"]) == one.doesnt_match(["w1", "w2", "w30"])
    with pytest.raises(embits.UnknownWordError, match=r"'W5'.*did you mean 'w5'"):
        collection["W5"]
    with pytest.raises(embits.UnknownWordError):
        collection["w13"]


def test_a_collection_is_saved_as_one_file(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 0)
    filled(collection, removed=["w0", "w13"])
    collection.save(tmp_path / "one")
    one = embits.load(tmp_path / "one", verify=True)
    assert list(one.words) == list(collection.words)
    assert np.array_equal(one.codes, np.asarray(collection.codes))


def test_rows_without_ids_are_numbered_and_no_number_is_used_twice(collection, tmp_path):
    collection.add(ROWS[:3])
    collection.add(ROWS[3:5])
    assert collection.ids(range(5)).tolist() == ["0", "1", "2", "3", "4"]
    collection.remove([1, 4])
    collection.add(ROWS[5:7])
    for _ in range(2):
        assert list(collection.words) == ["0", "2", "3", "5", "6"]
        assert collection.ids([1, 4]).tolist() == ["2", "6"]
        assert collection["6"].tolist() == collection[6].tolist() == CODES[6].tolist()
        assert "1" not in collection
        assert 1 not in collection
        assert 6 in collection
        collection.compact()
    collection.update(ROWS[10:11], [2])
    assert collection.ids(range(5), int).tolist() == [0, 3, 5, 6, 2]
    with pytest.raises(embits.UnknownWordError, match="the numbers of the rows as added"):
        collection["7"]
    collection.save(tmp_path / "one")
    assert list(embits.load(tmp_path / "one").words) == ["0", "3", "5", "6", "2"]


def test_the_numbers_of_a_numbered_collection_are_ids_and_rows_have_a_name(collection):
    collection.add(ROWS[:8])
    collection.remove([0, 3])
    ids = collection.ids(range(len(collection)))
    assert all(each in collection for each in ids)
    for row, each in enumerate(ids):
        for key in (each, int(each)):
            assert collection.search(ROWS[0], where=[key]).rows.tolist() == [row]
            assert (
                row not in collection.search(ROWS[0], where=collection.select(exclude=[key])).rows
            )
            assert collection.subset([key]).codes.tolist() == [collection.codes[row].tolist()]
            assert np.array_equal(collection.decode(key), collection.decode(rows=[row])[0])
        assert collection.search(ROWS[0], where=collection.select(rows=[row])).rows.tolist() == [
            row
        ]
    assert (
        len(collection.search(ROWS[0], where=collection.select(exclude=[0, 3])).rows) == 6
    )  # removed before
    collection.remove(ids[:2])
    collection.update(ROWS[:1], [int(ids[2])])
    assert collection.ids(range(4), int).tolist() == [5, 6, 7, 4]


def test_numbers_that_follow_each_other_take_no_space(collection):
    collection.add(ROWS[:100])
    collection.add(ROWS[100:200])
    collection.compact()
    assert collection.byte_counts().words == 0
    assert collection.ids([199]).tolist() == ["199"]


def test_the_kinds_of_rows_that_can_be_added(collection):
    collection.add(embits.WordVectors(["a", "b"], ROWS[:2]))
    collection.add(CODES[2:3], ids=["c"])
    collection.add(embits.BinaryVectors(["d"], CODES[3:4], CODER))
    collection.add(ROWS[4:6].tolist(), ids=np.array([7, 8]))
    collection.add(ROWS[:0], ids=[])
    assert list(collection.words) == ["a", "b", "c", "d", "7", "8"]
    assert np.array_equal(np.asarray(collection.codes), CODES[:6])


def test_small_pieces_are_merged_as_rows_are_added(collection):
    for row in range(100):
        collection.add(ROWS[row : row + 1], [f"w{row}"])
        assert len(collection.manifest.pieces) <= 8
    assert list(collection.words) == names(100)
    assert np.array_equal(np.asarray(collection.codes), CODES[:100])


def test_large_pieces_are_left_as_they_are(collection, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 20)
    monkeypatch.setattr(changes, "MAX_ADDED", 0)
    filled(collection, n=100, size=5)
    assert [piece.rows for piece in collection.manifest.pieces] == [20] * 5


def test_compaction_keeps_order_and_answers(collection, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 0)
    filled(collection, removed=["w1", "w30"])
    before = list(collection.words), collection.search(ROWS[:5], 9)
    collection.compact()
    assert len(collection.manifest.pieces) == 1
    assert collection.manifest.pieces[0].removed is None
    assert list(collection.words) == before[0]
    assert all(map(np.array_equal, collection.search(ROWS[:5], 9), before[1]))
    generation = collection.manifest.generation
    collection.compact()
    assert collection.manifest.generation == generation, "nothing to do"


def test_all_rows_can_be_removed_and_added_again(collection):
    filled(collection, n=20).remove(names(20))
    assert len(collection) == 0
    assert collection.manifest.pieces == ()
    filled(collection, n=10)
    assert list(collection.words) == names(10)


def test_a_reader_sees_what_it_opened_until_it_refreshes(collection):
    filled(collection, n=20)
    reader = embits.load(collection.path)
    snapshot = reader.snapshot()
    collection.remove(["w3"])
    collection.compact()
    assert len(reader) == 20
    assert reader["w3"].tolist() == CODES[3].tolist()
    assert reader.refresh()
    assert not reader.refresh()
    assert "w3" not in reader
    assert "w3" in snapshot
    assert snapshot.search("w3", 1).rows.tolist() == [3]


def test_opening_again_needs_no_coder_but_takes_the_same(collection, tmp_path):
    filled(collection, n=10)
    assert len(embits.open_collection(collection.path)) == 10
    collection.save(tmp_path / "one")
    assert len(embits.open_collection(collection.path, CODER)) == 10
    assert len(embits.open_collection(collection.path, tmp_path / "one")) == 10
    new = embits.open_collection(tmp_path / "new", tmp_path / "one")
    new.add(embits.load(tmp_path / "one"))
    assert list(new.words) == names(10)


def test_threads_add_to_one_object(collection):
    def add(name):
        for i in range(5):
            collection.add(ROWS[i : i + 1], [f"{name}-{i}"])

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(collection) == 20
    assert len(set(collection.words)) == 20


def test_another_process_opens_the_same_folder(collection):
    filled(collection, n=20)
    there = pickle.loads(pickle.dumps(collection))  # noqa: S301
    assert list(there.words) == names(20)
    assert there.path == collection.path


def test_ids_of_many_languages_are_merged(collection):
    words = ["", "Zürich", "東京", "\U0001f600", "a" * 500, "nul\0"]
    for word in words:
        collection.add(embits.WordVectors([word], ROWS[:1]))
    collection.remove(["東京"])
    collection.compact()
    left = [word for word in words if word != "東京"]
    assert list(embits.load(collection.path, verify=True).words) == left
    assert [collection.words.find(word) for word in left] == list(range(5))


def test_a_read_only_folder_is_searched(collection):
    filled(collection, n=10)
    (collection.path / "_lock").unlink()
    assert len(embits.load(collection.path)) == 10
    assert not (collection.path / "_lock").exists()


LONG = ROWS * np.exp(np.linspace(-2, 2, len(ROWS)))[:, np.newaxis]


def test_lengths_stay_with_their_rows_through_every_change(collection, monkeypatch):
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 20)
    collection.add(LONG[:10], names(10), lengths=True)
    collection.add(LONG[10:40], names(30, 10))  # as the first rows
    collection.update(LONG[100:103], ["w3", "w12", "w39"])
    collection.upsert(LONG[103:105], ["w4", "new"])
    collection.remove(["w0", "w20"])
    rows = {f"w{i}": i for i in range(40)} | {"w3": 100, "w12": 101, "w39": 102, "w4": 103}
    rows |= {"new": 104}
    for _ in range(2):
        for each in (collection, embits.load(collection.path, verify=True), collection.snapshot()):
            expected = np.linalg.norm(LONG[[rows[word] for word in each.words]], axis=1)
            np.testing.assert_allclose(each.lengths, expected, rtol=0.03)
        found = collection.search(LONG[104], k=1, metric="dot")
        assert found.scores > 0
        collection.compact()
    assert len(collection.lengths) == 39


def test_rows_have_lengths_in_all_pieces_or_in_none(collection, tmp_path):
    with_lengths = embits.BinaryVectors(names(5), CODES[:5], CODER, lengths=np.arange(1.0, 6.0))
    collection.add(with_lengths)
    np.testing.assert_allclose(collection.lengths, np.arange(1.0, 6.0), rtol=0.03)
    with pytest.raises(embits.InputError, match="have lengths: add floats"):
        collection.add(CODES[5:6], ["x"])
    collection.add(LONG[5:6], ["x"])
    other = embits.open_collection(tmp_path / "other", CODER)
    other.add(ROWS[:3], ["a", "b", "c"])
    with pytest.raises(embits.InputError, match="have no lengths"):
        other.add(with_lengths)
    other.remove(["a", "b", "c"])
    other.add(with_lengths)  # the first rows again
    assert len(other.lengths) == 5
    piece = other.path / other.manifest.pieces[0].file
    assert b'"format_version":"3"' in piece.read_bytes()[:4000], "older versions refuse it"
