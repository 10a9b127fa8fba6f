"""Comparison, report, pictures and their verbs: resumable, complete, and safe to show."""

import hashlib
import json
import os
import shutil
import struct
import zlib

import numpy as np
import pytest
from click.testing import CliRunner

import embits
from embits.cli import embits as embits_cli
from embits.coders import METHODS
from embits.evaluation import DataFolder
from embits.evaluation.compare import Comparison
from embits.evaluation.report import Report, bit_picture, bit_rows, write_report
from embits.evaluation.results import Table
from tests.support.program import run


@pytest.fixture(scope="module")
def small_data(tmp_path_factory):
    """Data sets about the words of the `vectors` fixture."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    (folder / "similarity").mkdir()
    pairs = rng.integers(0, 620, (80, 2))
    (folder / "similarity/MEN.txt").write_text(
        "".join(f"word{a} Word{b} {i % 7}\n" for i, (a, b) in enumerate(pairs))
    )
    (folder / "analogy").mkdir()
    questions = rng.integers(0, 620, (40, 4))
    lines = [" ".join(f"word{i}" for i in question) for question in questions]
    (folder / "analogy/questions-words.txt").write_text(
        "\n".join([": family", *lines[:20], ": gram1", *lines[20:]])
    )
    for name in ("ag_news", "yelp_review_full_csv"):
        (folder / "classification" / name).mkdir(parents=True)
        for part in ("train", "test"):
            words = rng.integers(0, 600, (60, 8))
            rows = (
                f'"{1 + line[0] % 2}","","{" ".join(f"word{i}" for i in line)}"' for line in words
            )
            (folder / "classification" / name / f"{part}.csv").write_text("\n".join(rows) + "\n")
    return folder


# -- the comparison --------------------------------------------------------------------------------


def test_a_comparison_goes_on_where_it_was_stopped(tmp_path, vectors, small_data):
    def compare(say=None, methods=("lsh", "sign")):
        data = DataFolder.at(small_data)
        return Comparison(vectors, tmp_path, data, [32], methods, ("similarity",), say=say)

    def stop(text):
        if text == "sign-24: training":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(stop).run()
    said = []
    entries = compare(said.append).run()
    assert [(e["method"], e["bits"]) for e in entries] == [("raw", 768), ("lsh", 32), ("sign", 24)]
    assert not [text for text in said if text.startswith(("raw", "lsh"))]
    assert entries == compare().run()
    said.clear()
    compare(said.append, ("lsh", "sign", "itq")).run()
    assert {text.split(":")[0] for text in said} == {"itq-32"}


def test_a_line_is_reported_for_each_code_that_is_done_or_skipped(tmp_path, vectors):
    lines = []
    comparison = Comparison(
        vectors, tmp_path, None, [2048, 8], ["itq", "lsh"], ["neighbors"], report=lines.append
    )
    comparison.run()
    assert [line.split(":")[0] for line in lines] == [
        "raw",
        "itq-8",
        "itq-2048",
        "lsh-8",
        "lsh-2048",
    ]


def test_other_vectors_are_trained_anew(tmp_path, vectors, small_data):
    def compare(vectors):
        data = DataFolder.at(small_data)
        return Comparison(vectors, tmp_path, data, [32], ["lsh"], ("similarity",))

    changed = embits.WordVectors(vectors.words, vectors.matrix.copy())
    comparison = compare(changed)
    first = comparison.run()
    changed.matrix[:] = vectors.matrix[::-1]
    for other in (comparison, compare(changed)):
        with pytest.raises(embits.InputError, match=r"results of vectors .*overwrite=True"):
            other.run()
    assert comparison.run(overwrite=True)[1]["similarity"] != first[1]["similarity"]


def test_edited_data_sets_of_the_same_size_are_scored_anew(tmp_path, vectors, small_data):
    shutil.copytree(small_data, tmp_path / "data")

    def compare():
        tasks = "similarity", "neighbors"
        return Comparison(vectors, tmp_path / "r", tmp_path / "data", [8], ["lsh"], tasks).run()

    path = tmp_path / "data/similarity/MEN.txt"
    before, text = compare(), path.read_text()
    path.write_text(text.replace(" 6\n", " 0\n"))
    assert compare()[1]["similarity"] != before[1]["similarity"]
    path.write_text(text)
    assert compare()[1]["similarity"] == before[1]["similarity"]


@pytest.mark.parametrize("name", ["lsh-8.scores.json", "lsh-8.json", "lsh-8.safetensors", ""])
def test_nothing_is_written_through_links_in_the_codes(tmp_path, vectors, name):
    other = tmp_path / "precious"
    other.write_text("precious")
    kept = tmp_path / "r/codes" / name
    kept.parent.mkdir(parents=True)
    for make in (lambda: kept.symlink_to(other if name else tmp_path), lambda: os.mkfifo(kept)):
        make()
        with pytest.raises(embits.InputError, match="is a link or not a regular file: move it"):
            Comparison(vectors, tmp_path / "r", None, [8], ["lsh"], ("neighbors",))
        kept.unlink()
    assert other.read_text() == "precious"


def test_codes_and_scores_that_were_exchanged_or_damaged_are_made_anew(tmp_path, vectors):
    def compare():
        return Comparison(vectors, tmp_path, None, [32], ["lsh", "itq"], ("neighbors",)).run()

    before, codes = compare(), tmp_path / "codes"
    (codes / "lsh-32.safetensors").replace(codes / "x")
    (codes / "itq-32.safetensors").replace(codes / "lsh-32.safetensors")
    (codes / "x").replace(codes / "itq-32.safetensors")
    for text in ('{"settings": 1}', '{"settings": {}, "entry": 1}', "[" * 100_000, "1"):
        for path in codes.glob("*.scores.json"):
            path.write_text(text)
        assert [entry["neighbors"] for entry in compare()[1:]] == [
            entry["neighbors"] for entry in before[1:]
        ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"bits": 32}, "bits are 32, expected a list"),
        ({"bits": [0]}, r"bits are \[0\], expected"),
        ({"vectors": np.eye(8)}, "expected WordVectors"),
        ({"vectors": "v.npy"}, "expected WordVectors"),
        ({"params": {"random_state": 5}}, r"params has random_state: give seeds \(--seeds\)"),
        ({"params": {"n_bits": 64}}, r"params has n_bits: give bits \(--bits\)"),
        ({"params": {"iterations": float("nan")}}, "cannot be stored"),
    ],
)
def test_a_wrong_argument_of_a_comparison_is_named(tmp_path, vectors, wrong, says):
    given = {"vectors": vectors, "methods": ["itq"], "tasks": ["neighbors"]} | wrong
    with pytest.raises(embits.InputError, match=says):
        Comparison(folder=tmp_path, data=None, **given)
    with pytest.raises(embits.InputError, match=r"call run\(\) first"):
        Comparison(vectors, tmp_path, None, tasks=["neighbors"]).write_report()


def test_a_damaged_code_file_is_trained_anew(tmp_path, vectors):
    def compare():
        return Comparison(vectors, tmp_path, None, [32], ["lsh"], ("neighbors",))

    before = compare().codes("lsh", 32).codes.copy()
    (tmp_path / "codes/lsh-32.safetensors").write_bytes(b"damaged")
    assert np.array_equal(compare().codes("lsh", 32).codes, before)


class Mine(embits.Coder):
    """The sign of each dimension less a shift, which an edit changes."""

    method = "mine"
    state_shapes = {"mean": ("dims",)}  # noqa: RUF012 - a plain dict, as a user writes it
    shift = 0.0

    def __init__(self, n_bits=None, sign=1):
        self.n_bits = n_bits
        self.sign = sign

    def fit(self, X, y=None, *, progress=None):
        X = np.asarray(self.check_vectors(X, fitting=True), np.float32)
        self.n_bits_ = X.shape[1]
        self.mean_ = X.mean(axis=0) + np.float32(self.shift)
        return self

    def project(self, X):
        return self.sign * (X - self.mean_)

    def inverse_transform(self, codes):
        bits = np.unpackbits(self.check_codes(codes), axis=1, count=self.n_bits_)
        return np.where(bits, self.mean_ + 1, self.mean_ - 1).astype(np.float32)


@pytest.fixture
def mine():
    yield embits.register_coder(Mine)
    METHODS.pop("mine", None)


def test_a_coder_that_was_edited_is_trained_and_scored_anew(tmp_path, vectors, mine, monkeypatch):
    def compare(said):
        return Comparison(
            vectors, str(tmp_path), None, [24], ["mine", "lsh"], ["neighbors"], say=said.append
        ).run()[1]["neighbors"]

    before = compare([])
    again = []
    assert compare(again) == before
    assert not again
    monkeypatch.setattr(mine, "shift", 0.5)
    edited = []
    assert compare(edited) != before
    assert {text.split(":")[0] for text in edited} == {"mine-24"}


def test_parameters_are_given_to_the_methods_that_take_them(tmp_path, vectors, mine):
    def compare(folder, **params):
        return Comparison(
            vectors, tmp_path / folder, None, [24], ["itq", "lsh"], ["neighbors"], params=params
        )

    _, itq, lsh = compare("a", iterations=1).run()
    assert itq["params"]["iterations"] == 1
    assert "iterations" not in lsh["params"]
    with pytest.raises(embits.InputError, match="none of the methods takes the parameter 'wings'"):
        compare("b", wings=2)
    with pytest.raises(embits.InputError, match="results of params"):
        compare("a").run()


def test_a_method_that_fails_does_not_stop_the_report(tmp_path, vectors, mine, monkeypatch):
    def fail(self, X, y=None, *, progress=None):
        raise embits.InputError("no such luck")

    monkeypatch.setattr(mine, "fit", fail)
    comparison = Comparison(vectors, tmp_path, None, [24], ["mine", "lsh"], ["neighbors"])
    assert [entry["method"] for entry in comparison.run()] == ["raw", "lsh"]
    comparison.write_report()
    assert "mine-24 is skipped: no such luck" in (tmp_path / "report.md").read_text()


def test_widths_of_earlier_runs_are_in_the_order_of_numbers(tmp_path, vectors):
    def compare(*bits):
        return Comparison(vectors, tmp_path, None, bits, ["lsh"], ["neighbors"], n_resamples=0)

    compare(128, 8, 64).run()
    assert [n for _, n in compare(16).plan] == [8, 16, 64, 128]


def test_a_comparison_writes_its_report_with_tests_and_latex(tmp_path, vectors, small_data):
    pytest.importorskip("matplotlib")
    comparison = Comparison(
        vectors, str(tmp_path / "r"), str(small_data), [16], ["lsh", "itq"],
        ("similarity", "neighbors"), n_resamples=50,
    )  # fmt: skip
    comparison.run()
    files = comparison.write_report("Mine", latex=True)
    assert {"table-1.tex", "similarity.svg", "neighbors.pdf"} <= {file.name for file in files}
    tests = {test["measure"]: test for test in comparison.tests()}
    test = tests["neighbors.recall_at_10"]
    assert test["is_bound"] == (test["p"] == pytest.approx(2 / 51))
    assert "(p ≤ .039)" in (tmp_path / "r/report.md").read_text()
    with pytest.raises(embits.InputError, match=r"report\.md exists"):
        comparison.write_report("Mine")


# -- the report ------------------------------------------------------------------------------------


EVIL = "<script>alert('x')</script> | *w* \"q\" & [a](b)"


def test_words_are_data_in_markdown():
    table = Table([EVIL, "1"], [[EVIL, "*2.0*"], [f" {EVIL}", EVIL]], EVIL)
    report = Report("# A title", latex=True)
    report.add(table)
    report.add_figure("bits", EVIL, lambda formats: {"png": b"png"})
    markdown = report.markdown()
    assert "<script>" not in markdown.replace("\\<", "")
    assert "**2.0**" in markdown
    assert "\\| \\*w\\*" in markdown
    assert list(report.files) == ["tables/table-1.tex", "figures/bits.png"]


def test_a_report_holds_every_number_as_json(tmp_path, vectors, small_data):
    pytest.importorskip("matplotlib")
    data = DataFolder.at(small_data)
    comparison = Comparison(
        vectors, tmp_path, data, [16, 32], ["lsh", "paper"],
        ("similarity", "analogy", "neighbors", "reconstruction", "classification", "speed"),
    )  # fmt: skip
    entries = comparison.run()
    files = write_report(tmp_path, "T", entries, {"seed": 0}, notes=data.problems)
    assert {f.name for f in files} >= {
        "report.md", "results.json", "similarity.png", "analogy.png", "neighbors.png",
        "classification.png",
    }  # fmt: skip
    kept = json.loads((tmp_path / "results.json").read_text())
    assert kept["results"] == entries
    text = (tmp_path / "report.md").read_text()
    for part in ("Table 1", "Table 2", "Table 3", "Table 4", "Table 5", "Figure 1",
                 "&nbsp;&nbsp;paper bin", "&nbsp;&nbsp;paper rec", "Yelp Full (± ",
                 "NumPy"):  # fmt: skip
        assert part in text
    assert str(tmp_path) not in text


# -- pictures --------------------------------------------------------------------------------------


def decoded(png):
    """Palette numbers of a PNG, read by the letter of its specification."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(png):
        size, kind = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + size]
        assert struct.unpack(">I", png[place + 8 + size :][:4])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + size
    width, height, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 3)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not lines[:, 0].any()
    return lines[:, 1:]


