"""The npm package: packed, installed in another folder, and used in Node and Chromium."""

import json
import re
import shutil
import subprocess

import pytest

import embits
from tests.support.javascript import (
    HERE,
    NODE,
    needs_chromium,
    needs_packages,
    node,
    node_version,
)

ROOT = HERE.parent.parent
NPM = shutil.which("npm")
GOLDEN = HERE.parent / "golden"
PAGE = """<!doctype html><meta charset="utf-8"><title>embits</title><script type="importmap">
{"imports": {"embits": "./node_modules/embits/dist/embits.js",
             "embits/": "./node_modules/embits/dist/"}}</script>"""

needs_npm = pytest.mark.skipif(
    NPM is None or node_version() < 20, reason="needs Node.js 20 or newer with npm"
)


def npm(*arguments, cwd):
    done = subprocess.run(
        [NPM, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the package installed from its tarball, a file, a collection and a page."""
    packed, folder = tmp_path_factory.mktemp("packed"), tmp_path_factory.mktemp("installed")
    npm("pack", "--pack-destination", packed, cwd=ROOT / "js")
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    npm("install", "--offline", "--no-audit", "--no-fund", *packed.glob("*.tgz"), cwd=folder)
    shutil.copy(GOLDEN / "lsh-100-bits.safetensors", folder / "words.safetensors")
    shutil.copytree(GOLDEN / "collection-v1", folder / "collection")
    (folder / "index.html").write_text(PAGE)
    return folder


def expected():
    words = embits.load(GOLDEN / "lsh-100-bits.safetensors")
    neighbors = [
        {"word": word, "row": words.words.find(word), "similarity": similarity}
        for word, similarity in words.most_similar("queen")
    ]
    rows = len(embits.load(GOLDEN / "collection-v1"))
    return {"answers": [neighbors, neighbors], "rows": rows}


@needs_npm
def test_the_package_has_the_version_the_licence_and_nothing_of_the_page(folder):
    package = folder / "node_modules" / "embits"
    about = json.loads((package / "package.json").read_bytes())
    assert about["version"] == embits.__version__
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (package / "README.md").is_file()
    names = {path.name for path in (package / "dist").iterdir()}
    assert {"embits.js", "embits.d.ts", "simd.js", "simd.d.ts", "kernel.wasm"} <= names
    assert not names & {"app.js", "worker.js", "sw.js", "index.html", "style.css"}


@needs_npm
def test_every_name_that_the_package_exports_is_there(folder):
    package = folder / "node_modules" / "embits"
    exports = json.loads((package / "package.json").read_bytes())["exports"]
    for target in re.findall(r'"(\./[^"]+)"', json.dumps(list(exports.values()))):
        assert (package / target).is_file()


@needs_npm
def test_the_package_answers_as_python_in_node(folder):
    shutil.copy(HERE / "package_in_node.mjs", folder / "ask.mjs")
    done = subprocess.run([NODE, "ask.mjs"], cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"version": embits.__version__, **expected()}


@needs_npm
@needs_packages
@needs_chromium
def test_the_package_answers_as_python_in_chromium(folder):
    assert json.loads(node("package_in_chromium.mjs", folder)) == expected()
