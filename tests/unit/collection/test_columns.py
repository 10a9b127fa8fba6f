"""Columns beside the codes, filters on them, kept vectors and new coders."""

import datetime
import json
import pickle
import subprocess
import sys
import uuid
import warnings
from contextlib import suppress

import numpy as np
import pytest

import embits
from embits.collection import changes
from embits.collection import collection as collections
from tests.support.vectors import clustered

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
ROWS = clustered(900).astype(np.float16).astype(np.float32)  # which 16 bits keep as they are
CODER = embits.RandomHyperplanes(n_bits=64).fit(ROWS)
DAY = datetime.date(2020, 5, 1)
TIME = datetime.datetime(2020, 5, 1, 12, tzinfo=datetime.UTC)
VALUES = {
    "text": ["naïve", "", None],
    "whole": [1, None, -(2**62)],
    "float": [0.5, None, 2.0],
    "flag": [True, False, None],
    "day": [DAY, None, DAY],
    "time": [TIME, None, TIME],
    "tags": [["a", "b"], [], None],
    "empty": [None, None, None],
}


@pytest.fixture
def collection(tmp_path):
    return embits.open_collection(tmp_path / "c", CODER)


@pytest.fixture
def filled(collection, monkeypatch):
    """Three pieces, of which the first has no columns, and a removed row."""
    monkeypatch.setattr(changes, "MAX_MERGED_ROWS", 0)
    collection.add(ROWS[:4], ["a", "b", "c", "gone"])
    collection.add(ROWS[4:7], ["d", "e", "f"], columns=VALUES)
    collection.add(ROWS[7:9], ["g", "h"], columns={"whole": [2, 3], "text": ["x", "y"]})
    collection.remove(["gone"])
    return collection


def ids_where(collection, where):
    return collection.ids(collection.select(where).rows).tolist()


def test_nan_is_a_missing_value_in_conditions_too(filled):
    missing = ids_where(filled, {"float": None})
    for nan in (float("nan"), np.float32("nan"), [np.nan]):
        assert ids_where(filled, {"float": nan}) == missing
    assert ids_where(filled, {"float": [np.nan, 2.0]}) == sorted([*missing, "f"])
    assert ids_where(filled, {"whole": np.nan}) == ids_where(filled, {"whole": None})
    for bounds in ((np.nan, None), (None, np.nan)):
        with pytest.raises(embits.InputError, match="holds float, found nan"):
            filled.select({"float": bounds})


def test_numbers_at_the_ends_of_int64_are_compared_exactly(collection):
    values = [1995, -(2**63), 2**63 - 1, 2**63 - 512, None, -(2**63) + 1, 0]
    collection.add(ROWS[:7], list("abcdefg"), columns={"whole": values, "float": [2.0**53] * 7})

    def passes(value, low, high):
        return (
            value is not None and (low is None or value >= low) and (high is None or value <= high)
        )

    ends = [2**63, np.uint64(2**63), 2.0**63, -(2**63), -(2**63) - 1, 2**63 - 1, 2**80, 1995]
    for end in ends:
        exact = int(end)
        equal = [id for id, value in zip("abcdefg", values, strict=True) if value == exact]
        assert ids_where(collection, {"whole": end}) == equal
        assert ids_where(collection, {"whole": [end, 0]}) == sorted({*equal, "g"})
        for low, high in ((end, None), (None, end)):
            bounds = int(low) if low else None, int(high) if high else None
            inside = [i for i, v in zip("abcdefg", values, strict=True) if passes(v, *bounds)]
            assert ids_where(collection, {"whole": (low, high)}) == inside
    with pytest.raises(embits.InputError, match="holds float, found 9007199254740993"):
        collection.select({"float": 2**53 + 1})


def test_a_mask_with_missing_values_is_refused(filled):
    for mask in (np.array([True, None] * 4, object), pa.array([True, None] * 4)):
        with pytest.raises(embits.InputError, match="values other than True and False"):
            filled.select(mask)


@pytest.mark.parametrize("change", [lambda c: None, lambda c: c.compact()])
def test_values_come_back_as_they_were_given(filled, change):
    change(filled)
    copy = pickle.loads(pickle.dumps(filled))  # noqa: S301
    for bits in (filled, embits.load(filled.path, verify=True), copy):
        assert bits.get(["d", "e", "f"]) == VALUES
        assert bits.get(["h", "a"], ["text", "whole"]) == {"text": ["y", None], "whole": [3, None]}
        found = bits.search(ROWS[4:6], k=1)
        assert found.column("tags").tolist() == [[["a", "b"]], [[]]]
        assert bits.to_arrow().num_rows == len(bits.columns["text"]) == 8
        assert bits.subset(["f", "d"]).get(["d"])["time"] == [TIME]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "numpy"])
