"""Texts to answers: `embits index`, `embits ask`, and search_texts."""

import gc
import gzip
import json
import re
import shutil
import string
import weakref

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import embits
from embits.cli import embits as command
from embits.errors import InputError, ReadError, UnknownWordError
from embits.text.answers import Bm25Index, answer, search_texts
from embits.text.passages import OVERLAP, WORDS, read_passages, split
from tests.support.static_models import WORDS as WORDS_OF_MODEL
from tests.support.static_models import write_model

RECORDS = [
    {"id": "a", "title": "Music", "text": "a song of the album", "year": 2020},
    {"id": "b", "text": "the river and the lake", "year": 2021, "tags": ["x", "y"]},
    {"_id": 7, "text": "train ticket", "year": 2022, "more": {"deep": 1}},
    {"id": "none", "text": "日本 xylophone"},
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """The file of a small text encoder."""
    folder = tmp_path_factory.mktemp("encoder")
    write_model(folder, dims=32)
    made = embits.TextEncoder.from_static(folder, n_bits=128, method="itq", cache=False)
    made.save(folder / "encoder.safetensors")
    return folder / "encoder.safetensors"


@pytest.fixture
def at(tmp_path, monkeypatch):
    """An empty folder to work in, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def run(*arguments):
    """A verb's JSON."""
    result = CliRunner().invoke(command, [*map(str, arguments), "--json"])
    if result.exception is not None:
        raise result.exception
    return json.loads(result.stdout)


def write_lines(path, records):
    path.write_text("\n".join(map(json.dumps, records)) + "\n")
    return path


@pytest.fixture(scope="module")
def indexed(encoder, tmp_path_factory):
    """A folder with texts, and the collection of them."""
    folder = tmp_path_factory.mktemp("indexed")
    texts = write_lines(folder / "texts.jsonl", RECORDS)
    done = run("index", texts, "-o", folder / "notes", "--encoder", encoder, "--bits", 64)
    assert (done["added"], done["skipped"], done["rows"]) == (3, 1, 3)
    return folder


@pytest.fixture
def notes(at, indexed):
    shutil.copytree(indexed, at, dirs_exist_ok=True)
    return at / "notes"


def test_a_question_is_answered_with_texts(notes):
    answer = run("ask", notes, "songs", "-k", 2, "--least", -1)
    assert answer["query"] == "songs"
    assert answer["answers"][0]["id"] == "a"
    assert answer["answers"][0]["text"] == "a song of the album"
    assert [each["score"] for each in answer["answers"]] == sorted(
        (each["score"] for each in answer["answers"]), reverse=True
    )


@pytest.mark.parametrize("hybrid", [False, True])
def test_what_has_no_known_word_has_no_answer(notes, hybrid):
    options = ["--hybrid"] if hybrid else []
    assert run("ask", notes, "xylophone", *options)["answers"] == []
    assert run("ask", notes, "", *options)["answers"] == []


def test_answers_have_the_titles_of_their_texts(notes):
    found = run("ask", notes, "songs", "-k", 3, "--least", -1)["answers"]
    assert {each["id"]: each["title"] for each in found} == {"a": "Music", "b": None, "7": None}
    printed = CliRunner().invoke(command, ["ask", str(notes), "songs", "--least", "-1"]).stdout
    assert re.search(r"^\d\.\d\d  a  Music\n      a song of the album$", printed, re.MULTILINE)
    assert re.search(r"^-?\d\.\d\d  b$", printed, re.MULTILINE)


def test_a_word_of_the_question_may_be_in_the_title(at, encoder, monkeypatch):
    record = {"id": "a", "title": "Guitar", "text": "a song of the album"}
    run("index", write_lines(at / "one.jsonl", [record]), "-o", "one", "--encoder", encoder)
    score = run("ask", "one", "guitar", "--least", -1)["answers"][0]["score"]
    monkeypatch.setattr("embits.text.answers.noise_threshold", lambda *_: score / 0.9)
    assert run("ask", "one", "guitar")["answers"]
    assert not run("ask", "one", "the guitars", "--where", "title=Guitar", "--least", 2)["answers"]


@pytest.mark.parametrize("hybrid", [False, True])
def test_each_question_may_have_a_filter_of_its_own(notes, hybrid):
    texts, filters = ["a song", "a river"], [{"year": 2021}, {"year": [2020, 2022]}]
    found = embits.load(notes).search_texts(texts, 1, hybrid=hybrid, where=filters)
    alone = [
        embits.load(notes).search_texts(text, 1, hybrid=hybrid, where=where)
        for text, where in zip(texts, filters, strict=True)
    ]
    assert found.ids.tolist() == [each.ids.tolist() for each in alone]
    with pytest.raises(InputError, match="2 filters for a single query"):
        embits.load(notes).search_texts("a", hybrid=hybrid, where=filters)


@pytest.mark.parametrize("texts", [5, None, b"songs", [5], [None]])
@pytest.mark.parametrize("hybrid", [False, True])
def test_what_is_no_text_is_no_question(notes, texts, hybrid):
    with pytest.raises(InputError, match="expected"):
        embits.load(notes).search_texts(texts, hybrid=hybrid)


def test_without_an_answer_the_way_to_the_nearest_passages_is_printed(notes):
    printed = CliRunner().invoke(command, ["ask", str(notes), "xylophone"]).stdout
    assert printed == f"no answer in {notes} (`--least 0` prints the nearest passages)\n"
    printed = CliRunner().invoke(command, ["ask", str(notes), "song", "--least", "2"]).stdout
    assert printed == f"no answer in {notes}\n"


def test_the_encoder_is_a_part_of_its_own_in_info(notes):
    parts = run("info", notes)["parts"]
    assert parts["encoder"] == (notes / "_encoder.safetensors").stat().st_size
    assert parts["header"] < 10_000
    assert sum(parts.values()) == run("info", notes)["bytes"]


def test_no_answer_scores_less_than_the_least(notes):
    assert run("ask", notes, "songs", "--least", 2)["answers"] == []


def test_other_fields_are_columns_and_conditions(notes):
    opened = embits.load(notes)
    assert opened.get(["a", "7"], columns=["year", "title"]) == {
        "year": [2020, 2022],
        "title": ["Music", None],
    }
    assert json.loads(opened.get(["7"], columns=["more"])["more"][0]) == {"deep": 1}
    found = run("ask", notes, "songs", "--least", -1, "--where", "year>=2021", "-k", 5)
    assert {each["id"] for each in found["answers"]} == {"b", "7"}
    found = run("ask", notes, "songs", "--least", -1, "--where", "title=Music")
    assert [each["id"] for each in found["answers"]] == ["a"]


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("title = null", {"b", "7"}),
        ("title != null", {"a"}),
        ("title in null, Music", {"a", "b", "7"}),
        ("title = 'null'", set()),
        ("tags = null", {"a", "7"}),
        ("title in 'Music', \"x, y\"", {"a"}),
        ("title in (null)", {"b", "7"}),
        ("title = 'cats and dogs in love'", set()),
    ],
)
def test_null_in_a_condition_is_a_missing_value(notes, condition, ids):
    found = run("ask", notes, "songs", "--least", -1, "--where", condition)
    assert {each["id"] for each in found["answers"]} == ids


