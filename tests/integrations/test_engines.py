"""What exports to all engines have in common: rows come back, answers are ours, nothing is lost."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embits
from embits.errors import EmbitsError, InputError, UnknownWordError
from embits.integrations import export, table
from tests.support.codes import expected, of_codes, random_codes
from tests.support.engines import FILES

ODD_IDS = ["it's", 'a "b"', "😀 é", "tab\tline\nend", "back\\slash", "100%", "_", "", "x" * 65_535]


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
    for k in (599, 1023, 1024, 4096, 10_000):  # limits of engines
        assert engine.nearest(7, k) == expected(bits, 7, k)


def test_filters_are_applied_before_the_search(engine, bits):
    engine.export(bits)
    distances, rows = bits.search(bits.codes[7], len(bits))
    wanted = [(int(d), int(r)) for d, r in zip(distances, rows, strict=True) if r >= 500][:5]
    found = engine.nearest(bits["word7"], 5, where="id >= 500")
    assert [(each.distance, each.row) for each in found] == wanted
    like = "word like 'word59%%'" if engine.to == "pgvector" else "word like 'word59%'"
    found = engine.nearest("word7", 5, where=like)
    assert {each.row for each in found} <= {59, *range(590, 600)}
    assert len(found) == 5
    assert engine.nearest("word7", 5, where="id < 0") == []


def test_a_filter_that_is_wrong_is_one_line(engine, bits):
    engine.export(bits)
    own = (engine.module.psycopg.Error,) if engine.to == "pgvector" else ()
    with pytest.raises((EmbitsError, *own), match="no_such_column") as caught:
        engine.nearest("word7", where="no_such_column = 1")
    assert own or "\n" not in str(caught.value)


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
    engine.export(of_codes(codes, n_bits, words), overwrite=True)
    back = engine.read(of_codes(codes, n_bits).coder)
    assert list(back.words) == (words if words is not None else [str(row) for row in range(n)])
    np.testing.assert_array_equal(back.codes, codes)


def test_rows_over_several_blocks_come_back_in_order(engine, monkeypatch):
    monkeypatch.setattr(table, "BLOCK_BYTES", 1 << 12)
    words = [f"{'ü' * (i % 70)}{i}" for i in range(12_000)]
    bits = of_codes(random_codes(12_000, 24), 24, words)
    done = []
    engine.export(bits, progress=lambda *each: done.append(each))
    back = engine.read(bits.coder)
    assert list(back.words) == words
    np.testing.assert_array_equal(back.codes, bits.codes)
    assert done[-1] == (12_000, 12_000)


def test_row_numbers_stay_with_their_codes_when_rows_are_removed(engine):
    if engine.name == "parquet":
        pytest.skip("rows of a Parquet file are not removed")
    bits = of_codes(random_codes(9, 16), 16)
    engine.export(bits)
    engine.remove(3)
    back = engine.read(bits.coder)
    assert list(back.words) == ["0", "1", "2", "4", "5", "6", "7", "8"]
    np.testing.assert_array_equal(back["8"], bits.codes[8])


def test_no_rows_are_a_table_too(engine):
    bits = of_codes(random_codes(0, 65), 65, [])
    engine.export(bits)
    assert engine.nearest(random_codes(1, 65)[0]) == []
    assert len(engine.read(bits.coder)) == 0


def test_an_existing_table_is_replaced_only_if_one_says_so(engine, bits):
    few = of_codes(random_codes(9, 8), 8)
    engine.export(few)
    with pytest.raises(InputError, match="exists: choose another"):
        engine.export(bits)
    assert len(engine.read(few.coder)) == 9
    for _ in range(2):
        engine.export(bits, overwrite=True)
    assert list(engine.read(bits.coder).words) == list(bits.words)


def test_an_export_that_fails_leaves_the_old_table(engine, bits):
    if engine.to == "milvus":
        pytest.skip("Milvus Lite cannot rename a collection: the old one is dropped first")

    def interrupt(done, total):
        raise KeyboardInterrupt

    engine.export(bits)
    with pytest.raises(KeyboardInterrupt):
        engine.export(of_codes(random_codes(9, 8), 8), progress=interrupt, overwrite=True)
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


@pytest.mark.parametrize("engine", ["duckdb", "lancedb", "milvus", "pgvector"], indirect=True)
def test_odd_names_are_quoted_or_refused(engine, bits):
    for name in ("a;b", 'x"; drop table y; --', "é", "", "a\0b"):
        named = {engine.table: name}
        if engine.to in ("duckdb", "pgvector") and name not in ("", "a\0b"):
            engine.export(bits, **named)
            assert engine.nearest("word7", 3, **named) == expected(bits, 7, 3)
            continue
        with pytest.raises(InputError, match=r"the (table|collection) is .*, expected"):
            engine.export(bits, **named)


def test_a_table_that_is_not_there_is_named(engine, bits):
    with pytest.raises((OSError, InputError)):
        engine.nearest("word7")
    if engine.table:
        engine.export(bits)
        with pytest.raises(InputError, match=r"no (table|collection) nowhere"):
            engine.read(bits.coder, **{engine.table: "nowhere"})


@pytest.mark.parametrize("engine", FILES, indirect=True)
def test_a_target_in_a_folder_that_does_not_exist_is_refused(engine, bits, tmp_path):
    engine.target = tmp_path / "no" / "where" / engine.target.name
    with pytest.raises((InputError, FileNotFoundError)):
        engine.export(bits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", FILES, indirect=True)
def test_a_file_of_someone_else_is_refused_and_left_alone(engine, bits):
    engine.target.write_bytes(b"precious" * 100)
    for overwrite in (False, True):
        with pytest.raises(InputError):
            engine.export(bits, overwrite=overwrite)
    assert engine.target.read_bytes() == b"precious" * 100


def test_the_command_writes_it_and_replaces_it_with_force(engine, saved):
    command = ["export", str(saved), "--to", engine.to, "-o", str(engine.target), "--json"]

    def run(*more):
        line = [sys.executable, "-m", "embits", *command, *more]
        return subprocess.run(line, capture_output=True, text=True)

    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert (facts["to"], facts["rows"], facts["bits"]) == (engine.to, 600, 100)
    again = run()
    assert again.returncode == 1
    assert "--force" in again.stderr
    assert again.stderr.count("\n") == 1
    assert run("--force").returncode == 0
    assert engine.nearest("word7", 3) == expected(embits.load(saved), 7, 3)


def test_descriptions_of_earlier_versions_are_read_and_other_texts_are_not():
    facts = {"embits": "0.2.0", "rows": 9, "bits": 8, "dims": 3, "method": "lsh", "words": True,
             "coder": "ab", "digest": "12", "index": None}  # fmt: skip
    found = table.Description.parse(json.dumps(facts))
    assert (found.rows, found.bits, found.coder, found.index) == (9, 8, "ab", "none")
    assert table.Description.parse(found.to_json()) == found
    wrong = [{"bits": "8"}, {"bits": 0}, {"bits": None}, {"words": 1}, {"embits": None}]
    texts = [json.dumps(facts | each) for each in wrong]
    for text in (None, "", "[]", "null", "{", "a table", b"\xff", "[" * 9999, *texts):
        assert table.Description.parse(text) is None


@pytest.mark.parametrize("to", ["duckdb", "lancedb", "milvus"])
def test_a_missing_package_is_named_with_its_install_line(bits, tmp_path, monkeypatch, to):
    for package in {"milvus": ("pymilvus", "grpc")}.get(to, (to,)):
        monkeypatch.setitem(sys.modules, package, None)
    named = {"milvus": "pymilvus"}.get(to, to)
    with pytest.raises(embits.errors.MissingExtraError, match=rf"install {named} .*: pip install "):
        export(bits, to, str(tmp_path / "codes.db"))
    assert list(tmp_path.iterdir()) == []