def test_the_picture_shows_the_closest_above_and_the_furthest_below(bits):
    rows = bit_rows(bits, "word5", n=20)
    code = np.unpackbits(bits["word5"], count=100)
    distances = (rows != code).sum(axis=1)
    everyone = np.sort((np.unpackbits(bits.codes, axis=1, count=100) != code).sum(axis=1))
    assert distances[:20].tolist() == everyone[1:21].tolist()
    assert distances[20:].tolist() == everyone[-20:].tolist()
    pixels = decoded(bit_picture(bits, ["word5"], n=20))
    scale = pixels.shape[1] // 100
    assert np.array_equal(pixels[: 20 * scale : scale, ::scale], rows[:20])
    assert np.array_equal(pixels[-20 * scale :: scale, ::scale], rows[20:])


# -- the verbs -------------------------------------------------------------------------------------


def test_evaluate_prints_the_shape_that_the_design_promises(tmp_path, vectors, saved, small_data):
    embits.write_vectors(tmp_path / "v.vec", vectors)
    done = run("evaluate", saved, "--raw", tmp_path / "v.vec", "--data", small_data, "--json")
    assert done.returncode == 0, done.stderr
    raw, bits = json.loads(done.stdout)
    assert (raw["bits"], bits["bits"], bits["file"]) == (32 * 24, 100, str(saved))
    for entry in (raw, bits, bits["reconstruction"]):
        assert set(entry["similarity"]["MEN"]) == {"spearman", "pairs", "oov"}
        assert -1 <= entry["similarity"]["fisher_mean"] <= 1
        assert 0 <= entry["classification"]["ag_news"]["accuracy"] <= 1
    for kind in ("semantic", "syntactic"):
        assert set(bits["analogy"][kind]) == {"accuracy", "questions", "oov"}
    assert {"recall_at_10", "asymmetric_recall_at_10"} <= set(bits["neighbors"])
    assert {"cosine", "mse"} <= set(bits["reconstruction"])


