"""Jobs on large files: what they refuse, and the memory they take."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import embits
from embits.errors import InputError, ReadError
from embits.ids.keys import RowNumbers
from embits.jobs import stream
from tests.support.streaming import in_blocks, noted
from tests.support.vectors import clustered

# -- a coder that breaks its contract ----------------------------------------------------


class Forgetful(embits.RandomHyperplanes):
    """Fits its decoder on all rows, and leaves some out of `rows_for_fit`."""

    def rows_for_fit(self, n, dims):
        return np.delete(np.arange(n), [7, 1000])


class Forgotten(embits.RandomHyperplanes):
    """Is not registered."""


class Unordered(embits.RandomHyperplanes):
    def rows_for_fit(self, n, dims):
        return np.arange(n)[::-1]


@pytest.mark.parametrize(
    ("coder", "message"),
    [(Forgetful(16), "reads row 7, which its rows_for_fit leaves out"),
     (Unordered(16), "rows_for_fit of Unordered must return row numbers from 0 to 2999")],
)  # fmt: skip
def test_a_row_that_rows_for_fit_leaves_out_is_never_replaced_by_another(
    tmp_path, monkeypatch, coder, message
):
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(3000, dims=6))
    with pytest.raises(embits.errors.TrainingError, match=message):
        embits.binarize(tmp_path / "m.npy", coder=coder)


# -- what may be replaced ----------------------------------------------------


@pytest.mark.parametrize("large", [False, True])
def test_an_input_or_a_foreign_file_is_not_replaced(tmp_path, monkeypatch, large):
    if large:
        in_blocks(monkeypatch)
    matrix, notes = tmp_path / "self.npy", tmp_path / "notes.md"
    words, fitted = tmp_path / "words.txt", tmp_path / "fitted"
    np.save(matrix, clustered(30, dims=6))
    notes.write_text("mine")
    words.write_text("\n".join(f"w{i}" for i in range(30)))
    embits.binarize_to_file(matrix, fitted, 16, "lsh")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for target in (matrix, words):
        with pytest.raises(InputError, match="is an input"):
            embits.binarize_to_file(matrix, target, 16, "lsh", words=words, overwrite=True)
    for target in (matrix, fitted):
        with pytest.raises(InputError, match="is an input"):
            embits.encode_to_file(fitted, matrix, target, overwrite=True)
    for job, coder in ((embits.binarize_to_file, ()), (embits.encode_to_file, (fitted,))):
        with pytest.raises(InputError, match=r"notes\.md exists: choose another"):
            job(*coder, matrix, notes)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(embits.encode_to_file(fitted, matrix, notes, overwrite=True)) == 30


# -- bad input ----------------------------------------------------


def test_a_bad_row_is_named_by_its_line_and_nothing_is_left(tmp_path, monkeypatch):
    in_blocks(monkeypatch, block=64)
    lines = [f"w{i} 1 {i}" for i in range(300)]
    lines[200] = "w200 1 oops"
    (tmp_path / "v.txt").write_text("\n".join(lines))
    with pytest.raises(ReadError, match=r"v\.txt, line 201: found 'oops', expected 2 numbers"):
        embits.binarize_to_file(tmp_path / "v.txt", tmp_path / "out", 8, "lsh")
    matrix = clustered(300, dims=4)
    matrix[250, 1] = np.nan
    np.save(tmp_path / "m.npy", matrix)
    with pytest.raises(ReadError, match="row 250: found nan or inf"):
        embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "out", 8, "lsh")
    assert {path.name for path in tmp_path.iterdir()} == {"v.txt", "m.npy"}
    bits, notes = noted(
        embits.binarize_to_file, tmp_path / "m.npy", tmp_path / "out", 8, "lsh", on_bad="skip"
    )
    assert len(bits) == 299
    assert "1 row left out, the first at row 250" in notes[0]


def test_a_file_that_changes_while_it_is_read_is_refused_before_a_result_is_written(
    tmp_path, monkeypatch
):
    in_blocks(monkeypatch)
    path, encode = tmp_path / "m.npy", stream.Passes.encode
    np.save(path, clustered(300, dims=4))

    def changed(*args, **options):
        bits = encode(*args, **options)
        os.utime(path, (1, 1))
        return bits

    monkeypatch.setattr(stream.Passes, "encode", changed)
    collection = embits.open_collection(
        tmp_path / "c", embits.RandomHyperplanes(8).fit(np.load(path))
    )
    for job in (
        lambda: embits.binarize(path, 8, "lsh"),
        lambda: embits.binarize_to_file(path, tmp_path / "out", 8, "lsh"),
        lambda: embits.encode_to_collection(collection, path),
    ):
        np.save(path, clustered(300, dims=4))
        with pytest.raises(InputError, match=r"m\.npy: it has changed while it was read"):
            job()
    assert len(collection) == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["c", "m.npy"]


def test_only_a_job_that_can_be_resumed_records_its_progress(tmp_path, monkeypatch):
    in_blocks(monkeypatch)
    recorded = []
    monkeypatch.setattr(stream.Checkpoint, "save", lambda self: recorded.append(self.folder.name))
    matrix, path = clustered(300, dims=4), tmp_path / "m.npy"
    np.save(path, matrix)
    coder = Forgotten(8, random_state=np.random.default_rng(0))  # which no file can store
    bits = embits.binarize(path, coder=coder, lengths=True)
    collection = embits.open_collection(tmp_path / "c", embits.RandomHyperplanes(8).fit(matrix))
    embits.encode_to_collection(collection, path, lengths=True)
    assert len(bits) == len(collection) == 300
    assert not recorded
    embits.binarize_to_file(path, tmp_path / "out", 8, "lsh")
    assert set(recorded) == {".out.partial"}


def test_vectors_of_other_dimensions_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(300, dims=4))
    coder = embits.RandomHyperplanes(8).fit(clustered(50, dims=5))
    with pytest.raises(InputError, match="vectors of 4 dimensions, but the coder takes 5"):
        embits.encode_to_file(coder, tmp_path / "m.npy", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["m.npy"]


_PEAK = """
import sys
import embits
from embits.jobs import stream
stream.STREAM_FROM = 0
embits.binarize_to_file(sys.argv[1], sys.argv[2], 64, "lsh")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's peak memory")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Four times the rows: 130 MB more of floats, of which next to none is held."""
    peaks = []
    for n in (40_000, 160_000):
        matrix = np.zeros((n, 256), np.float32)
        matrix[:, 0] = np.arange(n)
        np.save(tmp_path / "m.npy", matrix)
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, tmp_path / "m.npy", tmp_path / "out"],
            capture_output=True, text=True, check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 30