@pytest.mark.parametrize(
    "condition",
    [
        "title != Music and year > 2015",
        "year >= 2020 or tags = x",
        "title in",
        "title in ()",
        'title in "Music',
        'title in Music", "x',
        "title <> Music",
        "title => Music",
        "title =~ Music",
    ],
)
def test_what_is_more_or_less_than_a_condition_is_refused(notes, condition):
    for verb in (["ask", str(notes), "songs"], ["remove", str(notes)]):
        done = CliRunner().invoke(command, [*verb, "--where", condition])
        assert done.exit_code != 0
    assert len(embits.load(notes)) == 3


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("s = 12", {"a"}),
        ('s = 12"', {"b"}),
        ("s = '12'", {"a"}),
        ("s = '12\"'", {"b"}),
        ("s in 12, sport (local)", {"a", "c"}),
        ("s in [12, sport (local)]", {"a", "c"}),
        ("s = rock 'n'", {"d"}),
        ("f = 0", {"a", "b"}),
        ("f in 0, 5", {"a", "b"}),
        ("f in -0.0", {"a", "b"}),
    ],
)
def test_values_are_taken_as_they_are_written(at, encoder, condition, ids):
    values = ["12", '12"', "sport (local)", "rock 'n'"]
    records = [
        {"id": id, "text": "a song", "s": s, "f": f}
        for id, s, f in zip("abcd", values, [0.0, -0.0, 1.5, 2.5], strict=True)
    ]
    run("index", write_lines(at / "t.jsonl", records), "-o", "t", "--encoder", encoder)
    found = run("ask", "t", "songs", "--least", -1, "--where", condition)["answers"]
    assert {each["id"] for each in found} == ids


