"""`--ray` on the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest

import embits
from tests.support.program import messages

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from embits.integrations.parquet import read_codes  # noqa: E402
from tests.support.ray_jobs import (  # noqa: E402
    spoilt,
    with_ray,
)

pytestmark = pytest.mark.slow


def test_the_command_line_binarizes_and_encodes(folder, matrix, tmp_path):
    out = tmp_path / "out"
    done = with_ray(
        "binarize", folder, "-o", out, "--ray", "--method", "lsh", "--bits", "64", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == len(matrix)
    bits = read_codes(out)
    assert np.array_equal(bits.codes, bits.coder.transform(matrix))

    done = with_ray("encode", out / "_coder.safetensors", folder, "-o", tmp_path / "again", "--ray")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("6,000 rows × 64 bits in ")
    assert np.array_equal(read_codes(tmp_path / "again").codes, bits.codes)


def embits_says(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "embits", *map(str, arguments)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_verb_takes_the_folder_of_a_job(folder, matrix, tmp_path):
    out = tmp_path / "out"
    done = with_ray("binarize", folder, "-o", out, "--ray", "--bits", "64", "--method", "lsh",
               "--ids", "word", "--keep", "id")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    bits = embits.load(out)
    bits.save(tmp_path / "file.safetensors")
    words = embits.WordVectors(list(bits.words), matrix)
    embits.write_vectors(tmp_path / "raw.npz", words)

    info = json.loads(embits_says("info", out, "--json"))
    assert (info["words"], info["bits"], info["method"]) == (len(matrix), 64, "lsh")
    assert info["bytes"] == sum(path.stat().st_size for path in out.iterdir())
    for verb in (["neighbors"], ["similarity"], ["verify"]):
        words = {"neighbors": ["word7"], "similarity": ["word7", "word8"]}.get(verb[0], [])
        of_folder = json.loads(embits_says(*verb, out, *words, "--json"))
        of_file = json.loads(embits_says(*verb, tmp_path / "file.safetensors", *words, "--json"))
        for answer in (of_folder, of_file):
            answer.pop("file", None)
            for query in answer.get("queries", []):
                query.pop("ms")
        assert of_folder == of_file

    embits_says("export", out, "--to", "npy", "-o", tmp_path / "codes.npy")
    assert np.array_equal(np.load(tmp_path / "codes.npy"), bits.codes)
    embits_says("decode", out, "-o", tmp_path / "floats.npy")
    assert np.array_equal(np.load(tmp_path / "floats.npy"), bits.decode())
    scores = embits_says(
        "evaluate", out, "--raw", tmp_path / "raw.npz", "--tasks", "neighbors", "--json"
    )
    entry = json.loads(scores)[-1]
    assert entry["file"] == str(out)
    assert 0 < entry["neighbors"]["recall_at_10"] <= 1
    embits_says("page", out, "-o", tmp_path / "site")
    vectors = next((tmp_path / "site").glob("vectors-*.safetensors"))
    assert np.array_equal(embits.load(vectors).codes, bits.codes)


def test_the_command_line_fails_in_one_line(matrix, coder, tmp_path):
    embits.BinaryVectors.encoded(embits.WordVectors(None, matrix[:1]), coder).save(tmp_path / "c")
    table = pa.table({"vector": spoilt(matrix[:2000], "nan")})
    pq.write_table(table, tmp_path / "bad.parquet")
    done = with_ray(
        "encode", tmp_path / "c", tmp_path / "bad.parquet", "-o", tmp_path / "out", "--ray"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("embits: error: ")
    assert "row 1234: found nan" in done.stderr
    assert messages(done.stderr).count("\n") == 1


def test_the_command_line_searches(folder, matrix, coder, tmp_path):
    made = embits.open_collection(tmp_path / "news", coder)
    made.add(matrix[:700], ids=[f"word{i}" for i in range(700)])
    (tmp_path / "allowed.txt").write_text("".join(f"word{i}\n" for i in range(0, 700, 2)))
    near = tmp_path / "near.parquet"
    search = ("search", made.path, folder, "-k", "3", "--ids", "word", "-o", near, "--ray")
    done = with_ray(*search, "--where", tmp_path / "allowed.txt", "--metric", "asymmetric")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("18,000 results of 6,000 queries in ")
    expected = made.search(
        matrix, 3, metric="asymmetric", where=made.select(rows=np.arange(0, 700, 2))
    )
    table = pq.read_table(near)
    assert table["id"].to_pylist() == made.ids(expected.rows).ravel().tolist()
    done = with_ray(*search)
    assert done.returncode == 1
    assert messages(done.stderr).count("\n") == 1
    assert "near.parquet exists" in done.stderr
    done = with_ray(*search, "--overwrite", "--json")
    assert json.loads(done.stdout)["rows"] == 18_000
    assert with_ray(*search, "--tsv").returncode == 2
    assert with_ray("search", made.path, folder, "-o", near).returncode == 2
