"""The browser page: written whole, read by a second reader, and used in a real browser."""

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import urllib.request
import zlib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import embits
from embits.cli.page import command
from embits.page import write_page
from embits.page.folder import PageFolder
from embits.page.server import serve
from tests.support.javascript import CHROMIUM, needs_chromium, needs_node, needs_packages, node

HERE = Path(__file__).parent
SITE = Path(embits.__file__).parent / "page" / "site"

STRANGE = [
    "<img src=x onerror=window.hacked=1>", '"><script>window.hacked=1</script>', "مرحبا", "שלום",
    "日本語", "👩‍🚀", "javascript:window.hacked=1", "a&b=c#d", "100%", "two words",
    "\u202egnihtemos",
]  # fmt: skip
LONGEST = "Donaudampfschiffahrtsgesellschaft" * 6


@pytest.fixture(scope="module")
def bits():
    words = ["queen", "king", "man", "woman", *STRANGE, LONGEST]
    words += [f"word{i}" for i in range(3000 - len(words))]
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(60, 32))
    matrix = centers[rng.integers(0, 60, len(words))] + rng.normal(0, 0.6, (len(words), 32))
    return embits.binarize(embits.WordVectors(words, matrix.astype("f4")), 256, method="lsh")


@pytest.fixture(scope="module")
def folder(bits, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "words.safetensors"
    bits.save(file)
    write_page(file, file.parent / "site")
    return file.parent / "site"


# -- what is written -------------------------------------------------------------------------------


def test_the_page_is_the_site_and_the_file(folder):
    page = json.loads((folder / "page.json").read_bytes())
    vectors = folder / page["file"]
    assert vectors.stat().st_size == page["bytes"]
    assert embits.load(vectors, verify=True).n_bits == 256
    for source in SITE.rglob("*.*"):
        assert (folder / source.relative_to(SITE)).is_file()
    assert not list(folder.rglob("*.tmp"))


def test_the_service_worker_keeps_every_file_that_the_page_is_made_of(folder):
    kept = json.loads(re.search(r"const PAGE = (.*);", (folder / "sw.js").read_text())[1])
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    unneeded = {
        "sw.js",
        "embits.d.ts",
        "simd.d.ts",
        "package.json",
        "embits-page.json",
        json.loads((folder / "page.json").read_text())["file"],
    }
    assert set(kept["files"]) == written - unneeded | {"./"}


def test_the_page_without_its_vectors_is_small(folder):
    written = [folder / path.relative_to(SITE) for path in SITE.rglob("*.*")]
    size = sum(len(zlib.compress(path.read_bytes(), 6)) for path in written)
    assert size <= 60_000


@needs_node
def test_only_comments_and_indentation_are_left_out_of_a_written_page(folder):
    for path in SITE.rglob("*.js"):
        written = folder / path.relative_to(SITE)
        assert b"/**" not in written.read_bytes()
        node("--check", written)
        lines = [line.split(" // ")[0].strip() for line in path.read_text().splitlines()]
        kept = written.read_text().splitlines()
        assert len(kept) > len(lines) / 2
        assert {line for line in kept if not line.startswith("const PAGE = ")} <= set(lines)


def test_a_second_page_takes_the_place_of_the_first_and_leaves_other_files(bits, tmp_path):
    (tmp_path / "CNAME").write_text("example.org")
    for n_bits in (8, 16):
        embits.BinaryVectors.encoded(
            embits.WordVectors(["a", "b"], np.eye(2, 32, dtype="f4")),
            embits.RandomHyperplanes(n_bits).fit(np.eye(4, 32, dtype="f4")),
        ).save(tmp_path / "f.safetensors")
        write_page(tmp_path / "f.safetensors", tmp_path / "site")
    assert len(list((tmp_path / "site").glob("*.safetensors"))) == 1
    page = json.loads((tmp_path / "site" / "page.json").read_bytes())
    assert embits.load(tmp_path / "site" / page["file"]).n_bits == 16


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name", ["index.html", "package.json", "app.js", "views/size.js", "page.json", "notes.txt"]
)
def test_a_folder_that_embits_did_not_write_is_refused_and_left_alone(name, saved, tmp_path):
    mine = tmp_path / "project" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(embits.InputError, match="not empty, and embits did not write it"):
        write_page(saved, tmp_path / "project")
    assert contents(tmp_path / "project") == {mine: b"{}"}


def test_a_marker_that_names_files_outside_is_not_ours(saved, tmp_path):
    (tmp_path / "precious").write_text("mine")
    for name in ("../precious", str(tmp_path / "precious")):
        listed = {name: [hashlib.sha256(b"mine").hexdigest()]}
        (tmp_path / "site").mkdir(exist_ok=True)
        (tmp_path / "site/embits-page.json").write_text(json.dumps({"files": listed}))
        with pytest.raises(embits.InputError, match="embits did not write it"):
            write_page(saved, tmp_path / "site")
    assert (tmp_path / "precious").read_text() == "mine"


def test_files_beside_our_page_stay_and_our_changed_files_are_not_replaced(saved, tmp_path):
    site = tmp_path / "site"
    (site / ".git").mkdir(parents=True)
    (site / ".git/config").write_text("mine")
    write_page(saved, site)
    (site / "CNAME").write_text("example.org")
    (site / "views/mine.js").write_text("mine")
    written = contents(site)
    write_page(saved, site)
    assert contents(site) == written
    (site / "style.css").write_text("my own colors")
    with pytest.raises(embits.InputError, match=r"style.css: embits did not write .* or it was ch"):
        write_page(saved, site)
    assert contents(site) == written | {site / "style.css": b"my own colors"}
    (site / "style.css").unlink()
    write_page(saved, site)
    assert contents(site) == written


