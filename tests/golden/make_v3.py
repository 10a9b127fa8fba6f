"""Make the golden files of embits 0.3, once: they are never made again.

    python tests/golden/make_v3.py

Writes what 0.2 could not: v3-*.safetensors (nets, whitening, lengths, columns, cells and text
encoders), the collections collection-v2 and notes-v2, and in v3.json what each must answer.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import embits
from embits.coders.neural import coder as neural
from embits.collection import changes
from tests.support.static_models import write_model

HERE = Path(__file__).parent
TEXTS = ["the music of a river", "Boats, lakes; GUITARS", "日本 xylophone", ""]
SHORT = neural.EFFORTS["default"]._replace(
    steps=50, hidden=16, dropout=0.2, together=2, widest=(1, 1), epochs=(10,), after=(10,),
    rounds=2, tries=2,
)  # fmt: skip
RECORDS = [
    {"id": "a", "title": "Music", "text": "a song of the album", "year": 2020},
    {"id": "b", "text": "the river and the lake", "year": 2021, "tags": ["x", "y"]},
    {"id": "Zürich", "text": "train ticket", "year": 2022},
]


def vectors(n: int = 24, dims: int = 12) -> np.ndarray:
    """Sines: the same on every machine. Rows are of other lengths."""
    grid = np.arange(n * dims, dtype=np.float64).reshape(n, dims)
    return (np.sin(grid * grid / 7) * (1 + np.arange(n) % 5)[:, None]).astype("f4")


def ids(n: int = 24) -> list[str]:
    return [f"text {7 * i % n}, naïve 日本" for i in range(n)]


def with_layer() -> embits.Neural:
    """A net with a hidden layer of the encoder, whose recall is not asked."""
    with (
        mock.patch.object(neural, "LEAST_TOGETHER", 100),
        mock.patch.object(neural._Training, "_recalls", return_value=np.ones(2)),
        mock.patch.dict(neural.EFFORTS, {"default": SHORT}),
    ):
        coder = embits.Neural(n_bits=12).fit(vectors(400))
    assert coder.layer is not None
    return coder


def files() -> dict[str, Any]:
    X, texts = vectors(), embits.WordVectors(ids(), vectors())
    with mock.patch.dict(neural.EFFORTS, {"default": SHORT}):
        net = embits.Neural(n_bits=19).fit(X)
    whitened = embits.NearLossless(19, target="similarity", steps=20).fit(X)
    lsh = embits.RandomHyperplanes(n_bits=19).fit(X)
    columns = {
        "year": np.arange(2000, 2024).astype("u4"),
        "share": np.sin(np.arange(24)),
        "half": np.arange(24).astype("f2"),
    }
    return {
        "neural": embits.BinaryVectors.encoded(texts, net),
        "layer": embits.BinaryVectors.encoded(texts, with_layer()),
        "similarity": embits.BinaryVectors.encoded(texts, whitened),
        "lengths": embits.BinaryVectors.encoded(texts, lsh, lengths=True),
        "columns": embits.BinaryVectors(ids(), lsh.encode(X), lsh, columns=columns),
        "cells": embits.BinaryVectors.encoded(texts, lsh, lengths=True).with_cells(5),
        "encoder-tokens": encoder(True, n_bits=13, method="itq", weights="sif"),
        "encoder-net": encoder(False, n_bits=16, method="neural"),
        "encoder-words": words(lsh),
    }


def encoder(is_fitted: bool, **options: Any) -> embits.TextEncoder:
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder), shared=is_fitted, weights=is_fitted, dims=8)
        made = embits.TextEncoder.from_static(folder, cache=False, **options)
    return made.fit(["the music", "a river", "boats of lake"] * 20) if is_fitted else made


def words(coder: embits.RandomHyperplanes) -> embits.TextEncoder:
    known = embits.WordVectors(["the", "of", "music", "river", "boats"], vectors(5))
    return embits.TextEncoder.from_words(embits.BinaryVectors.encoded(known, coder, lengths=True))


def facts(bits: embits.BinaryVectors, dims: int = 12) -> dict[str, Any]:
    """What a reader of the file must find in it."""
    X = vectors(6, dims)
    estimated = bits.search(X, 3, metric="asymmetric")
    found = {
        "ids": bits.ids().tolist(),
        "method": bits.coder.method,
        "codes": np.asarray(bits.codes).tobytes().hex(),
        "encoded": bits.encode(X).tobytes().hex(),
        "nearest": [each.tolist() for each in bits.search(bits.encode(X), 4)],
        "estimated": estimated.rows.tolist(),
        "scores": rounded(estimated.scores),
        "floats": rounded(bits.decode(bits.ids()[[0, -1]].tolist())),
    }
    if not isinstance(bits, embits.Collection):
        names = [name for name in bits.columns if name != "lengths"]
        found["columns"] = {name: rounded(bits.columns[name]) for name in names}
    return found


def facts_of_cells(bits: embits.BinaryVectors) -> dict[str, Any]:
    """What is read of the cells, and what is found there; and by inner product."""
    found = bits.search(vectors(6), 3, metric="hamming", recall=embits.Probes(2))
    held = bits.search(bits.encode(vectors(6)), 3, recall=0.5)
    return {
        "probed": [found.rows.tolist(), found.rows_read],
        "recalled": [held.rows.tolist(), held.rows_read],
        "by dot": bits.search(vectors(6), 3, metric="dot").rows.tolist(),
    }


APPROXIMATE = ("scores", "floats", "cosines", "vectors")  # sums whose last digits may differ


def rounded(numbers: Any) -> Any:
    return np.round(np.asarray(numbers, np.float64), 4).tolist()


def facts_of_collection(collection: embits.Collection) -> dict[str, Any]:
    found = facts(collection)
    rescored = collection.search(vectors(6), 3, rescore=20)
    return {
        **found,
        "columns": collection.get(collection.ids()),
        "rescored": rescored.rows.tolist(),
        "cosines": rounded(rescored[0]),
        "filtered": collection.search(
            vectors(6), 2, metric="hamming", where={"year": (2010, None)}
        ).rows.tolist(),
        "probed": collection.search(
            vectors(6), 3, metric="hamming", recall=embits.Probes(2)
        ).rows.tolist(),
    }


def facts_of_notes(notes: embits.Collection) -> dict[str, Any]:
    answers = notes.search_texts(TEXTS[:2], 2)
    return {
        "ids": notes.ids().tolist(),
        "texts": answers.column("text").tolist(),
        "scores": rounded(answers[0]),
        "mixed": notes.search_texts(TEXTS[:2], 2, hybrid=True).ids.tolist(),
        "columns": notes.get(notes.ids()),
    }


def make_collection(path: Path) -> None:
    """Cells, kept vectors, columns of several kinds, a new coder, removed and later rows."""
    X = vectors()
    collection = embits.open_collection(path, embits.RandomHyperplanes(16).fit(X), keep="float16")
    columns = {
        "year": list(range(2000, 2024)),
        "text": [f"é{i}" if i % 3 else None for i in range(24)],
        "tags": [["a", "b"][: i % 3] for i in range(24)],
        "flag": [i % 2 == 0 for i in range(24)],
    }
    collection.add(X, ids(), columns=columns)
    collection.refit(coder=embits.RandomHyperplanes(n_bits=20, random_state=1))
    with mock.patch.object(changes, "MAX_MERGED_ROWS", 0):  # leave the pieces as they are
        collection.compact(cells=4)
        collection.remove(ids()[3:5])
        collection.add(vectors(26)[24:], ["new", "newer"], columns={"year": [2050, None]})
    (path / "_lock").unlink()


def make_notes(path: Path) -> None:
    from click.testing import CliRunner

    from embits.cli import embits as command

    with tempfile.TemporaryDirectory() as folder:
        texts, model = Path(folder) / "texts.jsonl", Path(folder) / "encoder.safetensors"
        texts.write_text("\n".join(map(json.dumps, RECORDS)))
        encoder(False, n_bits=64, method="itq").save(model)
        arguments = ["index", texts, "-o", path, "--encoder", model, "--bits", 16]
        done = CliRunner().invoke(command, [*map(str, arguments)])
        assert done.exit_code == 0, done.output
    (path / "_lock").unlink()


def found_in(path: Path) -> dict[str, Any]:
    """Open a golden file or collection, and ask it."""
    if path.name.startswith("v3-encoder"):
        made = embits.TextEncoder.load(path, verify=True)
        return {"vectors": rounded(made.encode(TEXTS)), "bits": made.n_bits}
    opened = embits.load(path, verify=True)
    if path.name == "notes-v2":
        return facts_of_notes(opened)
    if path.name == "collection-v2":
        return facts_of_collection(opened)
    return {**facts(opened), **(facts_of_cells(opened) if "cells" in path.name else {})}


def main() -> None:
    listed = HERE / "v3.json"
    expected = json.loads(listed.read_text()) if listed.exists() else {}
    for name, made in files().items():
        if not (HERE / f"v3-{name}.safetensors").exists():
            made.save(HERE / f"v3-{name}.safetensors")
    for name, make in (("collection-v2", make_collection), ("notes-v2", make_notes)):
        if not (HERE / name).exists():
            make(HERE / name)
    for path in [*sorted(HERE.glob("v3-*.safetensors")), HERE / "collection-v2", HERE / "notes-v2"]:
        if path.name not in expected:
            expected[path.name] = found_in(path)
    lines = (f'"{name}": {json.dumps(each, ensure_ascii=False)}' for name, each in expected.items())
    listed.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