def test_tables_are_columns(collection, kind):
    values = {"text": ["a", "b"], "year": [2020, 2021]}
    if kind == "numpy":
        table = {name: np.array(each) for name, each in values.items()}
    elif kind == "arrow":
        table = pa.table(values)
    else:
        frames = pytest.importorskip(kind)
        text = frames.Series(
            values["text"], dtype="category" if kind == "pandas" else frames.Categorical
        )
        table = frames.DataFrame({**values, "text": text})
    collection.add(ROWS[:2], ["x", "y"], columns=table)
    assert collection.get(["x", "y"]) == values


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"text": "x"}, "g"),
        ({"text": ["x", "", "none"]}, "eg"),
        ({"text": None}, "abcf"),
        ({"whole": (1, 2)}, "dg"),
        ({"whole": (None, 2)}, "dfg"),
        ({"whole": (None, None)}, "dfgh"),
        ({"whole": [1, 2.5]}, "d"),
        ({"whole": 2.5}, ""),
        ({"whole": 2.0}, "g"),
        ({"whole": (-(2.0**80), -(2**62) + 1)}, "f"),
        ({"whole": -(2.0**62)}, "f"),
        ({"whole": -(2**62) + 1}, ""),
        ({"text": np.array(["x", "y"])}, "gh"),
        ({"float": (1, None)}, "f"),
        ({"float": 2}, "f"),
        ({"flag": False}, "e"),
        ({"day": DAY}, "df"),
        ({"day": ("2020-01-01", "2020-06-01")}, "df"),
        ({"time": (TIME, None)}, "df"),
        ({"time": ("2020-05-01", "2020-05-01T13:00Z")}, "df"),
        ({"tags": "b"}, "d"),
        ({"tags": ["b", "c"]}, "d"),
        ({"tags": None}, "abcfgh"),
        ({"empty": "x"}, ""),
        ({"empty": None}, "abcdefgh"),
        ({"whole": (0, None), "text": ["x", "naïve"]}, "dg"),
        ({}, "abcdefgh"),
        (pc.field("whole") > 1, "gh"),
        ((pc.field("text") == "x") | pc.field("flag"), "dg"),
    ],
)
def test_filters_find_the_rows_whose_values_pass(filled, where, expected):
    for _ in range(2):  # the second time they are known
        assert ids_where(filled, where) == list(expected)
    filled.compact()
    assert ids_where(filled, where) == list(expected)
    if isinstance(where, dict) and not where:
        with pytest.raises(embits.InputError, match="where has no condition"):
            filled.remove(where=where)
        return
    removed = filled.remove(where=where)
    assert removed == len(expected)
    assert not set(expected) & set(filled.words)


