"""The command line as a program: output, JSON shapes, exit codes, one-line errors."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
import embits.cli
from embits.cli import GROUPS, SHARED, VERBS
from tests.support.program import messages, run
from tests.support.vectors import clustered


def answer(*args):
    done = run(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, vectors):
    folder = tmp_path_factory.mktemp("cli")
    (folder / "empty").mkdir()
    embits.write_vectors(folder / "v.vec", vectors)
    done = run("binarize", folder / "v.vec", "-o", folder / "b.safetensors", "--bits", 96,
               "--method", "paper")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "600 rows × 96 bits" in done.stdout
    return folder


def test_binarize_gives_what_python_gives(folder, vectors):
    from_cli = embits.load(folder / "b.safetensors", verify=True)
    assert np.array_equal(from_cli.codes, embits.binarize(vectors, 96, "paper").codes)


def test_neighbors_json(folder):
    file = folder / "b.safetensors"
    got = answer("neighbors", file, "word1", "word2", "-k", 3)
    assert got["file"] == str(file)
    assert got["k"] == 3
    assert [q["word"] for q in got["queries"]] == ["word1", "word2"]
    expected = embits.load(file).most_similar("word1", topn=3)
    assert [(n["word"], n["similarity"]) for n in got["queries"][0]["neighbors"]] == [
        (word, round(s, 6)) for word, s in expected
    ]
    assert got["queries"][0]["ms"] > 0


def test_neighbors_are_filtered_by_files_of_ids_numbers_rows_or_a_mask(folder, tmp_path):
    file = folder / "b.safetensors"
    ids = [f"word{row}" for row in range(0, 600, 7)]
    (tmp_path / "ids.txt").write_text("\n".join(ids))
    few = np.arange(0, 600, 14)
    np.save(tmp_path / "rows.npy", few)
    np.save(tmp_path / "mask.npy", np.isin(np.arange(600), few))
    bits = embits.load(file)

    def found(*filters, of="word1", file=file):
        got = answer("neighbors", file, of, *filters)["queries"][0]["neighbors"]
        return [neighbor["word"] for neighbor in got]

    got = found("--where", tmp_path / "ids.txt", "--exclude", tmp_path / "mask.npy")
    expected = bits.most_similar("word1", where=ids, exclude=bits.select(rows=few))
    assert got == [word for word, _ in expected]
    expected = [word for word, _ in bits.most_similar("word1", rows=few)]
    assert found("--rows", tmp_path / "rows.npy") == expected
    assert found("--where", tmp_path / "mask.npy") == expected
    # Whole numbers are ids: this file has words, and the other one numbers.
    done = run("neighbors", file, "word1", "--where", tmp_path / "rows.npy")
    assert done.returncode == 1
    assert "whole numbers are ids" in done.stderr
    assert "--rows" in done.stderr
    numbers = embits.binarize(clustered(600, dims=24), 64, "lsh", ids=np.arange(600)[::-1])
    numbers.save(tmp_path / "numbers.safetensors")
    got = found("--where", tmp_path / "rows.npy", of="7", file=tmp_path / "numbers.safetensors")
    assert got == [word for word, _ in numbers.most_similar("7", where=list(map(str, few)))]
    done = run("neighbors", file, "word1", "--rows", tmp_path / "ids.txt")
    assert "expected a .npy of row numbers" in done.stderr
    both = ("--rows", tmp_path / "rows.npy", "--where", tmp_path / "mask.npy")
    assert "where and rows are given" in run("neighbors", file, "word1", *both).stderr


def test_similarity_analogy_info_and_verify_json(folder):
    file = folder / "b.safetensors"
    bits = embits.load(file)
    assert answer("similarity", file, "word1", "word2") == {
        "a": "word1", "b": "word2", "similarity": round(bits.similarity("word1", "word2"), 6),
    }  # fmt: skip
    got = answer("analogy", file, "word1", "word2", "word3", "-k", 2)
    assert (got["a"], got["b"], got["c"]) == ("word1", "word2", "word3")
    assert [a["word"] for a in got["answers"]] == [
        w for w, _ in bits.most_similar(["word2", "word3"], ["word1"], 2, metric="decoded")
    ]
    info = answer("info", file)
    size = file.stat().st_size
    assert (info["words"], info["bits"], info["dims"], info["method"]) == (600, 96, 24, "paper")
    assert (info["bytes"], info["float_bytes"]) == (size, 600 * 24 * 4)
    assert info["ratio"] == pytest.approx(info["float_bytes"] / size, abs=0.01)
    assert info["bytes_per_word"] == pytest.approx(size / 600, abs=0.01)
    assert answer("verify", file)["ok"] is True
    assert answer("info", "--cpu")["simd"]


def test_a_word_in_lower_case_is_found_by_any_letter_case(folder, tmp_path):
    words = ["france", "paris", "Rome", "rome", "japan"]
    bits = embits.binarize(embits.WordVectors(words, np.eye(5, 8)), 32, "lsh")
    bits.save(tmp_path / "b")
    got = answer("neighbors", tmp_path / "b", "France", "Rome", "-k", 2)["queries"]
    assert [each["word"] for each in got] == ["France", "Rome"]  # as they were asked for
    for each, word in zip(got, ["france", "Rome"], strict=True):
        found = [neighbor["word"] for neighbor in each["neighbors"]]
        assert found == [other for other, _ in bits.most_similar(word, topn=2)]
    assert answer("similarity", tmp_path / "b", "FRANCE", "france")["similarity"] == 1
    found = answer("analogy", tmp_path / "b", "France", "Paris", "Japan", "-k", 1)["answers"]
    assert found[0]["word"].lower() == "rome"
    assert run("neighbors", tmp_path / "b", "Spain").returncode == 1


def test_bench_json_has_every_width_and_the_floats(folder):
    got = answer("bench", folder / "b.safetensors", "--raw", folder / "v.vec", "--bits", "64")
    assert (got["words"], got["dims"], got["threads"]) == (600, 24, 1)
    ours = [entry["bits"] for entry in got["times"] if entry["name"] == "embits"]
    assert ours == [64, 96]
    assert {entry["name"] for entry in got["times"] if entry["bits"] is None} >= {"NumPy (BLAS)"}
    assert all(entry[f"top_{k}_ms"] > 0 for entry in got["times"] for k in (1, 10, 50))


def test_encode_codes_other_vectors_with_the_same_coder(folder, vectors):
    embits.write_vectors(folder / "w.npy", embits.WordVectors(["new"], vectors.matrix[5:6]))
    done = run("encode", folder / "b.safetensors", folder / "w.npy", "-o", folder / "w.emb")
    assert done.returncode == 0, done.stderr
    made, source = embits.load(folder / "w.emb"), embits.load(folder / "b.safetensors")
    assert np.array_equal(made["new"], source["word5"])


def test_export_writes_the_codes_and_their_words(folder):
    facts = answer("export", folder / "b.safetensors", "--to", "npy", "-o", folder / "codes.npy")
    bits = embits.load(folder / "b.safetensors")
    assert np.array_equal(np.load(folder / "codes.npy"), bits.codes)
    assert (folder / "codes.words").read_text().splitlines() == list(bits.words)
    size = (folder / "codes.npy").stat().st_size
    assert facts == {
        "to": "npy", "target": str(folder / "codes.npy"), "rows": 600, "bits": 96, "bytes": size,
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".vec", ".txt.gz", ".bin", ".npy", ".npz", ".parquet"])
def test_decode_writes_what_read_vectors_reads(folder, suffix):
    out = folder / f"floats{suffix}"
    assert answer("decode", folder / "b.safetensors", "-o", out)["words"] == 600
    bits, read = embits.load(folder / "b.safetensors"), embits.read_vectors(out)
    assert list(read.words) == list(bits.words)
    assert np.array_equal(read.matrix, bits.decode())


def test_ids_that_end_in_numbers_survive_decode_and_binarize(folder):
    ids = [f"doc {row}" for row in range(600)]
    bits = embits.load(folder / "b.safetensors")
    embits.BinaryVectors(ids, np.array(bits.codes), bits.coder).save(folder / "ids.safetensors")
    done = run("decode", folder / "ids.safetensors", "-o", folder / "dec.npy")
    assert done.returncode == 0, done.stderr
    done = run(
        "binarize", folder / "dec.npy", "-o", folder / "again", "--bits", 8, "--method", "lsh"
    )
    assert done.returncode == 0, done.stderr
    assert list(embits.load(folder / "again").words) == ids


def test_decode_of_some_words(folder):
    out = folder / "few.vec"
    done = run(
        "decode", folder / "b.safetensors", "-o", out, "--words", "word7", "--words", "word2"
    )
    assert done.returncode == 0, done.stderr
    assert embits.read_vectors(out).words == ["word7", "word2"]


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["neighbors", "{f}/absent", "x"], 1, "absent: no such file"),
        (["neighbors", "{f}/b.safetensors", "wordl"], 1, "did you mean 'word0'"),
        (["neighbors", "{f}/v.vec", "x"], 1, "not an embits file"),
        (
            ["export", "{f}/b.safetensors", "--to", "npy", "-o", "{f}/o.npy", "--option", "a=1"],
            1,
            "export to 'npy' takes no options, not a",
        ),
        (["export", "{f}/b.safetensors", "--to", "tape", "-o", "{f}/o"], 2, "'tape'"),
        (["binarize", "{f}/absent", "-o", "{f}/x"], 1, "absent"),
        (["binarize", "{f}/empty", "-o", "{f}/x"], 1, "a directory"),
        (["binarize", "{f}/v.vec", "-o", "{f}/no/x"], 1, "no such folder"),
        (["binarize", "{f}/v.vec", "-o", "{f}"], 1, "is a folder"),
        (["binarize", "{f}/v.vec", "-o", "{f}/x", "--method", "sign", "--bits", "7"], 1, "24"),
        (
            ["binarize", "{f}/v.vec", "-o", "{f}/x", "--param", "overwrite=1"],
            1,
            "no parameter 'overwrite' (it has",
        ),
        (
            ["binarize", "{f}/v.vec", "-o", "{f}/x", "--param", "n_bits=5"],
            2,
            "give --bits instead",
        ),
        (
            ["binarize", "{f}/v.vec", "-o", "{f}/x", "--param", "foo=1"],
            1,
            "no parameter 'foo' (it has",
        ),
        (["binarize", "{f}/b.safetensors", "-o", "{f}/x"], 1, "embits.load"),
        (["decode", "{f}/b.safetensors", "-o", "{f}/x.doc"], 1, "cannot tell the format"),
        (["binarize", "{f}/v.vec"], 2, "--output"),
        (["binarize", "{f}/v.vec", "-o", "{f}/x", "--bits", "0"], 2, "--bits"),
        (["binarize", "{f}/v.vec", "-o", "{f}/x", "--method", "x"], 2, "--method"),
        (["frobnicate"], 2, "frobnicate"),
        (["info"], 2, "FILE"),
    ],
)
def test_errors_are_one_line_with_the_right_exit_code(folder, args, code, says):
    done = run(*(arg.format(f=folder) for arg in args))
    assert done.returncode == code, done.stderr
    assert says.lower() in done.stderr.lower()
    assert "Traceback" not in done.stderr
    if code == 1:
        said = messages(done.stderr)
        assert len(said.splitlines()) == 1
        assert said.startswith("embits: error: ")
    assert done.stdout == ""
    assert not (folder / "x").exists()


def test_a_damaged_file_is_refused_by_verify(folder):
    raw = bytearray((folder / "b.safetensors").read_bytes())
    raw[-10] ^= 1
    (folder / "damaged").write_bytes(raw)
    done = run("verify", folder / "damaged")
    assert done.returncode == 1
    assert "does not match" in done.stderr or "do not match" in done.stderr
    as_json = run("verify", folder / "damaged", "--json")
    assert (as_json.returncode, as_json.stderr) == (1, done.stderr)
    said = json.loads(as_json.stdout)
    assert (said["file"], said["ok"]) == (str(folder / "damaged"), False)
    assert done.stderr == f"embits: error: {said['error']}\n"


def test_notes_of_the_reader_are_shown_as_notes(folder):
    (folder / "twice.txt").write_text("a 1 2\nb 2 3\na 3 4\n" * 1)
    done = run("binarize", folder / "twice.txt", "-o", folder / "twice", "--bits", 8)
    assert done.returncode == 0
    assert done.stderr.startswith("embits: note: ")
    assert answer("info", folder / "twice")["method"] == "near-lossless"


def test_words_in_another_encoding_are_read(folder, tmp_path):
    (tmp_path / "v.txt").write_bytes("naïve 1 2\ncafé 4 5\nb 1 0\n".encode("latin-1"))
    command = ["binarize", tmp_path / "v.txt", "-o", tmp_path / "b", "--bits", 8, "--method", "lsh"]
    done = run(*command)
    assert "2 words not in valid UTF-8" in done.stderr
    assert "--encoding" in done.stderr
    assert run(*command, "--encoding", "latin-1").stderr == ""
    assert list(embits.load(tmp_path / "b").words) == ["naïve", "café", "b"]
    assert "'latin-9000'" in run(*command, "--encoding", "latin-9000").stderr


def test_every_verb_has_help_with_an_example():
    code = (
        "import embits.cli as c, click\n"
        "for verb in c.VERBS:\n"
        "    command = c.embits.get_command(click.Context(c.embits), verb)\n"
        "    print('\\0' + command.get_help(click.Context(command, info_name=verb)))"
    )
    helps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for verb, text in zip(VERBS, helps.stdout.split("\0")[1:], strict=True):
        assert f"embits {verb}" in text
        assert "Exit codes:" in text
    done = run("binarize", "--help")
    assert done.returncode == 0
    assert "[default: near-lossless]" in " ".join(done.stdout.split())


def test_the_verbs_are_summed_up_in_whole_lines_of_80_columns():
    shown = run("--help", env={**os.environ, "COLUMNS": "80"}).stdout.splitlines()
    for title, verbs in GROUPS.items():
        assert f"{title}:" in shown
        for verb, says in verbs.items():
            assert f"  {verb:<10}  {says}" in shown


def test_info_folds_what_is_long(folder):
    lines = run("info", folder / "b.safetensors").stdout.splitlines()
    assert lines[0].split() == ["rows", "600"]
    assert lines[-1].split() == ["subwords", "no"]
    assert max(map(len, lines)) <= 80


def test_no_module_imports_the_module_of_a_verb():
    """What two verbs need has a module of its own."""
    verbs = {f"embits.cli.{SHARED.get(verb, verb)}" for verb in VERBS}
    for path in Path(embits.cli.__file__).parent.glob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
        assert imported & verbs == set(), path.name


def test_words_of_a_matrix_and_words_to_decode_are_told_apart(folder):
    helps = {verb: " ".join(run(verb, "--help").stdout.split()) for verb in ("binarize", "decode")}
    assert "--words FILE" in helps["binarize"]
    assert "--word, --words WORD" in helps["decode"]
    for name in ("--word", "--words"):
        target = folder / f"{name}.vec"
        got = answer("decode", folder / "b.safetensors", "-o", target, name, "word7")
        assert got["words"] == 1


@pytest.mark.parametrize("name", ["--param", "--option"])
def test_parameters_have_one_option_with_two_names(folder, name):
    done = run("binarize", folder / "v.vec", "-o", folder / "p", "--method", "paper", name, "a=1")
    assert "no parameter 'a' (it has" in done.stderr
    done = run("export", folder / "b.safetensors", "--to", "npy", "-o", folder / "o.npy", name, "a")
    assert done.returncode == 2
    assert "is not NAME=VALUE" in done.stderr


@pytest.mark.parametrize("verb", ["binarize", "bench", "compare"])
def test_too_many_bits_are_wrong_usage(folder, verb):
    file = folder / ("b.safetensors" if verb == "bench" else "v.vec")
    target = {"binarize": ["-o", folder / "x"], "compare": ["--report", folder / "x"]}.get(verb, [])
    done = run(verb, file, *target, "--bits", 65_537)
    assert done.returncode == 2
    assert "65536" in done.stderr


@pytest.mark.parametrize("columns", ["40", "60", "200"])
def test_summaries_of_the_verbs_are_whole_at_any_width(columns):
    shown = " ".join(run("--help", env={**os.environ, "COLUMNS": columns}).stdout.split())
    assert [s for verbs in GROUPS.values() for s in verbs.values() if s not in shown] == []


def test_a_closed_pipe_is_quiet(folder):
    command = f"{sys.executable} -m embits neighbors {folder}/b.safetensors word1 -k 599 | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_words_print_in_any_terminal_encoding(tmp_path):
    bits = embits.binarize(embits.WordVectors(["naïve", "日本", "b"], np.eye(3)), 8, "paper")
    bits.save(tmp_path / "u")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = run("neighbors", tmp_path / "u", "b", env=env)
    assert done.returncode == 0, done.stderr
