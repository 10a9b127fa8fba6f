"""JavaScript searches files with cells as Python does, from memory and from a server."""

import inspect
import json
import uuid

import numpy as np
import pytest

import embits
from tests.support.javascript import clustered, needs_node, node

pytestmark = needs_node

if "cells" not in inspect.signature(embits.binarize).parameters:
    pytest.skip("needs cells", allow_module_level=True)

ROWS, QUERIES = 3000, 3
METRICS = ("hamming", "asymmetric", "decoded")
OPTIONS = [
    {"metric": metric, "k": 10, **reading}
    for metric in METRICS
    for reading in ({"recall": 0.9}, {"recall": 1}, {"probes": 5}, {"recall": 0.8, "where": "even"})
] + [{"metric": metric, "probes": 1, "k": k} for metric in METRICS for k in (200, 0)]
IDS = {
    "numbers": lambda n: [str(7 * i + 3) for i in range(n)],
    "counted": lambda n: None,
    "uuids": lambda n: [str(uuid.UUID(int=i * 12345678901234567890)) for i in range(n)],
    "text": lambda n: [f"page {i * 7919 % n} of a book {'é' * (i % 5)}" for i in range(n)],
    "sorted": lambda n: [f"page {i:06}" for i in range(n)],
}


def files(folder, kind):
    """A file with cells, questions, and Python's answers."""
    x = clustered(ROWS, 1)
    vectors = embits.WordVectors(IDS[kind](ROWS), x)
    method = "near-lossless" if kind == "text" else "itq"
    options = {"steps": 20} if kind == "text" else {}
    bits = embits.binarize(vectors, 96, method, cells=40, **options)
    bits.save(folder / "file.safetensors")
    queries = clustered(QUERIES, 2)
    questions, answers = [], []
    for query in queries:
        for options in OPTIONS:
            where = np.arange(ROWS) % 2 == 0 if "where" in options else None
            asked = {} if where is None else {"where": where.tolist()}
            # Without a metric, vectors are compared by "asymmetric".
            asked |= {n: each for n, each in options.items() if each not in ("asymmetric", "even")}
            questions.append({"query": {"vector": query.tolist()}, "options": asked})
            names = options.keys() - {"where", "probes"}
            reading = {name: options[name] for name in names}
            if "probes" in options:
                reading["recall"] = embits.Probes(options["probes"])
            answers.append(bits.search(query, where=where, **reading))
    (folder / "questions.json").write_text(json.dumps(questions))
    return bits, answers


def assert_same(found, expected):
    """The same rows and scores; rows at the end may be tied."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        values = np.asarray(other[0], float)
        assert np.allclose([value for _, _, value in one], values, rtol=0, atol=4e-6)
        inner = np.flatnonzero(np.append(np.abs(np.diff(values)) > 1e-5, False))
        inner = [i for i in inner if i == 0 or values[i] != values[i - 1]]
        assert [one[i][0] for i in inner] == [int(other.rows[i]) for i in inner]


@pytest.mark.parametrize("kind", IDS)
def test_javascript_reads_the_cells_that_python_reads(tmp_path, kind):
    bits, expected = files(tmp_path, kind)
    found = json.loads(node("remote.mjs", tmp_path))
    assert found["cells"] == 40
    for name in ("answers", "uncached", "whole", "local"):
        assert_same(found[name], expected)
    ids = {row: word for answer in found["answers"] for row, word, _ in answer}
    rows = np.array(sorted(ids))
    assert [str(each) for each in bits.ids(rows)] == [ids[row] for row in rows]
    assert found["again"] == 0  # what was read is kept


def test_a_search_reads_a_small_part_of_the_file(tmp_path):
    x = clustered(40_000, 1)
    embits.binarize(x, 96, "itq", cells=400).save(tmp_path / "file.safetensors")
    question = {"query": {"vector": x[5].tolist()}, "options": {}}
    (tmp_path / "questions.json").write_text(json.dumps([question]))
    found = json.loads(node("remote.mjs", tmp_path))
    assert found["bytes"] < found["size"] / 4
    assert found["answers"][0][0][0] == 5
    assert found["wholeRequests"] == 1
    assert found["said"] == [each for each in found["said"] if "the server has no ranges" in each]
    assert len(found["said"]) == 1


def damaged(folder, name, change):
    content = bytearray((folder / "file.safetensors").read_bytes())
    length = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:length])
    places = {key: header[key]["data_offsets"] for key in header if key != "__metadata__"}
    change(content, {key: (length + a, length + b) for key, (a, b) in places.items()})
    (folder / f"damaged-{name}.safetensors").write_bytes(content)


def flipped(name):
    def change(content, places):
        for at in range(*places[name]):
            content[at] ^= 1

    return change


def test_damage_at_a_server_is_found_in_what_is_read(tmp_path):
    files(tmp_path, "text")
    names = ["codes", "order", "centers", "starts", "curve", "sha256"]
    for name in names:
        damaged(tmp_path, name, flipped(name if name == "codes" else f"cells.{name}"))
    damaged(tmp_path, "coder", flipped("coder.W"))
    damaged(tmp_path, "header", lambda content, _: content.__setitem__(200, content[200] ^ 1))
    plain = embits.binarize(clustered(100, 1), 96, "itq")
    plain.save(tmp_path / "damaged-without-cells.safetensors")
    (tmp_path / "damaged-empty.safetensors").write_bytes(b"")
    found = json.loads(node("remote.mjs", tmp_path))["errors"]
    for name in (*names, "coder", "header"):
        assert found[f"damaged-{name}.safetensors"].startswith("FormatError: "), name
    assert "has no cells" in found["damaged-without-cells.safetensors"]
    assert found["damaged-empty.safetensors"]
    assert "has changed" in found["changed"]
    assert found["word"].startswith("TypeError")
    assert found["both"].startswith("TypeError")
    assert found["dot"].startswith("RangeError")