@pytest.mark.parametrize("task", ["neighbors", "speed"])
def test_a_file_of_other_dimensions_than_the_raw_vectors_is_noted(tmp_path, vectors, saved, task):
    embits.write_vectors(tmp_path / "v.vec", vectors)
    narrow = embits.WordVectors(vectors.words, vectors.matrix[:, :8])
    embits.binarize(narrow, 16, "lsh").save(tmp_path / "narrow.safetensors")
    done = run("evaluate", saved, "narrow.safetensors", "--raw", "v.vec", "--tasks", task,
               cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if "note" in line]
    assert len(notes) == 1
    assert "narrow.safetensors: " in notes[0]
    assert "raw vectors of 24 dimensions, expected 8" in notes[0]


def test_evaluate_holds_only_the_tasks_asked_for(saved, small_data):
    done = run("evaluate", saved, "--tasks", "similarity", "--json",
               env=os.environ | {"EMBITS_DATA": str(small_data)})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)[0]) == {"file", "method", "bits", "words", "similarity"}


def test_evaluate_without_data_says_what_to_do(saved):
    env = {name: value for name, value in os.environ.items() if name != "EMBITS_DATA"}
    done = run("evaluate", saved, env=env)
    assert done.returncode == 1
    assert "give --data DIR, or set EMBITS_DATA" in done.stderr
    assert run("evaluate", saved, "--tasks", "juggling").returncode == 2