def test_hybrid_questions_of_words_that_only_the_texts_have_are_answered(at, encoder):
    records = [{"id": "a", "text": "the river pump ZZ-0815"}, {"id": "b", "text": "a song"}]
    run("index", write_lines(at / "t.jsonl", records), "-o", "t", "--encoder", encoder)
    assert [each["id"] for each in run("ask", "t", "ZZ-0815", "--hybrid")["answers"]] == ["a"]
    assert run("ask", "t", "ZZ-0815")["answers"] == []
    assert run("ask", "t", "QQ-0000", "--hybrid")["answers"] == []


def test_verify_reads_the_encoder_too(notes):
    assert run("verify", notes)["ok"]
    path = notes / "_encoder.safetensors"
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)
    with pytest.raises(embits.EmbitsError, match="damaged"):
        embits.load(notes, verify=True)


def test_lines_without_ids_are_not_updated_by_their_numbers(at, encoder):
    path = write_lines(at / "t.jsonl", [{"text": "a song"}, {"text": "the river"}])
    run("index", path, "-o", "t", "--encoder", encoder)
    write_lines(path, [{"text": "the river"}])
    with pytest.raises(InputError, match="line 1: the text has no id"):
        run("add", "t", path, "--update")
    with pytest.raises(InputError, match="give each text an id of its own"):
        run("add", "t", path)
    assert embits.load("t").ids().tolist() == ["t.jsonl:1", "t.jsonl:2"]


def test_an_order_has_no_null(notes):
    with pytest.raises(InputError, match="column 'year' holds int, found None"):
        run("ask", notes, "songs", "--where", "year > null")


def test_values_that_do_not_fit_are_named_with_their_lines(notes, at, encoder):
    texts = at / "texts.jsonl"
    lines = ['{"text": "song", "n": 1}', "", '{"text": "xylophone"}', '{"text": "lake", "n": "x"}']
    texts.write_text("\n".join(lines))
    with pytest.raises(
        InputError, match=f"^{re.escape(f'{texts}, line 4')}: column 'n' has string"
    ):
        run("index", texts, "-o", at / "new", "--encoder", encoder)
    assert not (at / "new").exists()
    texts.write_text('\n{"text": "song", "year": "row 9"}')
    with pytest.raises(InputError, match=f"^{re.escape(str(texts))}, line 2: .*'year' has 'row 9'"):
        run("add", notes, texts)


@pytest.mark.parametrize("option", [[], ["--update"]])
def test_texts_of_which_one_cannot_be_added_change_nothing(notes, at, monkeypatch, option):
    monkeypatch.setattr("embits.jobs.texts._BATCH", 2)
    before = embits.load(notes).manifest
    records = [{"id": f"t{n}", "text": "a song"} for n in range(5)]
    records[4]["year"] = "soon"  # the year of others is a number
    with pytest.raises(InputError, match="line 5"):
        run("add", notes, write_lines(at / "more.jsonl", records), *option)
    assert embits.load(notes).manifest == before


def test_an_update_is_one_change(notes, at, monkeypatch):
    monkeypatch.setattr("embits.jobs.texts._BATCH", 2)
    records = [{"id": "a", "text": "the boat " * (WORDS + 10)}]
    run("add", notes, write_lines(at / "long.jsonl", records), "--update")
    before = embits.load(notes).manifest.generation
    records = [{"id": id, "text": "the boat"} for id in ("a", "c", "d", "e")]
    run("add", notes, write_lines(at / "more.jsonl", records), "--update")
    assert embits.load(notes).manifest.generation == before + 1
    assert set(embits.load(notes).ids().tolist()) == {"b", "7", "a", "c", "d", "e"}