@pytest.mark.parametrize("large", [False, True])
def test_rows_keep_their_numbers_as_ids_if_others_are_left_out(tmp_path, monkeypatch, large):
    if large:
        in_blocks(monkeypatch)
    matrix = clustered(300, dims=4)
    np.save(tmp_path / "m.npy", matrix)
    arguments = (embits.binarize_to_file, tmp_path / "m.npy", tmp_path / "out", 8, "lsh")
    bits, notes = noted(*arguments, on_bad="skip")
    assert notes == []
    assert isinstance(bits.words, RowNumbers)
    matrix[250, 1] = np.nan
    np.save(tmp_path / "m.npy", matrix)
    bits, notes = noted(*arguments, on_bad="skip")
    assert list(bits.words) == [str(row) for row in range(300) if row != 250]
    assert "the other rows have their numbers in the file as ids" in notes[0]


@pytest.mark.parametrize("large", [False, True])
def test_rows_without_ids_get_the_next_numbers_if_others_are_left_out(tmp_path, monkeypatch, large):
    if large:
        in_blocks(monkeypatch)
    matrix = clustered(300, dims=4)
    collection = embits.open_collection(tmp_path / "c", embits.RandomHyperplanes(8).fit(matrix))
    collection.add(matrix[:10])
    matrix[250, 1] = np.nan
    np.save(tmp_path / "m.npy", matrix)
    arguments = (embits.encode_to_collection, collection, tmp_path / "m.npy")
    n, notes = noted(*arguments, on_bad="skip")
    assert n == 299
    assert list(collection.words) == [str(row) for row in range(309)]
    assert "1 row left out" in notes[0]
    assert "as ids" not in notes[0]
    with pytest.raises(InputError, match="are numbered: add rows without ids"):
        collection.add(matrix[:1], ids=[7])