def test_without_data_the_tasks_that_need_none_run(tmp_path, vectors, saved):
    env = {name: value for name, value in os.environ.items() if name != "EMBITS_DATA"}
    embits.write_vectors(tmp_path / "v.vec", vectors)
    done = run("evaluate", saved, "--raw", tmp_path / "v.vec", "--json", env=env)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)[-1]
    assert {"neighbors", "reconstruction"} < set(scores)
    assert not {"similarity", "analogy", "classification", "retrieval"} & set(scores)
    assert "without a folder of data sets" in done.stderr
    done = run("compare", tmp_path / "v.vec", "--bits", "16", "--methods", "lsh", "--report",
               tmp_path / "report", env=env)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "similarity, analogy, classification are left out" in done.stderr


def test_compare_and_picture_write_their_files(tmp_path, vectors, saved, small_data):
    pytest.importorskip("matplotlib")
    embits.write_vectors(tmp_path / "v.vec", vectors)
    done = run("compare", tmp_path / "v.vec", "--bits", "16,32", "--methods", "lsh,sign",
               "--tasks", "similarity,neighbors", "--data", small_data, "--report",
               tmp_path / "r", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [entry["bits"] for entry in json.loads(done.stdout)] == [768, 16, 32, 24]
    report = (tmp_path / "r/report.md").read_text()
    assert hashlib.sha256((tmp_path / "v.vec").read_bytes()).hexdigest() in report
    assert run("compare", tmp_path / "v.vec", "--bits", "0", "--report", "x").returncode == 2
    done = run("picture", saved, "word1", "word2", "-o", tmp_path / "p.png")
    assert done.returncode == 0, done.stderr
    assert decoded((tmp_path / "p.png").read_bytes()).shape[1] % 100 == 0
    done = run("picture", saved, "wordx", "-o", tmp_path / "q.png")
    assert done.returncode == 1
    assert "did you mean" in done.stderr
    assert not (tmp_path / "q.png").exists()


def test_a_report_has_the_command_that_makes_it_again(tmp_path):
    pytest.importorskip("matplotlib")
    np.save(tmp_path / "m.npy", np.random.default_rng(0).normal(size=(300, 16)))
    options = ["--bits", "32", "--methods", "lsh", "--tasks", "neighbors", "--bootstrap", "0"]
    for given, recorded in (([], False), (["--no-ids"], True)):
        arguments = [*options, *given, "--report", str(tmp_path / f"report-{recorded}")]
        done = CliRunner().invoke(embits_cli, ["compare", str(tmp_path / "m.npy"), *arguments])
        assert done.exit_code == 0, done.output
        page = (tmp_path / f"report-{recorded}/report.md").read_text()
        assert "embits compare m.npy --bits 32 --methods lsh" in page
        assert "--report DIR --tasks neighbors --bootstrap 0" in page.replace("\\", "")
        assert ("--no-ids" in page) == recorded
        assert "--skip-bad" not in page


def test_compare_takes_parameters_and_records_every_option(tmp_path, vectors):
    np.save(tmp_path / "v.npy", vectors.matrix)
    (tmp_path / "words.txt").write_text("\n".join(vectors.words))
    command = ["compare", "v.npy", "--methods", "itq,lsh", "--bits", "24",
               "--param", "iterations=2", "--tasks", "neighbors",
               "--bootstrap", "20", "--limit", "500", "--words", "words.txt", "--skip-bad",
               "--fit-rows", "all", "--seeds", "3", "--latex", "--report",
               "r", "--json"]  # fmt: skip
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "skipped" not in done.stderr, done.stderr
    _, itq, lsh = json.loads(done.stdout)
    assert (itq["params"]["iterations"], lsh["method"]) == (2, "lsh")
    settings = json.loads((tmp_path / "r/results.json").read_text())["settings"]
    recorded = settings["command"]
    for option in ("--methods itq,lsh", "--bits 24", "--seeds 3",
                   "--param iterations=2", "--tasks neighbors", "--latex",
                   "--bootstrap 20", "--limit 500", "--words words.txt", "--skip-bad",
                   "--fit-rows all"):  # fmt: skip
        assert option in recorded
    done = run("compare", "v.npy", "--no-ids", "--bits", "8", "--methods", "lsh", "--tasks",
               "neighbors", "--report", "n", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    settings = json.loads((tmp_path / "n/results.json").read_text())["settings"]
    assert settings["command"].endswith("--no-ids")