def test_unknown_ids_are_those_of_get(notes):
    with pytest.raises(UnknownWordError, match="1 of the 2 ids of get is unknown"):
        embits.load(notes).get(["a", "x"])


def test_added_texts_are_found_and_updated_ones_replace_all_their_passages(notes, at):
    long = {"id": "a", "text": "the boat " * (WORDS + 10)}
    write_lines(at / "more.jsonl", [long, {"id": "new", "text": "guitar music"}])
    assert run("add", notes, at / "more.jsonl", "--update")["rows"] == 6
    opened = embits.load(notes)
    assert "a" not in opened
    assert {"a#0", "a#1", "a#2", "new"} <= set(opened.ids().tolist())
    write_lines(at / "more.jsonl", [{"id": "a", "text": "the boat"}])
    done = run("add", notes, at / "more.jsonl", "--update")
    assert [done[name] for name in ("added", "updated", "removed")] == [1, 0, 3]
    assert set(embits.load(notes).ids().tolist()) == {"a", "b", "7", "new"}
    done = run("add", notes, at / "more.jsonl", "--update")
    assert [done[name] for name in ("added", "updated", "removed")] == [0, 1, 0]


def test_a_collection_without_a_known_word_has_no_answer(at, encoder):
    texts = write_lines(at / "none.jsonl", [{"id": "a", "text": "xylophone"}])
    run("index", texts, "-o", at / "new", "--encoder", encoder)
    assert run("ask", at / "new", "music")["answers"] == []
    assert run("ask", at / "new", "music", "--hybrid")["answers"] == []


def test_a_collection_is_not_overwritten_and_an_id_not_added_twice(notes, at, encoder):
    with pytest.raises(InputError, match="exists"):
        run("index", at / "texts.jsonl", "-o", notes, "--encoder", encoder)
    before = embits.load(notes).ids().tolist()
    with pytest.raises(InputError, match="already exists"):
        run("add", notes, at / "texts.jsonl")
    assert embits.load(notes).ids().tolist() == before


def test_texts_that_cannot_be_added_leave_no_folder(at, encoder):
    write_lines(at / "twice.jsonl", [{"id": "a", "text": "music"}] * 2)
    with pytest.raises(InputError, match=r"twice\.jsonl, line 2: the id 'a' is given twice"):
        run("index", at / "twice.jsonl", "-o", at / "new", "--encoder", encoder)
    assert not (at / "new").exists()


def test_the_encoder_stays_when_the_collection_is_compacted(notes):
    opened = embits.open_collection(notes)
    opened.remove(["b"])
    opened.compact()
    assert run("ask", notes, "songs", "--least", -1)["answers"][0]["id"] == "a"


def test_hybrid_scores_are_sums_of_standardized_scores(notes):
    bits, encoder = embits.load(notes).snapshot(), embits.load(notes).text_encoder
    texts = ["the lake", "train song", "xylophone"]
    found = search_texts(bits, encoder, texts, 3, hybrid=True)
    for text, scores, rows in zip(texts, *found, strict=True):
        words, meanings = Bm25Index.of(bits).scores(text), np.zeros(3)
        vector = encoder.encode(text)
        if vector.any():
            near = bits.search(vector, 3, metric="asymmetric")
            meanings[near.rows] = near.scores
        both = sum((s - s.mean()) / (s.std() or 1) for s in (words, meanings))
        np.testing.assert_allclose(scores, both[rows], atol=1e-4)
        assert (np.diff(scores) <= 0).all()
    assert found.column("text").shape == (3, 3)


def test_answers_are_objects_that_the_command_line_prints(notes):
    bits, encoder = embits.load(notes).snapshot(), embits.load(notes).text_encoder
    found = answer(bits, encoder, "songs", 3, threshold=-1)
    printed = run("ask", notes, "songs", "-k", 3, "--least", -1)["answers"]
    rounded = [each._asdict() | {"score": round(each.score, 4)} for each in found]
    assert rounded == printed
    assert [each.id for each in answer(bits, encoder, "songs", threshold=found[0].score)] == ["a"]