def test_filters_work_wherever_rows_are_chosen(filled):
    where = {"whole": (0, None)}  # d, g, h
    assert set(filled.search(ROWS[0], k=9, where=where).ids) == {"d", "g", "h"}
    assert set(filled.search(ROWS[0], k=9, where=filled.select(exclude=where)).ids) == set("abcef")
    assert len(filled.search(ROWS[0], k=9, where=filled.select(exclude={})).ids) == 8  # no filter
    each = filled.search(ROWS[:3], k=3, where=[where, None, pc.field("whole") == 3])
    assert set(each.ids[0]) == {"d", "g", "h"}
    assert each.ids[2].tolist() == ["h", "", ""]
    assert each.column("whole")[2].tolist() == [3, None, None]
    assert set(filled.within(ROWS[0], distance=64, where=where).ids) == {"d", "g", "h"}
    assert filled.most_similar("a", topn=1, where={"text": "y"})[0][0] == "h"
    old = filled.select(where)
    filled.add(ROWS[:1], ["i"], columns={"whole": [9]})
    assert ids_where(filled, where) == ["d", "g", "h", "i"]
    with pytest.raises(embits.InputError, match="before the collection changed"):
        filled.search(ROWS[0], where=old)
    memory = filled.subset(["d", "a", "i"])
    assert memory.search(ROWS[0], k=9, where=where).column("whole").tolist() in ([1, 9], [9, 1])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"whole": [1, "2"]}, "^row 1: column 'whole' has string here, and int"),
        ({"whole": ["1", "2"]}, "^row 0: column 'whole' has '1', of type string; expected int"),
        ({"whole": [1, 2.5]}, "^row 1: column 'whole' has 2.5, of type float; expected int"),
        ({"whole": [True, None]}, "^row 0: column 'whole' has True, of type bool; expected int"),
        ({"new": [None, b"x"]}, "^row 1: column 'new' has b'x', of type binary"),
        ({"new": [1]}, "'new' has 1 values for 2 rows"),
        ({"new": "ab"}, "'new' is 'ab', expected one value for each row"),
        ({"new": {"a", "b"}}, "expected one value for each row"),
        ({"new": [DAY, TIME]}, "^row 1: .* has timestamp UTC here, and date"),
        (
            {"new": [TIME, TIME.replace(tzinfo=None)]},
            "^row 1: .* has timestamp here, and timestamp",
        ),
        ({"\ud800": [1, 2]}, "the name of a column is '.ud800', expected a string"),
        (pa.chunked_array([[1, 2]]), "columns is of type ChunkedArray"),
        ({"id": [1, 2]}, "id, lengths, floats, cells are reserved"),
        ({"": [1, 2]}, "the name of a column is '', expected a string"),
        ([1, 2], "columns is of type list"),
    ],
)
def test_columns_that_do_not_fit_are_refused_in_one_line(filled, columns, message):
    before = filled.to_arrow()
    with pytest.raises(embits.InputError, match=message):
        filled.upsert(ROWS[:2], ["a", "new"], columns=columns)
    assert filled.to_arrow().equals(before)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"yaer": 1}, "no column 'yaer': the columns are 'text', 'whole'"),
        (pc.field("yaer") > 1, "no column 'yaer'"),
        ({"whole": "1"}, "'whole' holds int, found '1', of type str"),
        ({"whole": True}, "'whole' holds int, found True"),
        ({"text": (1, 2)}, "'text' holds string, found 1"),
        ({"text": "\ud800"}, "'text' holds string, found '.ud800'"),
        (pc.field(0) == 1, "where: "),
        ({"tags": ("a", "b")}, "'tags' holds list of string, which = and in take"),
        ({"whole": (1, 2, 3)}, r"the range of column 'whole' is \(1, 2, 3\)"),
        (pc.field("whole"), "gives int64, expected booleans"),
    ],
)
def test_filters_that_do_not_fit_are_refused_in_one_line(filled, where, message):
    for search in (filled.select, lambda w: filled.search(ROWS[0], where=w)):
        with pytest.raises(embits.InputError, match=message) as error:
            search(where)
        assert "\n" not in str(error.value)


def test_rows_that_are_updated_without_columns_keep_theirs(filled):
    filled.upsert(ROWS[20:22], ["d", "new"])
    assert filled.get(["d", "new"], ["text"]) == {"text": ["naïve", None]}
    filled.update(ROWS[20:21], ["d"], columns={"whole": [7]})
    assert filled.get(["d"], ["text", "whole"]) == {"text": [None], "whole": [7]}


def test_whole_numbers_and_floats_share_a_column_if_nothing_is_lost(collection):
    collection.add(ROWS[:2], columns={"x": [0.5, 1.5], "y": [1, 2]})
    collection.add(ROWS[2:4], columns={"x": [1, 2], "y": [3.0, None]})
    assert collection.columns["x"].to_pylist() == [0.5, 1.5, 1.0, 2.0]
    assert collection.columns["y"].to_pylist() == [1, 2, 3, None]


def test_missing_numbers_and_empty_lists_fit_any_column_of_their_shape(collection):
    ids = [uuid.UUID(int=row) for row in range(3)]
    collection.add(ROWS[:1], ids[:1], columns={"x": [1], "tags": [[5]]})
    table = pa.table({"id": list(map(str, ids[1:])), "x": [np.nan, 2.0], "tags": [[], []]})
    collection.add(ROWS[1:3], table["id"], columns=table.drop_columns("id"))
    assert collection.get(ids) == {"x": [1, None, 2], "tags": [[5], [], []]}
    assert collection.get(ids[2], ["x"]) == {"x": [2]}
    assert collection.remove(ids[0]) == 1


def test_files_refuse_columns_that_they_cannot_hold(filled, tmp_path):
    with pytest.raises(embits.InputError, match=r'slim\(without=\["columns"\]\)'):
        filled.save(tmp_path / "file")
    filled.slim(without=["columns"]).save(tmp_path / "file")
    assert len(embits.load(tmp_path / "file")) == 8


def test_earlier_versions_refuse_a_collection_with_columns(filled):
    body = json.loads((filled.path / "_embits.json").read_text())
    assert body["version"] == 2
    plain = embits.open_collection(filled.path.parent / "plain", CODER)
    plain.add(ROWS[:2])
    assert json.loads((plain.path / "_embits.json").read_text())["version"] == 1
    assert plain.byte_counts().columns == 0 < filled.byte_counts().columns


