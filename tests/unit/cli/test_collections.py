"""The verbs that change collections, and the others on a collection."""

import json
import os

import numpy as np
import pytest

import embits
from embits.collection.changes import writer_lock
from embits.search.metrics import METRICS
from tests.support.program import messages, run
from tests.support.vectors import clustered

ROWS = clustered(300)


def answer(*arguments):
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(*arguments, code=1):
    """The one line on stderr."""
    done = run(*arguments)
    assert done.returncode == code
    said = messages(done.stderr)
    assert said.count("\n") == 1 or code == 2
    return said


@pytest.fixture
def folder(tmp_path):
    words = [f"w{i}" for i in range(300)]
    bits = embits.binarize(embits.WordVectors(words[:100], ROWS[:100]), n_bits=64, method="lsh")
    bits.save(tmp_path / "first.safetensors")
    parts = {"second": slice(100, 200), "third": slice(200, 300)}
    for name, part in parts.items():
        vectors = embits.WordVectors(words[part], ROWS[part])
        embits.write_vectors(tmp_path / f"{name}.npz", vectors)
    return tmp_path


@pytest.fixture
def collection(folder):
    path = folder / "c"
    answer("add", path, folder / "first.safetensors", "--coder", folder / "first.safetensors")
    answer("add", path, folder / "second.npz")
    answer("remove", path, "w3", "w150")
    return path


def test_add_remove_and_compact(folder):
    path, first = folder / "c", folder / "first.safetensors"
    facts = answer("add", path, first, "--coder", first)
    assert (facts["added"], facts["rows"], facts["pieces"]) == (100, 100, 1)
    facts = answer("add", path, folder / "second.npz", "--limit", "50")
    assert (facts["added"], facts["rows"]) == (50, 150)
    (folder / "ids.txt").write_text("w1\nw2\n\n")
    facts = answer("remove", path, "w3", "--ids", folder / "ids.txt")
    assert (facts["removed"], facts["rows"]) == (3, 147)
    assert answer("info", path)["removed"] == 3
    facts = answer("compact", path)
    assert (facts["rows"], facts["pieces"]) == (147, 1)
    info = answer("info", path)
    assert (info["words"], info["pieces"], info["removed"]) == (147, 1, 0)
    said = run("add", path, folder / "third.npz").stdout
    assert "100 rows added; 247 rows in 2 pieces" in said
    assert answer("verify", path)["ok"]


def test_rows_are_updated(folder, collection):
    embits.write_vectors(folder / "w5.npz", embits.WordVectors(["w5"], ROWS[250:251]))
    said = refused("add", collection, folder / "w5.npz")
    assert "'w5' already exists" in said
    assert "--update" in said
    assert answer("add", collection, folder / "w5.npz", "--update")["updated"] == 1
    assert ": 1 row updated; " in run("add", collection, folder / "w5.npz", "--update").stdout
    bits = embits.load(collection)
    assert np.array_equal(bits["w5"], bits.coder.encode(ROWS[250:251])[0])


def test_search_prints_ids_and_distances(folder, collection):
    np.save(folder / "queries.npy", ROWS[:3])
    bits = embits.load(collection)
    found = bits.search(ROWS[:3], 4, metric="hamming")
    asked = "search", collection, folder / "queries.npy", "-k", "4", "--metric", "hamming"
    result = answer(*asked)
    assert (result["k"], result["metric"]) == (4, "hamming")
    assert [each["query"] for each in result["queries"]] == ["0", "1", "2"]
    for each, rows, distances in zip(result["queries"], found.rows, found.distances, strict=True):
        assert [hit["id"] for hit in each["neighbors"]] == bits.ids(rows).tolist()
        assert [hit["distance"] for hit in each["neighbors"]] == distances.tolist()
    lines = run(*asked, "--tsv").stdout
    assert lines.splitlines()[0].split("\t") == ["0", bits.ids(found.rows)[0, 0], "0"]
    assert len(lines.splitlines()) == 12
    assert "w0" in run("search", collection, folder / "queries.npy").stdout


