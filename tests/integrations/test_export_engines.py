"""JSON lines for Elasticsearch, OpenSearch and Vespa, read back as the engines read them."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.integrations import export
from tests.support.program import run

ENGINES = ("elasticsearch", "opensearch", "vespa")


def fed(path, to):
    """The ids, and the bits of each code, as an engine reads the lines."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if to == "vespa":
        ids = [line["put"].split("::", 1)[1] for line in lines]
        codes = [list(bytes.fromhex(line["fields"]["code"]["values"])) for line in lines]
    else:
        ids = [line["index"]["_id"] for line in lines[::2]]
        signed = [line["code"] for line in lines[1::2]]
        assert all(-128 <= byte <= 127 for code in signed for byte in code)
        codes = [[byte % 256 for byte in code] for code in signed]
    return ids, [[byte >> (7 - i) & 1 for byte in code for i in range(8)] for code in codes]


def width(mapping, to):
    """How many bits the mapping says that a code has."""
    if to == "vespa":
        return 8 * int(re.search(r"field code type tensor<int8>\(x\[(\d+)\]\)", mapping)[1])
    field = mapping["mappings"]["properties"]["code"]
    return field["dims" if to == "elasticsearch" else "dimension"]


@pytest.mark.parametrize("to", ENGINES)
@settings(max_examples=15, deadline=None)
@given(
    ids=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
                 min_size=1, max_size=12, unique=True),
    n_bits=st.integers(1, 130), seed=st.integers(0, 99),
)  # fmt: skip
def test_the_lines_have_the_ids_and_the_hamming_distances(tmp_path_factory, to, ids, n_bits, seed):
    matrix = np.random.default_rng(seed).normal(size=(len(ids), 7))
    bits = embits.binarize(embits.WordVectors(ids, matrix), n_bits, "lsh")
    path = tmp_path_factory.mktemp("fed") / "codes.jsonl"
    facts = export(bits, to, str(path))
    read, codes = fed(path, to)
    assert read == ids
    assert {len(code) for code in codes} == {width(facts["mapping"], to)}
    distances, rows = bits.search(bits.codes[0], len(ids))
    there = [sum(a != b for a, b in zip(codes[0], codes[row], strict=True)) for row in rows]
    assert there == distances.tolist()


@pytest.mark.parametrize("to", ENGINES)
def test_rows_without_ids_have_their_numbers(tmp_path, to):
    bits = embits.binarize(np.random.default_rng(0).normal(size=(40, 6)), 16, "lsh")
    done = []
    export(bits, to, str(tmp_path / "c.jsonl"), progress=lambda *at: done.append(at))
    assert fed(tmp_path / "c.jsonl", to)[0] == [str(row) for row in range(40)]
    assert done[-1] == (40, 40)


def without_decoder(coder, X):
    coder.decoder_ = np.zeros((coder.n_bits_, X.shape[1]), np.float32)
    coder.offset_ = np.zeros(X.shape[1], np.float32)
    return coder


def test_what_an_engine_cannot_hold_is_refused_and_nothing_is_written(tmp_path, monkeypatch):
    path = tmp_path / "c.jsonl"
    long = embits.binarize(embits.WordVectors(["ä" * 257, "b"], np.eye(2)), 8, "lsh")
    monkeypatch.setattr(embits.RandomHyperplanes, "_with_decoder", without_decoder)  # takes minutes
    wide = embits.binarize(np.eye(2), 16_008, "lsh")
    for bits, to, options, message in (
        (long, "elasticsearch", {}, "row 0 has 514 bytes"),
        (wide, "opensearch", {}, "16,008 bits, expected at most 16,000"),
        (wide, "vespa", {"schema": "a b"}, "schema is 'a b'"),
        (wide, "elasticsearch", {"field": 7}, "field is 7"),
    ):
        with pytest.raises(embits.InputError, match=message):
            export(bits, to, str(path), **options)
    assert not list(tmp_path.iterdir())
    path.write_text("mine")
    with pytest.raises(embits.InputError, match="exists"):
        export(wide, "vespa", str(path))


def test_the_command_prints_the_mapping(bits, tmp_path):
    bits.save(tmp_path / "b.safetensors")
    verb = ["export", tmp_path / "b.safetensors", "-o", tmp_path / "c.jsonl", "--force", "--to"]
    printed = run(*verb, "opensearch").stdout
    facts = json.loads(run(*verb, "opensearch", "--json").stdout)
    assert json.loads(printed[printed.index("\n") :]) == facts["mapping"]
    assert "distance-metric: hamming" in run(*verb, "vespa").stdout