@pytest.mark.parametrize("hybrid", [False, True])
def test_a_collection_without_rows_has_no_answer(notes, hybrid):
    opened = embits.open_collection(notes)
    opened.remove(opened.ids().tolist())
    assert len(opened.search_texts("songs", hybrid=hybrid).rows) == 0
    assert opened.search_texts(["songs", "the lake"], hybrid=hybrid).rows.shape == (2, 0)
    assert answer(opened.snapshot(), opened.text_encoder, "songs", hybrid=hybrid) == []


def test_indexes_of_words_go_with_their_rows(notes):
    bits = embits.load(notes).snapshot()
    index = weakref.ref(Bm25Index.of(bits))
    assert Bm25Index.of(bits) is index()
    del bits
    gc.collect()
    assert index() is None


def test_hybrid_searches_give_the_same_from_the_cache_and_after_changes(notes, at):
    first = embits.load(notes).search_texts("the lake", 3, hybrid=True)
    again = embits.open_collection(notes)
    assert again.search_texts("the lake", 3, hybrid=True).ids.tolist() == first.ids.tolist()
    assert list((at / "cache" / "embits").glob("bm25-*"))
    again.remove(["b"])
    assert "b" not in again.search_texts("the lake", 3, hybrid=True).ids
    only = again.search_texts(["the lake"], 3, hybrid=True, where={"year": (2022, None)})
    assert only.ids.tolist() == [["7"]]


@pytest.mark.parametrize("id", ["faq#1", "#0"])
def test_ids_in_the_form_of_passages_are_refused(notes, at, encoder, id):
    write_lines(at / "up.jsonl", [{"id": id, "text": "music"}])
    for arguments in (("add", notes, at / "up.jsonl", "--update"), ("add", notes, at / "up.jsonl")):
        with pytest.raises(ReadError, match=r"line 1: the id '.*' is that of a passage"):
            run(*arguments)
    with pytest.raises(ReadError, match="that of a passage"):
        run("index", at / "up.jsonl", "-o", at / "new", "--encoder", encoder)


def test_a_text_that_is_there_in_the_other_form_is_refused(notes, at):
    long = "the boat " * (WORDS + 10)
    write_lines(at / "long.jsonl", [{"id": "a", "text": long}])
    with pytest.raises(InputError, match="the id 'a' already exists"):
        run("add", notes, at / "long.jsonl")
    run("add", notes, at / "long.jsonl", "--update")
    with pytest.raises(InputError, match="the id 'a' already exists"):
        run("add", notes, write_lines(at / "short.jsonl", [RECORDS[0]]))
    write_lines(at / "both.jsonl", [{"id": "c", "text": long}, {"id": "c", "text": "boat"}])
    with pytest.raises(InputError, match="the id 'c' is given twice"):
        run("add", notes, at / "both.jsonl", "--update")


def test_an_update_removes_the_passages_of_a_text_that_became_empty(notes, at):
    long = {"id": "a", "text": "the boat " * (WORDS + 10)}
    run("add", notes, write_lines(at / "long.jsonl", [long]), "--update")
    embits.load(notes).remove(["a#0"])  # a hole among the passages
    write_lines(at / "empty.jsonl", [{"id": "a", "text": ""}])
    arguments = ["add", str(notes), str(at / "empty.jsonl"), "--update"]
    printed = CliRunner().invoke(command, arguments).stdout
    assert "1 row skipped, 2 rows removed" in printed
    assert "1 passage without a known word: the old passages" in printed
    assert set(embits.load(notes).ids().tolist()) == {"b", "7"}