def test_the_names_of_queries_may_repeat(folder, collection):
    np.save(folder / "queries.npy", ROWS[:3])
    (folder / "queries.txt").write_text("same\nother\nsame\n")
    np.savez(folder / "named.npz", vectors=ROWS[:3], words=["same", "other", "same"])
    for name in ("queries.npy", "named.npz"):
        found = answer("search", collection, folder / name, "-k", "1")["queries"]
        assert [each["query"] for each in found] == ["same", "other", "same"]
        assert [each["neighbors"][0]["id"] for each in found] == ["w0", "w1", "w2"]


def test_search_takes_ids_filters_and_metrics(folder, collection):
    (folder / "queries.txt").write_text("w7\nw120\n")
    (folder / "allowed.txt").write_text("w7\nw8\nw9\nw120\n")
    np.save(folder / "rows.npy", np.arange(2, 198))
    (folder / "not.txt").write_text("w0\nw1\n")
    result = answer("search", collection, folder / "queries.txt", "--where", folder / "allowed.txt")
    assert [each["query"] for each in result["queries"]] == ["w7", "w120"]
    assert {hit["id"] for hit in result["queries"][0]["neighbors"]} == {"w7", "w8", "w9", "w120"}
    result = answer(
        "search", collection, folder / "queries.txt", "--where", folder / "allowed.txt",
        "--exclude", folder / "not.txt", "--metric", "decoded", "-k", "2",
    )  # fmt: skip
    assert result["queries"][0]["neighbors"][0]["id"] == "w7"
    assert "score" in result["queries"][0]["neighbors"][0]
    result = answer(
        "search", collection, folder / "queries.txt", "--rows", folder / "rows.npy", "-k", "300"
    )
    found = {hit["id"] for hit in result["queries"][0]["neighbors"]}
    assert found == set(embits.load(collection).ids()[2:])
    result = answer(
        "search", folder / "first.safetensors", folder / "second.npz", "--metric", "asymmetric",
        "--oversample", "4",
    )  # fmt: skip
    assert [each["query"] for each in result["queries"]][:2] == ["w100", "w101"]


def test_search_offers_every_metric(folder):
    bits = embits.binarize(ROWS, n_bits=64, method="lsh", lengths=True)
    bits.save(folder / "lengths.safetensors")
    np.save(folder / "queries.npy", ROWS[:2])
    for name, metric in METRICS.items():
        found = bits.search(ROWS[:2], 3, metric=name)
        got = answer("search", folder / "lengths.safetensors", folder / "queries.npy", "-k", "3",
                     "--metric", name)["queries"]  # fmt: skip
        assert [
            hit["id"] for each in got for hit in each["neighbors"]
        ] == found.ids.ravel().tolist()
        assert set(got[0]["neighbors"][0]) == {"id", metric.values.removesuffix("s")}


def test_every_verb_takes_a_collection(folder, collection):
    assert answer("neighbors", collection, "w5")["queries"][0]["neighbors"]
    assert answer("similarity", collection, "w5", "w6")["similarity"] > 0
    assert answer("analogy", collection, "w5", "w6", "w7")["answers"]
    assert answer("decode", collection, "-o", folder / "floats.npz")["words"] == 198
    assert answer("encode", collection, folder / "third.npz", "-o", folder / "e")["words"] == 100
    assert answer("duplicates", collection, "--within", "8")["groups"] is not None
    assert answer("picture", collection, "w5", "-o", folder / "p.png")
    assert answer("page", collection, "-o", folder / "site")["files"]
    assert answer("bench", collection, "--bits", "64")["words"] == 198
    for to, name in {"npy": "out.npy", "paper": "out", "word2vec": "out.vec"}.items():
        assert answer("export", collection, "--to", to, "-o", folder / name)["rows"] == 198
    assert (folder / "out.words").read_text().split()[:4] == ["w0", "w1", "w2", "w4"]
    facts = answer("add", folder / "copy", collection, "--coder", collection)
    assert (facts["added"], facts["rows"]) == (198, 198)


