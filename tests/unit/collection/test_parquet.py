"""Collections whose pieces are Parquet files, as a job on several workers writes them."""

from dataclasses import replace

import numpy as np
import pytest

import embits
from embits.coders import coder_checksum
from embits.collection import parquet
from embits.collection.manifest import CODER as CODER_FILE
from embits.collection.manifest import Manifest, Piece, read_manifest, write_manifest
from embits.file.contents import write_coder
from embits.integrations.parquet import read_codes
from tests.support.vectors import clustered

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = clustered(30)
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
CODES = CODER.encode(ROWS)


def written(folder, ids):
    """A folder of three Parquet files of ten rows; `ids` names the column of ids."""
    folder.mkdir()
    pieces = []
    for number in range(3):
        rows = slice(10 * number, 10 * number + 10)
        name = f"part-{number:05d}.parquet"
        codes = pa.array([code.tobytes() for code in CODES[rows]], pa.binary(8))
        words = [f"w{i}" for i in range(30)][rows]
        pq.write_table(pa.table({"code": codes, "word": words, "kept": words}), folder / name)
        pieces.append(Piece(name, 10, first=0 if ids else rows.start, column=ids))
    write_coder(folder / CODER_FILE, CODER)
    facts = (64, 24, "lsh", coder_checksum(CODER))
    kind = {"ids": "given"} if ids else {"ids": "numbers", "next_number": 30}
    write_manifest(folder, Manifest(*facts, pieces=tuple(pieces), **kind))
    return folder


def test_it_is_opened_changed_and_compacted(tmp_path):
    folder = written(tmp_path / "c", "word")
    collection = embits.load(folder, verify=True)
    assert list(collection.words) == [f"w{i}" for i in range(30)]
    assert np.array_equal(np.asarray(collection.codes), CODES)
    collection.add(ROWS[:1], ["new"])
    collection.remove(["w3", "w25"])
    expected = [f"w{i}" for i in range(30) if i not in (3, 25)] + ["new"]
    assert list(embits.load(folder).words) == expected
    collection.compact()
    assert list(embits.load(folder, verify=True).words) == expected
    parts = sorted(path.name for path in folder.glob("*.parquet"))
    assert parts == [f"part-{i:05d}.parquet" for i in range(3)], "they may hold other columns"


def test_rows_without_ids_are_numbered_over_all_files(tmp_path):
    collection = embits.load(written(tmp_path / "c", None))
    assert collection.ids([0, 15, 29], int).tolist() == [0, 15, 29]
    collection.remove([15])
    collection.add(ROWS[:1])
    assert collection.ids([15, 29], int).tolist() == [16, 30]


def test_it_is_read_into_memory(tmp_path):
    bits = read_codes(written(tmp_path / "c", "word"), "word")
    assert list(bits.words) == [f"w{i}" for i in range(30)]
    assert np.array_equal(bits.codes, CODES)


def test_wrong_counts_and_other_pieces_are_refused_in_memory(tmp_path):
    folder = written(tmp_path / "c", "word")
    manifest = read_manifest(folder)
    first, *others = manifest.pieces
    write_manifest(folder, replace(manifest, pieces=(replace(first, rows=9), *others)))
    with pytest.raises(embits.FormatError, match="10 rows, expected 9"):
        read_codes(folder)
    other = embits.open_collection(tmp_path / "other", CODER)
    other.add(ROWS)
    with pytest.raises(embits.FormatError, match="is not Parquet"):
        read_codes(other.path)
    (folder / "_embits.json").unlink()
    with pytest.raises(embits.FormatError, match=r"has no _embits\.json"):
        read_codes(folder)


def test_an_id_in_two_files_is_refused(tmp_path):
    folder = written(tmp_path / "c", "word")
    (folder / "part-00001.parquet").write_bytes((folder / "part-00000.parquet").read_bytes())
    with pytest.raises(
        embits.FormatError, match=r"'w0' appears twice: encode the vectors again.*first\)$"
    ):
        embits.load(folder)


def test_a_file_that_is_missing_or_damaged_is_named(tmp_path):
    folder = written(tmp_path / "c", "word")
    path = folder / "part-00001.parquet"
    content = path.read_bytes()
    path.unlink()
    with pytest.raises(embits.FormatError, match=r"part-00001\.parquet is missing"):
        embits.load(folder)
    no_utf8 = content.replace(b"kept", b"\xe9ept")  # the name of a column
    for damaged in (content[: len(content) // 2], no_utf8):
        path.write_bytes(damaged)
        with pytest.raises(embits.FormatError, match=r"part-00001\.parquet"):
            embits.load(folder)
    pq.write_table(pa.table({"other": [1]}), path)
    with pytest.raises(embits.FormatError, match=r"part-00001\.parquet.*expected one named 'code'"):
        embits.load(folder)


def test_a_column_of_ids_that_is_missing_or_short_is_refused(tmp_path, monkeypatch):
    folder = written(tmp_path / "c", "nothing")
    with pytest.raises(embits.FormatError, match=r"expected one named 'nothing'"):
        embits.load(folder)
    folder = written(tmp_path / "short", "word")
    whole = parquet.read_one

    def short(files, path, name):  # as pyarrow reads a damaged file
        return whole(files, path, name)[: 4 if name == "word" else None]

    monkeypatch.setattr(parquet, "read_one", short)
    with pytest.raises(embits.FormatError, match="4 ids for 10 codes"):
        embits.load(folder)


def test_an_address_of_no_file_system_is_one_error():
    with pytest.raises(embits.errors.ReadError, match=r"nosuch://bucket/x: \S"):
        parquet.locate("nosuch://bucket/x")