def test_damage_of_a_column_file_is_found_before_it_is_copied(filled):
    path = next(filled.path.glob("*.arrow"))
    content = bytearray(path.read_bytes())
    content[content.index("naïve".encode())] ^= 1
    path.write_bytes(content)
    for act in (
        lambda: embits.load(filled.path, verify=True),
        embits.open_collection(filled.path).compact,
        embits.load(filled.path).check_undamaged,
    ):
        with pytest.raises(embits.FormatError, match=path.name):
            act()


def test_offsets_of_a_damaged_column_file_are_not_followed(collection):
    collection.add(ROWS[:3], columns={"text": ["abc", "defg", "h"]})
    path = next(collection.path.glob("*.arrow"))
    content = bytearray(path.read_bytes())
    place = content.index(np.array([0, 3, 7, 8], np.int64).tobytes())
    content[place + 8 : place + 16] = np.int64(2**40).tobytes()
    path.write_bytes(content)
    for use in (
        lambda b: b.get(rows=[0, 1]),
        lambda b: b.select({"text": "abc"}),
        lambda b: b.to_arrow(),
    ):
        with pytest.raises(embits.FormatError, match="offsets of column 'text'"):
            use(embits.load(collection.path))


def test_a_column_file_with_a_flipped_bit_is_found_damaged_or_read(filled):
    filled.compact()
    path = next(filled.path.glob("*.arrow"))
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for place in rng.choice(len(whole), 300, replace=False).tolist():
        content = bytearray(whole)
        content[place] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        with suppress(embits.FormatError):
            bits = embits.load(filled.path)
            bits.get(rows=[0, 7])
            bits.select({"text": "x", "tags": "a", "whole": (0, 5)})


def test_collections_without_columns_import_no_pyarrow(collection):
    code = (
        "import sys, embits; c = embits.open_collection(sys.argv[1]);"
        "c.add([[1.0] * 24]); c.search([1.0] * 24, where=['0']);"
        "assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, collection.path], check=True)


# -- kept vectors and new coders -------------------------------------------------------------------


@pytest.mark.parametrize(("keep", "error"), [("float16", 1e-3), ("int8", 1e-2)])
def test_kept_vectors_rescore_as_the_originals_do(tmp_path, keep, error):
    collection = embits.open_collection(tmp_path / "c", CODER, keep=keep)
    collection.add(ROWS[:300])
    collection.add(ROWS[300:400])
    kept = collection.search(ROWS[800:820], k=5, rescore=50)
    exact = collection.search(ROWS[800:820], k=5, rescore=embits.Rescore(50, ROWS[:400]))
    assert np.abs(kept.cosines - exact.cosines).max() < error
    assert (kept.rows == exact.rows).mean() > 0.8
    collection.save(tmp_path / "f")
    again = embits.load(tmp_path / "f", verify=True).search(ROWS[800:820], k=5, rescore=50)
    assert np.array_equal(again.cosines, kept.cosines)


def test_rows_of_a_collection_that_keeps_vectors_are_floats_that_it_can_keep(tmp_path):
    collection = embits.open_collection(tmp_path / "c", CODER, keep="float16")
    with pytest.raises(embits.InputError, match=r"keeps vectors \(float16\): add floats"):
        collection.add(CODER.encode(ROWS[:3]))
    with pytest.raises(embits.InputError, match="beyond 65,504, which keep='int8' can keep"):
        collection.add(1e6 * ROWS[:3])
    with pytest.raises(embits.InputError, match="exists with keep='float16', not 'int8'"):
        embits.open_collection(tmp_path / "c", keep="int8")
    assert len(collection) == 0


def test_oversample_warns_and_names_rescore(tmp_path):
    bits = embits.BinaryVectors(None, CODER.encode(ROWS), CODER)
    with pytest.warns(DeprecationWarning, match="here rescore=12"):
        old = bits.search(ROWS[:3], k=3, oversample=4, floats=ROWS)
    new = bits.search(ROWS[:3], k=3, rescore=embits.Rescore(12, ROWS))
    assert np.array_equal(old.rows, new.rows)
    with pytest.raises(embits.InputError, match="rescore alone is enough"):
        bits.search(ROWS[:3], k=3, oversample=4, rescore=12, floats=ROWS)
    with pytest.raises(embits.InputError, match="rescore needs a finer score"):
        bits.search(ROWS[:3], k=3, metric="hamming", rescore=12)


def test_a_new_coder_keeps_ids_columns_and_open_readers(tmp_path):
    collection = embits.open_collection(tmp_path / "c", CODER, keep="float16")
    ids = [f"w{i}" for i in range(300)]
    collection.add(ROWS[:300], ids, columns={"n": range(300)})
    collection.remove(["w3"])
    reader, late = embits.load(tmp_path / "c"), embits.load(tmp_path / "c")
    before = reader.search(ROWS[:9], k=5)
    collection.refit(coder=embits.ITQ(n_bits=128))
    left = [i for i in range(300) if i != 3]
    assert np.array_equal(collection.codes, collection.coder.encode(ROWS[left]))
    assert collection.get(["w299"]) == {"n": [299]}
    assert np.array_equal(reader.search(ROWS[:9], k=5).scores, before.scores)
    with pytest.raises(embits.InputError, match="fitted again"):
        late.add(CODER.encode(ROWS[:1]), ["x"])
    late.add(ROWS[300:301], ["w300"], columns={"n": [300]})  # encoded by the new coder
    assert reader.refresh()
    assert reader.n_bits == 128
    assert reader["w300"].tolist() == reader.encode(ROWS[300]).tolist()
    other = np.random.default_rng(0).normal(size=(300, 10))  # those of another model
    collection.refresh()
    collection.refit(other, collection.words)
    assert collection.dims == 10
    assert collection.search(other[7], k=1, rescore=9).rows.tolist() == [7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "keeps no vectors to fit a coder on"),
        ((ROWS[:2],), "2 vectors for 3 rows"),
        ((ROWS[:2], ["a", "b"]), "the row 'c' has no vector"),
        ((ROWS[:3], ["a", "b", "b"]), "the row 'c' has no vector"),
        ((ROWS[:4], ["a", "b", "c", "c"]), "an id twice"),
        ((ROWS[:3], ["a", "b", "x"]), "no word or id 'x'"),
        ((ROWS[:3], None, "itq"), "coder is 'itq', expected one such as embits.ITQ"),
    ],
)
def test_a_refit_needs_a_vector_for_each_row(collection, arguments, message):
    collection.add(ROWS[:3], ["a", "b", "c"])
    before = collection.manifest
    with pytest.raises((embits.InputError, embits.UnknownWordError), match=message):
        collection.refit(*arguments[:2], coder=arguments[2] if arguments[2:] else None)
    assert embits.load(collection.path).manifest == before