def test_changed_files_of_our_page_are_replaced_with_force(saved, tmp_path):
    site = tmp_path / "site"
    write_page(saved, site)
    written = contents(site)
    (site / "mine.txt").write_text("mine")
    vectors = next(site.glob("vectors-*.safetensors"))
    vectors.write_bytes(b"changed")
    (site / "style.css").write_text("my own colors")
    write_page(saved, site, overwrite=True)
    assert (site / "mine.txt").read_text() == "mine"
    (site / "mine.txt").unlink()
    assert contents(site) == written


def test_a_page_whose_writing_was_interrupted_is_written_again(saved, tmp_path, monkeypatch):
    for stop_at in range(0, 30, 3):
        site = tmp_path / f"site{stop_at}"
        if stop_at % 2:  # over an older page
            embits.binarize(np.eye(8), 8, "lsh").save(tmp_path / "old.safetensors")
            write_page(tmp_path / "old.safetensors", site)
        left = stop_at
        real = PageFolder.write

        def write(self, name, content, real=real):
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            real(self, name, content)

        with monkeypatch.context() as patch:
            patch.setattr(PageFolder, "write", write)
            with contextlib.suppress(KeyboardInterrupt):
                write_page(saved, site)
        written = write_page(saved, site)
        assert set(contents(site)) == set(written)


def test_the_page_has_its_own_copy_of_the_vectors(bits, tmp_path):
    bits.save(tmp_path / "words.safetensors")
    before = (tmp_path / "words.safetensors").read_bytes()
    write_page(tmp_path / "words.safetensors", tmp_path / "site")
    with (tmp_path / "words.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"X")
    vectors = next((tmp_path / "site").glob("vectors-*"))
    assert vectors.read_bytes() == before
    assert vectors.stat().st_nlink == 1


def test_a_damaged_file_is_refused_and_nothing_is_written(saved, tmp_path):
    raw = bytearray(saved.read_bytes())
    raw[-1] ^= 1
    saved.write_bytes(raw)
    with pytest.raises(embits.FormatError, match="damaged"):
        write_page(saved, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_the_verb_writes_a_page_and_says_what_it_wrote(saved, tmp_path):
    result = CliRunner().invoke(command, [str(saved), "-o", str(tmp_path / "site"), "--json"])
    assert result.exit_code == 0
    said = json.loads(result.output)
    assert said["folder"] == str(tmp_path / "site")
    assert said["files"] == len([p for p in (tmp_path / "site").rglob("*") if p.is_file()])
    assert CliRunner().invoke(command, [str(saved)]).exit_code == 2


def test_open_serves_the_page_here_alone_with_a_strict_policy(folder):
    with serve(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        kinds = {"": "html", "app.js": "javascript", "kernel.wasm": "wasm"}
        for name, kind in kinds.items():
            with urllib.request.urlopen(address + name) as response:
                assert kind in response.headers["Content-Type"]
                assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        server.shutdown()


def test_importing_embits_does_not_import_the_page():
    code = "import sys, embits; assert not any(m.startswith('embits.page') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- the second reader -----------------------------------------------------------------------------


@needs_node
def test_the_javascript_reader():
    tests = ("reader.test.mjs", "reader_damage.test.mjs", "kernels.test.mjs")
    node("--test", "--test-reporter=spec", *tests)


@needs_node
def test_collections_and_filters_in_javascript():
    node("--test", "--test-reporter=spec", "collection.test.mjs")


@needs_packages
def test_the_wasm_kernel_is_what_its_source_builds():
    node("build_kernel.mjs", "--check")


# -- in the browser --------------------------------------------------------------------------------


@needs_packages
@needs_chromium
def test_the_page_in_chromium(bits, folder, tmp_path):
    thousand = list(bits.words[:1000])
    rng = np.random.default_rng(1)
    triples = [[bits.words[row] for row in rng.choice(3000, 3, replace=False)] for _ in range(300)]
    expected = {
        "bits": bits.n_bits,
        "strange": STRANGE,
        "longest": LONGEST,
        "closest": {word: bits.most_similar(word) for word in ("queen", "king")},
        "analogy": bits.most_similar(["king", "woman"], ["man"]),
        "similarity": bits.similarity("queen", "king"),
        "cosine": bits.similarity("queen", "king", metric="decoded"),
        "thousand": {word: bits.most_similar(word) for word in thousand},
        "decoded": {word: bits.most_similar(word, metric="decoded") for word in thousand[:500]},
        "analogies": [
            {"a": a, "b": b, "c": c}
            | {m: bits.most_similar([b, c], [a], metric=m) for m in ("hamming", "decoded")}
            for a, b, c in triples
        ],
        "king": bits.most_similar(["king", "woman"], ["man"], metric="decoded"),
    }
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    with serve(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        node(
            *("--test", "--test-reporter=spec", "page.test.mjs", "page_loading.test.mjs"),
            PAGE_FOLDER=str(folder),
            PAGE_EXPECTED=str(tmp_path / "expected.json"),
            PAGE_OPENED=f"http://127.0.0.1:{server.server_port}/",
            CHROMIUM=CHROMIUM,
        )
        server.shutdown()