def test_a_collection_that_was_started_with_few_texts_is_fitted_again(at, encoder):
    rng = np.random.default_rng(0)
    words = np.array(WORDS_OF_MODEL.split()[:11])
    records = [
        {"id": f"t{n}", "title": str(words[n % 11]), "text": " ".join(rng.choice(words, 6))}
        for n in range(300)
    ]
    run("index", write_lines(at / "one.jsonl", records[:2]), "-o", "few", "--encoder", encoder)
    assert embits.load("few").manifest.fitted_rows == 2
    run("add", "few", write_lines(at / "more.jsonl", records[2:12]))
    assert embits.load("few").manifest.fitted_rows == 2
    run("add", "few", write_lines(at / "rest.jsonl", records[12:]))
    few = embits.load("few")
    assert few.manifest.fitted_rows == 300
    run("index", write_lines(at / "all.jsonl", records), "-o", "whole", "--encoder", encoder)
    whole = embits.load("whole")
    assert few.ids().tolist() == whole.ids().tolist()
    asked = [f"{each['title']} {each['text']}" for each in records]
    found = few.search_texts(asked, 1)
    assert found.scores.mean() > whole.search_texts(asked, 1).scores.mean() - 0.05
    same = np.mean([asked[row] == text for row, text in zip(found.rows[:, 0], asked, strict=True)])
    assert same > 0.9


@pytest.mark.parametrize("option", [["--limit", "3"], ["--bits", "64"], ["--no-ids"],
                                    ["--skip-bad"], ["--repeats", "first"]])  # fmt: skip
def test_options_of_vectors_are_refused_for_texts(notes, at, option):
    write_lines(at / "new.jsonl", [{"id": "new", "text": "music"}])
    result = CliRunner().invoke(command, ["add", str(notes), str(at / "new.jsonl"), *option])
    assert result.exit_code == 2
    assert f"{option[0]} does not apply to texts" in result.stderr
    assert "new" not in embits.load(notes)


def test_a_collection_without_texts_is_named(at):
    coder = embits.ITQ(n_bits=8).fit(np.eye(4))
    embits.open_collection(at / "plain", coder).add(np.eye(4))
    with pytest.raises(InputError, match="no text encoder"):
        run("ask", at / "plain", "songs")


# -- reading ---------------------------------------------------------------------------------------