def test_codes_of_an_earlier_coder_are_refused(collection):
    late = embits.load(collection.path)
    collection.add(ROWS[:300])
    collection.refit(ROWS[:300])
    with pytest.raises(embits.InputError, match="fitted again: encode the vectors once more"):
        late.add(CODER.encode(ROWS[:1]))


def test_a_collection_starts_without_a_coder_and_fits_it_again_as_rows_come(tmp_path, monkeypatch):
    monkeypatch.setattr(collections, "REFITS", (20, 200))
    collection = embits.open_collection(tmp_path / "c", n_bits=64, method="itq")
    reader = embits.load(tmp_path / "c")
    assert len(reader) == 0
    assert reader.search(ROWS[:2], k=3).ids.shape == (2, 0)
    assert reader.within(ROWS[:2], distance=9).offsets.tolist() == [0, 0, 0]
    with pytest.raises(embits.InputError, match="must be floats"):
        collection.add(CODER.encode(ROWS[:2]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = []
        for stop in (1, 15, 20, 150, 230, 400):
            start = len(collection)
            collection.add(ROWS[start:stop], columns={"n": range(start, stop)})
            fits.append(collection.manifest.fitted_rows)
            assert reader.refresh()
            assert np.array_equal(reader.codes, reader.coder.encode(ROWS[:stop]))
            assert reader.columns["n"].to_pylist() == list(range(stop))
    assert fits == [1, 1, 20, 20, 230, 230]
    assert collection.manifest.refit_at is None
    with pytest.raises(embits.InputError, match="exists with n_bits=64, not 128"):
        embits.open_collection(tmp_path / "c", n_bits=128)


def test_rows_stay_if_the_coder_cannot_be_fitted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(collections, "REFITS", (20,))
    collection = embits.open_collection(tmp_path / "c", n_bits=64, method="lsh")
    collection.add(ROWS[:5])

    def fails(*_, **__):
        raise OSError("the disk is full")

    monkeypatch.setattr(changes, "recode", fails)
    with pytest.warns(embits.errors.TrainingWarning, match="rows were added, but .* disk is full"):
        collection.add(ROWS[5:30])
    assert len(collection) == 30
    monkeypatch.undo()
    monkeypatch.setattr(collections, "REFITS", (20,))
    collection.add(ROWS[30:31])
    assert collection.manifest.fitted_rows == 31
