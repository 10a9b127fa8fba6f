"""The examples run as they are, on small made-up data; and on the real data where it is found."""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
from tests.support.vectors import clustered

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK = ("--method", "lsh")


def run(script, *arguments, cwd):
    """What an example prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(printed, first):
    """The numbers of the line that starts with `first`."""
    line = next(line for line in printed.splitlines() if line.startswith(first))
    return [float(word) for word in line.removeprefix(first).split() if word[0].isdigit()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data sets of every kind, and word vectors that know them."""
    path = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    words = ["queen", "guitar", "good", "bad", *(f"word{i}" for i in range(500))]
    matrix = clustered(len(words), 20)
    matrix[2:4] = np.array([[1.0], [-1.0]]) * matrix[2]  # good and bad, to tell texts by
    embits.write_vectors(path / "words.vec", embits.WordVectors(words, matrix))
    (path / "similarity").mkdir()
    pairs = rng.integers(0, 500, (40, 2))
    lines = [f"word{a} word{b} {matrix[a + 4] @ matrix[b + 4]:.3f}\n" for a, b in pairs]
    (path / "similarity/MEN.txt").write_text("".join(lines))
    (path / "analogy").mkdir()
    (path / "analogy/questions-words.txt").write_text(": gram\nword1 word2 word3 word4\n")
    texts = path / "classification/toy"
    texts.mkdir(parents=True)
    for name, n in (("train", 60), ("test", 30)):
        rows = [f'"{1 + i % 2}","","{("good", "bad")[i % 2]} word{i}"\n' for i in range(n)]
        (texts / f"{name}.csv").write_text("".join(rows))
    (path / "sentences").mkdir()
    for seed, name in enumerate(("agnews_train10k", "dbpedia14k", "agnews_test")):
        embeddings = clustered(400, 48, seed=seed % 2)
        np.save(path / f"sentences/{name}.npy", embeddings.astype("f2"))
        with gzip.open(path / f"sentences/{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("label\ttext\n")
            file.writelines(f"1\tThe text {i} of {name}\n" for i in range(400))
    return path


def test_semantic_search_runs_on_the_sentences_and_on_a_file_of_ones_own(folder, tmp_path):
    printed = run("semantic_search.py", "--data", folder, "--bits", "256", *QUICK, cwd=tmp_path)
    assert "800 embeddings × 48 floats, 400 queries" in printed
    _, by_bits, _, by_query, _, rescored, _ = cells(printed, "embits 256")
    assert 20 < by_bits < by_query < rescored <= 100
    assert "Asked: The text 0 of agnews_test" in printed
    np.save(tmp_path / "mine.npy", clustered(500, 32))
    options = ("mine.npy", "--bits", "64", "-k", "5", *QUICK)
    printed = run("semantic_search.py", *options, cwd=tmp_path)
    assert "450 embeddings × 32 floats, 50 queries" in printed
    assert "recall@5" in printed
    printed = run("semantic_search.py", *options, "--queries", "mine.npy", cwd=tmp_path)
    assert "500 embeddings × 32 floats, 500 queries" in printed


def test_semantic_search_finds_more_than_sign_bits_on_the_real_sentences(data, tmp_path):
    options = (data / "sentences/agnews_test.npy", "--bits", "1024", *QUICK)
    printed = run("semantic_search.py", *options, cwd=tmp_path)
    assert cells(printed, "embits 1024")[1] > cells(printed, "ubinary 384")[1] > 50


def test_word_vectors_on_a_phone_takes_the_widest_file_that_fits(folder, tmp_path):
    options = (folder / "words.vec", "--data", folder, "--bits", "64,512", *QUICK)
    printed = run("word_vectors_on_a_phone.py", *options, "--budget", "0.04", cwd=tmp_path)
    assert "504 words × 20 floats" in printed
    assert "Within 0.04 MB: embits-phone/words.64.safetensors" in printed.replace(os.sep, "/")
    assert "  queen: " in printed
    assert cells(printed, "512 bits")[-1] > cells(printed, "64 bits")[-1]
    printed = run("word_vectors_on_a_phone.py", *options, "--budget", "0.001", cwd=tmp_path)
    assert "Nothing fits" in printed


def test_reproduce_the_paper_prints_gaps_and_writes_the_report(folder, tmp_path):
    pytest.importorskip("matplotlib")
    options = (folder / "words.vec", "--data", folder, "--methods", "lsh,sign")
    printed = run("reproduce_the_paper.py", *options, cwd=tmp_path)
    assert "MEN" in printed
    assert "lsh-256: done in" in printed
    assert (tmp_path / "embits-paper/report.md").stat().st_size > 2_000


def test_a_text_classifier_learns_from_bits(folder, tmp_path):
    pytest.importorskip("sklearn")
    options = ("--data", folder, "--dataset", "toy", "--vectors", folder / "words.vec")
    printed = run("text_classifier_on_bits.py", *options, "--bits", "256", *QUICK, cwd=tmp_path)
    assert "60 texts to learn from, 30 to test, 2 classes" in printed
    _, floats = cells(printed, "20 floats")
    _, bits, rebuilt = cells(printed, "256 bits")
    assert min(floats, bits, rebuilt) > 80


def test_a_site_is_not_built_without_its_packages(tmp_path):
    script = tmp_path / "build.py"
    script.write_text((EXAMPLES / "site_search/build.py").read_text())
    arguments = [sys.executable, script, "pages.json", "pages.npy", "site"]
    done = subprocess.run(arguments, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "node_modules/embits is missing: run npm install" in line
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    "script",
    sorted({path.name for path in EXAMPLES.glob("*.py")} - {"paper_scores.py", "shared.py"}),
)
def test_every_example_says_what_it_shows_and_how_long_it_takes(script):
    doc = (EXAMPLES / script).read_text().split('"""')[1]
    assert f"python examples/{script}" in doc
    assert "akes about" in doc


@pytest.mark.filterwarnings("ignore:fitted on")
@pytest.mark.parametrize(("column", "half"), [(1, False), (2, True)])
def test_small_sites_are_as_small_as_the_guide_says(tmp_path, column, half):
    page = EXAMPLES.parent / "docs/guides/site-search.md"
    rows = np.random.default_rng(0).normal(size=(700, 384)).astype("f4")
    bits = embits.binarize(rows, n_bits=256, steps=20)
    bits.slim((), half_decoder=half).save(tmp_path / "codes")
    once = (tmp_path / "codes").stat().st_size - bits.codes.nbytes
    table = re.findall(r"\| (?:float32|float16|int8) \|(.*)\|", page.read_text())
    assert len(table) == 3
    for line in table:
        cells = [int(re.sub(r"\D", "", cell)) for cell in line.split("|")]
        assert cells[column] == pytest.approx(once / (cells[0] - 32), rel=0.005)
