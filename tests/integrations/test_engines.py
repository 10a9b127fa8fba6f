"""What exports to DuckDB, Parquet, LanceDB and Milvus have in common."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embits
from embits.errors import EmbitsError, InputError, UnknownWordError
from embits.integrations import export, tables
from tests.support.codes import expected, of_codes, random_codes
from tests.support.engines import Engine

ALL = ["duckdb", "parquet", "lancedb", "milvus"]
ODD_IDS = ["it's", 'a "b"', "😀 é", "tab\tline\nend", "back\\slash", "100%", "_", "", "x" * 65_535]


@pytest.fixture(params=ALL)
def engine(request, tmp_path):
    engine = Engine(request.param, tmp_path)
    yield engine
    engine.close()


@pytest.mark.parametrize("n_bits", [1, 65, 256])
@pytest.mark.parametrize("named", [True, False])
def test_answers_are_ours_with_distances_and_ties(engine, n_bits, named):
    words = [f"it's {i} é" for i in range(700)] if named else None
    bits = of_codes(random_codes(700, n_bits), n_bits, words)
    engine.export(bits)
    for row in (0, 699):
        assert engine.nearest(bits.words[row], 20) == expected(bits, row, 20)


def test_asking_by_word_row_code_and_floats(engine, vectors, bits):
    engine.export(bits)
    assert engine.nearest("word7", 5) == engine.nearest(7, 5) == expected(bits, 7, 5)
    by_code = engine.nearest(bits["word7"], 6)
    assert engine.nearest(vectors.matrix[7], 6, coder=bits.coder) == by_code
    assert by_code[0].distance == 0
    assert engine.nearest(7, 0) == []
    assert len(engine.nearest(7, 10_000)) == len(bits) - 1


def test_filters_are_applied_before_the_search(engine, bits):
    engine.export(bits)
    distances, rows = bits.search(bits.codes[7], len(bits))
    wanted = [(int(d), int(r)) for d, r in zip(distances, rows, strict=True) if r >= 500][:5]
    found = engine.nearest(bits["word7"], 5, where="id >= 500")
    assert [(each.distance, each.row) for each in found] == wanted
    found = engine.nearest("word7", 5, where="word like 'word59%'")
    assert {each.row for each in found} <= {59, *range(590, 600)}
    assert len(found) == 5
    assert engine.nearest("word7", 5, where="id < 0") == []


def test_a_filter_that_is_wrong_is_one_line(engine, bits):
    engine.export(bits)
    with pytest.raises(EmbitsError) as caught:
        engine.nearest("word7", where="no_such_column = 1")
    assert "\n" not in str(caught.value)


def test_what_goes_in_comes_out_with_odd_ids(engine):
    bits = of_codes(random_codes(len(ODD_IDS), 70), 70, ODD_IDS)
    engine.export(bits)
    back = engine.read(bits.coder)
    assert list(back.words) == ODD_IDS
    np.testing.assert_array_equal(back.codes, bits.codes)
    for row, word in enumerate(ODD_IDS):
        assert engine.nearest(word, 3) == expected(bits, row, 3)


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_rows_come_back(engine, data):
    n_bits = data.draw(st.integers(1, 130))
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
    words = data.draw(st.one_of(st.none(), st.lists(text, max_size=20, unique=True)))
    n = data.draw(st.integers(0, 20)) if words is None else len(words)
    codes = random_codes(n, n_bits, seed=n_bits)
    engine.export(of_codes(codes, n_bits, words))
    back = engine.read(of_codes(codes, n_bits).coder)
    assert list(back.words) == (words if words is not None else [str(row) for row in range(n)])
    np.testing.assert_array_equal(back.codes, codes)


def test_rows_over_several_blocks_come_back_in_order(engine, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 12)
    words = [f"{'ü' * (i % 70)}{i}" for i in range(12_000)]
    bits = of_codes(random_codes(12_000, 24), 24, words)
    done = []
    engine.export(bits, progress=lambda *each: done.append(each))
    back = engine.read(bits.coder)
    assert list(back.words) == words
    np.testing.assert_array_equal(back.codes, bits.codes)
    assert done[-1] == (12_000, 12_000)


def test_no_rows_are_a_table_too(engine):
    bits = of_codes(random_codes(0, 65), 65, [])
    engine.export(bits)
    assert engine.nearest(random_codes(1, 65)[0]) == []
    assert len(engine.read(bits.coder)) == 0


def test_a_second_export_replaces_the_first(engine, bits):
    engine.export(of_codes(random_codes(9, 8), 8))
    engine.export(bits)
    engine.export(bits)
    assert list(engine.read(bits.coder).words) == list(bits.words)


def test_an_export_that_fails_leaves_nothing_new(engine, bits, tmp_path):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.export(bits, progress=interrupt)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_another_coder_of_the_same_width_is_refused(engine, bits, vectors):
    engine.export(bits)
    other = embits.binarize(vectors, bits.n_bits, "lsh").coder
    with pytest.raises(InputError, match=r"method 'lsh'\) did not make the codes"):
        engine.read(other)
    with pytest.raises(InputError, match="did not make the codes"):
        engine.nearest(vectors.matrix[7], coder=other)
    with pytest.raises(InputError, match="the coder makes 64 bits"):
        engine.read(embits.RandomHyperplanes(n_bits=64).fit(vectors.matrix))


def test_a_coder_that_was_saved_and_loaded_is_the_same(engine, saved):
    bits = embits.load(saved)
    engine.export(bits)
    assert len(engine.read(embits.load(saved).coder)) == len(bits)


def test_questions_that_do_not_fit_are_refused(engine, bits):
    engine.export(bits)
    with pytest.raises(UnknownWordError, match="did you mean 'word7'"):
        engine.nearest("WORD7")
    for query in (np.zeros(5, np.uint8), np.full(13, 255, np.uint8), np.zeros(24), 600, -1):
        with pytest.raises(InputError):
            engine.nearest(query)
    with pytest.raises(InputError, match="k is -1"):
        engine.nearest(7, -1)


@pytest.mark.parametrize("name", ["", "a;b", 'x"; drop table y; --', "../up", "a\0b", "é", 7])
@pytest.mark.parametrize("engine", ["duckdb", "lancedb", "milvus"], indirect=True)
def test_odd_names_are_quoted_or_refused(engine, bits, name):
    if engine.to == "duckdb" and name not in ("", "a\0b", 7):  # quoted
        engine.export(bits, table="y")
        engine.export(bits, table=name)
        assert engine.nearest("word7", table=name) == engine.nearest("word7", table="y")
        return
    with pytest.raises(InputError, match=r"the (table|collection) is .*, expected"):
        engine.export(bits, **{engine.table: name})


def test_a_table_that_is_not_there_is_named(engine, bits):
    with pytest.raises((OSError, InputError)):
        engine.nearest("word7")
    if engine.has_tables:
        engine.export(bits)
        with pytest.raises(InputError, match=r"no (table|collection) nowhere"):
            engine.read(bits.coder, **{engine.table: "nowhere"})


def test_a_target_in_a_folder_that_does_not_exist_is_refused(engine, bits, tmp_path):
    engine.target = tmp_path / "no" / "where" / engine.target.name
    with pytest.raises(InputError, match="in a folder that does not exist"):
        engine.export(bits)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_someone_else_is_refused_and_left_alone(engine, bits):
    engine.target.write_bytes(b"precious" * 100)
    with pytest.raises(InputError):
        engine.export(bits)
    assert engine.target.read_bytes() == b"precious" * 100


def test_the_command_writes_it(engine, saved):
    command = ["export", str(saved), "--to", engine.to, "-o", str(engine.target), "--json"]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "embits", *command], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
    facts = json.loads(done.stdout)
    assert (facts["to"], facts["rows"], facts["bits"]) == (engine.to, 600, 100)
    assert engine.module.nearest(engine.target, "word7", 3) == expected(embits.load(saved), 7, 3)


@pytest.mark.parametrize("to", ["duckdb", "lancedb", "milvus"])
def test_a_missing_package_is_named_with_its_install_line(bits, tmp_path, monkeypatch, to):
    for package in {"milvus": ("pymilvus", "grpc")}.get(to, (to,)):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(embits.errors.MissingExtraError, match=rf"pip install 'embits\[{to}\]'"):
        export(bits, to, str(tmp_path / "codes.db"))
    assert list(tmp_path.iterdir()) == []