# -- ids and columns by name ----------------------------------------------------


@pytest.mark.parametrize("large", [False, True])
def test_columns_of_parquet_are_chosen_by_name_in_every_job(tmp_path, monkeypatch, large):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if large:
        in_blocks(monkeypatch)
    n, matrix = 300, clustered(300, dims=6)
    vectors = pa.array(list(matrix), pa.list_(pa.float32()))
    names = [f"doc {row}" for row in range(n)]
    columns = {"vector": vectors, "category": ["a", "b"] * 150, "id": range(n), "name": names}
    path, out = tmp_path / "v.parquet", tmp_path / "out"
    pq.write_table(pa.table(columns), path)
    coder = embits.RandomHyperplanes(16).fit(matrix)

    def ids_of(**options):
        collection = embits.open_collection(tmp_path / "c", coder=coder)
        embits.encode_to_collection(collection, path, **options)
        all_ids = [
            list(embits.binarize(path, 16, "lsh", **options).words),
            list(embits.binarize_to_file(path, out, 16, "lsh", **options).words),
            list(embits.encode_to_file(coder, path, out, **options).words),
            [str(each) for each in collection.ids(range(n))],
        ]
        shutil.rmtree(tmp_path / "c")
        assert all(ids == all_ids[0] for ids in all_ids)
        return all_ids[0]

    assert ids_of() == [str(row) for row in range(n)]  # those of the column `id`
    assert ids_of(ids="name") == names
    pq.write_table(pa.table({**columns, "id": names, "other": vectors}), path)
    assert ids_of(column="other") == names
    assert ids_of(column="other", ids=False) == [str(row) for row in range(n)]
    with pytest.raises(ReadError, match="row 2: found the word 'a' again"):
        ids_of(column="other", ids="category")


@pytest.mark.parametrize("large", [False, True])
def test_a_text_beside_a_matrix_is_not_taken_as_ids_if_there_are_none(tmp_path, monkeypatch, large):
    if large:
        in_blocks(monkeypatch)
    matrix, path, out = clustered(30, dims=6), tmp_path / "texts.npy", tmp_path / "out"
    np.save(path, matrix)
    (tmp_path / "texts.txt").write_text("".join(f"a text {row}\n" for row in range(30)))
    assert embits.binarize_to_file(path, out, 8, "lsh").words[7] == "a text 7"
    (tmp_path / "texts.txt").write_text("one text\n")  # it need not fit
    for bits in (
        embits.binarize(path, 8, "lsh", ids=False),
        embits.binarize_to_file(path, out, 8, "lsh", ids=False),
        embits.encode_to_file(embits.load(out), path, tmp_path / "out2", ids=False),
    ):
        assert isinstance(bits.words, RowNumbers)
    assert embits.read_vectors(path, ids=False).words is None


@pytest.mark.parametrize("large", [False, True])
def test_rows_added_to_a_collection_have_lengths_if_the_first_have(tmp_path, monkeypatch, large):
    if large:
        in_blocks(monkeypatch)
    matrix = clustered(200, dims=6) * np.linspace(0.1, 9, 200, dtype=np.float32)[:, None]
    coder = embits.RandomHyperplanes(16).fit(matrix)
    for part, rows in (("a", slice(0, 120)), ("b", slice(120, 200))):
        np.save(tmp_path / f"{part}.npy", matrix[rows])
    for lengths in (True, False):
        collection = embits.open_collection(tmp_path / f"c{lengths}", coder=coder)
        embits.encode_to_collection(collection, tmp_path / "a.npy", lengths=lengths)
        embits.encode_to_collection(collection, tmp_path / "b.npy", lengths=not lengths)
        found = collection.snapshot().lengths
        if lengths:
            np.testing.assert_allclose(found, np.linalg.norm(matrix, axis=1), rtol=0.0225)
        else:
            assert found is None