def test_what_cannot_be_done_is_said_in_one_line(folder, collection):
    first = folder / "first.safetensors"
    assert "--coder FILE" in refused("add", folder / "new", folder / "second.npz")
    assert "1 of 2 ids are unknown ('x')" in refused("remove", collection, "x", "w5")
    assert "a single file, and only collections can be changed" in refused("remove", first, "w5")
    assert "a single file" in refused("compact", first)
    assert "is a file, expected the folder" in refused("add", first, folder / "second.npz")
    assert "not a collection" in refused("compact", folder)
    assert "other files" in refused("add", folder, folder / "second.npz", "--coder", first)
    assert "give one of them" in refused("remove", collection, code=2)
    np.save(folder / "narrow.npy", ROWS[:3, :5])
    assert "5 dimensions, expected 24" in refused("search", collection, folder / "narrow.npy")
    (folder / "ids.txt").write_text("nobody\nw1\n")
    said = refused("search", collection, folder / "ids.txt")
    assert "or one id per line, but there is no 'nobody'" in said
    (folder / "ids.txt").write_text("w5\nnobody\n")
    assert "no word or id 'nobody'" in refused("search", collection, folder / "ids.txt")
    (folder / "q.txt").write_text("w5\n")
    message = refused("search", collection, folder / "q.txt", "--metric", "asymmetric")
    assert "needs float vectors" in message
    message = refused("search", collection, folder / "q.txt", "--where", folder / "ids.txt")
    assert "nobody" in message
    assert embits.load(collection, verify=True).manifest.generation == 3


def test_an_empty_file_of_ids_removes_nothing(folder, collection):
    (folder / "none.txt").write_text("\n")
    facts = answer("remove", collection, "--ids", folder / "none.txt")
    assert (facts["removed"], facts["rows"]) == (0, 198)


def test_a_file_of_ids_that_never_ends_or_is_far_too_large_is_refused(folder, collection):
    os.mkfifo(folder / "pipe")
    with (folder / "huge").open("wb") as file:
        file.truncate(6 << 30)  # sparse: it takes no room on the disk
    for name, found in (("pipe", "found a pipe"), ("huge", "bytes for 198 rows")):
        assert found in refused("remove", collection, "--ids", folder / name)
        assert found in refused("neighbors", collection, "w7", "--where", folder / name)


def test_a_change_waits_for_another_writer(folder, collection):
    with writer_lock(collection):
        for change in (("add", collection, folder / "third.npz"), ("remove", collection, "w5")):
            assert "is locked by process" in refused(*change, "--timeout", "0.1")
        assert "is locked by process" in refused("compact", collection)
    assert answer("remove", collection, "w5", "--timeout", "5")["removed"] == 1


def test_update_adds_words_that_are_new(folder, collection):
    vectors = embits.WordVectors(["w5", "new"], ROWS[250:252])
    embits.write_vectors(folder / "mixed.npz", vectors)
    facts = answer("add", collection, folder / "mixed.npz", "--update")
    assert (facts["updated"], facts["added"], facts["rows"]) == (1, 1, 199)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_first_add_that_fails_leaves_no_collection(folder, is_there):
    path = folder / "new"
    if is_there:
        path.mkdir()
    np.save(folder / "narrow.npy", ROWS[:3, :5])
    first = folder / "first.safetensors"
    refused("add", path, folder / "narrow.npy", "--coder", first)
    assert path.exists() == is_there
    assert not is_there or not list(path.iterdir())
    assert answer("add", path, first, "--coder", first)["rows"] == 100
    refused("add", path, folder / "narrow.npy", "--coder", first)
    assert len(embits.load(path)) == 100


def test_files_are_not_written_into_the_folder_of_a_collection(tmp_path):
    coder = embits.RandomHyperplanes(16).fit(np.eye(8))
    collection = embits.open_collection(tmp_path / "c", coder)
    collection.add(np.eye(8))
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, np.eye(8)), coder)
    bits.save(tmp_path / "other.safetensors")
    (piece,) = (tmp_path / "c").glob("piece-*")
    for source in ("c", "other.safetensors"):
        for name in (piece.name, "_coder.safetensors", "new.safetensors"):
            for verb in ("slim", "cells"):
                target = tmp_path / "c" / name
                assert run(verb, tmp_path / source, "-o", target, "--force").returncode == 1
    with pytest.raises(embits.InputError, match="in the folder of a collection"):
        bits.save(piece, overwrite=True)
    assert len(embits.load(tmp_path / "c", verify=True)) == 8