def test_folders_of_texts_are_read(at):
    (at / "in" / "deep").mkdir(parents=True)
    (at / "in" / "deep" / "a.md").write_text("# Lakes\nwater")
    (at / "in" / "b.csv").write_text('id,text,year\n1,"a ""b""\nc",2020\n2,d,\n')
    (at / "in" / "c.jsonl").write_text('{"text": "x"}\n\n{"text": "y", "id": "z"}\n')
    (at / "in" / ".hidden.txt").write_text("no")
    (at / "in" / "picture.png").write_bytes(b"\xff")
    found = [(each.id, each.text, each.fields) for each in read_passages([at / "in"])]
    assert found == [
        ("1", 'a "b"\nc', {"year": 2020}),
        ("2", "d", {"year": None}),
        ("c.jsonl:1", "x", {}),
        ("z", "y", {}),
        ("deep/a.md", "# Lakes\nwater", {}),
    ]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.jsonl", b'{"text": "x"}\n{', "line 2: not valid JSON"),
        ("a.jsonl", b'{"text": "x"}\n[1]', "line 2: "),
        ("a.jsonl", b'{"text": "x", "deep": ["\\ud800"]}', "line 1: half of a surrogate pair"),
        ("a.jsonl", b"9", "line 1: 9; expected a field"),
        ("a.jsonl", b'{"body": "x"}', "expected a field or column `text`"),
        ("a.jsonl", b'{"text": "x", "id": [1]}', "the id is"),
        ("a.txt", b"good\nbad \xff", "line 2: not UTF-8"),
        ("a.csv", b"body\nx\n", "expected a field or column `text`"),
        ("a.csv", b'text\nx\ny\n"open\nz\n', "line 4: unexpected end"),
        ("a.csv", b"text,year\nx,1\ny,2,3\n", "line 3: 3 fields, but the header has 2"),
        ("a.csv", b"text,year,year\nx,1,2\n", "line 1: the header names the column 'year' twice"),
        ("a.csv", b"text,\nx,1\n", "line 1: column 2 of the header has no name"),
        ("a.jsonl", b'{"text": null}', "line 1: the text is None"),
        ("a.jsonl.gz", b"\x1f\x8bxx", "damaged"),
        ("a.jsonl.gz", gzip.compress(b"{}", mtime=0)[:10] + b"\xff" * 30, "damaged"),
        ("a.txt.gz", gzip.compress(bytes(1 << 25), mtime=0), "unpacks to over 100 times its size"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(at, name, content, line):
    (at / name).write_bytes(content)
    with pytest.raises(ReadError, match=line) as caught:
        list(read_passages([at / name]))
    assert str(at / name) in str(caught.value)


def test_hybrid_answers_hold_rare_words_whatever_their_meaning(at, encoder, monkeypatch):
    kinds = "a song of the album", "the river and the lake", "train ticket"
    records = [{"id": f"p{n}", "text": f"{kinds[n % 3]} zz-{1000 + n}"} for n in range(300)]
    write_lines(at / "texts.jsonl", records)
    run("index", "texts.jsonl", "-o", "t", "--encoder", encoder, "--bits", 64)
    monkeypatch.setattr(
        "embits.text.answers.noise_threshold", lambda *_: 1.0
    )  # these have less than 0.6
    for n in (0, 34, 101, 299):
        question = f"{kinds[(n + 1) % 3]} {1000 + n}"
        answers = run("ask", "t", question, "--hybrid")["answers"]
        assert answers[0]["id"] == f"p{n}"
        assert run("ask", "t", question, "--hybrid", "--least", 2)["answers"] == []


def test_digits_of_csv_are_strings_in_a_column_of_strings(at, encoder):
    (at / "a.csv").write_text("id,text,zip,n\na,a song,01069,1\n")
    (at / "b.csv").write_text("id,text,zip,n\nb,a river,10115,2\nc,the lake,,3\n")
    (at / "c.csv").write_text("id,text,zip,n\nd,train,7.0,x\n")
    for texts, then in ((["a.csv"], ["b.csv"]), (["b.csv", "a.csv"], [])):
        notes = at / f"notes-{len(texts)}"
        run("index", *texts, "-o", notes, "--encoder", encoder, "--bits", 32)
        for more in then:
            run("add", notes, more)
        found = embits.load(notes).get(["a", "b", "c"])
        assert (found["zip"], found["n"]) == (["01069", "10115", None], [1, 2, 3])
        with pytest.raises(InputError, match=r"^c\.csv, line 2: .*'n' has 'x', of type string"):
            run("add", notes, "c.csv")
        assert len(embits.load(notes)) == 3


def test_texts_of_csv_have_any_length(at):
    (at / "a.csv").write_text('id,text\na,"' + "a song " * 30_000 + '"\nb,river\n')
    assert sum(len(each.text.split()) for each in read_passages([at / "a.csv"])) > 60_000


def test_columns_of_csv_are_numbers_only_in_the_form_of_numbers(at):
    values = {"zip": "01069", "phone": "+49301234", "key": "1_000", "n": "-12", "price": "1.50",
              "long": "12345678901234567890", "small": "1e-05", "odd": "nan"}  # fmt: skip
    (at / "a.csv").write_text(f"text,{','.join(values)}\nx,{','.join(values.values())}\n")
    numbers = {"n": -12, "price": 1.5, "small": 1e-05}
    assert next(read_passages([at / "a.csv"])).fields == values | numbers


def test_lists_of_objects_become_json(at, encoder):
    records = [{"text": "music", "by": [{"name": "x"}]}, {"text": "lake", "by": []}]
    run("index", write_lines(at / "a.jsonl", records), "-o", "new", "--encoder", encoder)
    stored = embits.load("new").get(rows=[0, 1], columns=["by"])["by"]
    assert list(map(json.loads, stored)) == [[{"name": "x"}], []]


@given(st.lists(st.text(string.ascii_letters + ".", min_size=1, max_size=4), max_size=900))
def test_passages_hold_every_word_in_order_and_overlap(words):
    parts = [part.split() for part in split(" ".join(words))]
    assert all(len(part) <= WORDS for part in parts)
    joined = parts[0] + [word for part in parts[1:] for word in part[OVERLAP:]]
    assert joined == words
