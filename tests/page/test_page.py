"""The browser page: written whole, read by a second reader, and used in a real browser."""

import contextlib
import http.client
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
from embits.cli.export import page as command
from embits.file.atomic import atomic_write
from embits.page import serve, write_page
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


def kept_files(folder):
    """The files that a visitor's browser loads and keeps, but for the service worker."""
    page = json.loads(re.search(r"const PAGE = (.*);", (folder / "sw.js").read_text())[1])
    return set(page["files"])


def imported(*names):
    """The modules of the site that some need, and these."""
    found, more = set(), set(names)
    while more:
        found |= more
        texts = {name: (SITE / name).read_text() for name in more}
        paths = {
            (SITE / name).parent / path
            for name, text in texts.items()
            for path in re.findall(r'(?:from |import\()"(\.[^"]+)"', text)
        }
        more = {path.resolve().relative_to(SITE).as_posix() for path in paths} - found
    return found


def test_the_service_worker_keeps_every_file_that_the_page_is_made_of(folder):
    others = {
        path.relative_to(SITE).as_posix()
        for path in SITE.rglob("*.*")
        if path.suffix not in {".js", ".ts"} and path.name != "package.json"
    }
    modules = imported("app.js", "worker.js")
    assert kept_files(folder) == modules | others | {"./", "page.json"}
    assert imported("embits.js", "simd.js") - modules  # those of collections, for programs


def test_the_page_without_its_vectors_is_small(folder):
    loaded = kept_files(folder) - {"./", "page.json"} | {"sw.js"}
    size = sum(len(zlib.compress((folder / name).read_bytes(), 6)) for name in loaded)
    assert size <= 90_000


@needs_node
def test_only_comments_and_indentation_are_left_out_of_a_written_page(folder):
    for path in SITE.rglob("*.js"):
        written = folder / path.relative_to(SITE)
        assert b"/**" not in written.read_bytes()
        node("--check", written)
        lines = [line.split(" // ")[0].strip() for line in path.read_text().splitlines()]
        kept = written.read_text().splitlines()
        assert len(kept) > len(lines) / 3
        assert {line for line in kept if not line.startswith("const PAGE = ")} <= set(lines)


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def other(tmp_path):
    embits.binarize(np.eye(8), 8, "lsh").save(tmp_path / "other.safetensors")
    return tmp_path / "other.safetensors"


@pytest.mark.parametrize("name", ["index.html", "views/size.js", "notes.txt"])
def test_a_folder_that_is_not_empty_is_refused_and_left_alone(name, saved, tmp_path):
    mine = tmp_path / "project" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(embits.InputError, match=r"is not empty.*--force"):
        write_page(saved, tmp_path / "project")
    assert contents(tmp_path / "project") == {mine: b"{}"}


@pytest.mark.parametrize("name", ["package.json", "index.html", "views/size.js"])
def test_files_that_are_not_of_a_page_are_not_replaced_even_with_force(name, saved, tmp_path):
    mine = tmp_path / "project" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("{}")
    with pytest.raises(embits.InputError, match=f"{name} is not of a page that embits wrote"):
        write_page(saved, tmp_path / "project", overwrite=True)
    assert contents(tmp_path / "project") == {mine: b"{}"}


def test_a_page_is_replaced_with_force_and_other_files_stay(saved, other, tmp_path):
    site = tmp_path / "site"
    (site / ".git").mkdir(parents=True)
    (site / ".git/config").write_text("mine")
    write_page(saved, site)
    first = contents(site)
    mine = {site / name: b"mine" for name in ("CNAME", "views/mine.js", "vectors-old.safetensors")}
    for path, content in mine.items():
        path.write_bytes(content)
    with pytest.raises(embits.InputError, match="is not empty"):
        write_page(other, site)
    assert contents(site) == first | mine
    (site / "style.css").write_text("my own colors")
    written = write_page(other, site, overwrite=True)
    assert set(contents(site)) == {*written, *mine, site / ".git/config"}
    assert all(path.read_bytes() == b"mine" for path in mine)
    write_page(saved, site, overwrite=True)
    assert contents(site) == first | mine


def test_nothing_is_written_or_deleted_through_links(saved, other, tmp_path):
    """As another user could prepare them: links in the page, and a manifest that names others."""
    site, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    write_page(other, site)
    (site / "views").rename(elsewhere)
    (site / "views").symlink_to(elsewhere, target_is_directory=True)
    before = contents(elsewhere)
    with pytest.raises(embits.InputError, match="is a link"):
        write_page(saved, site, overwrite=True)
    assert contents(elsewhere) == before
    (site / "views").unlink()
    elsewhere.rename(site / "views")
    (tmp_path / "vectors-0123456789ab.safetensors").write_text("mine")
    (site / "app.js").rename(tmp_path / "app.js")
    (site / "app.js").symlink_to(tmp_path / "app.js")
    with pytest.raises(embits.InputError, match="is a link"):
        write_page(saved, site, overwrite=True)
    (site / "app.js").unlink()
    for name in ("../precious", str(tmp_path / "precious"), "../vectors-0123456789ab.safetensors"):
        (tmp_path / "precious").write_text("mine")
        (site / "page.json").write_text(json.dumps({"file": name}))
        write_page(saved, site, overwrite=True)
        assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "vectors-0123456789ab.safetensors").read_text() == "mine"
    for damaged in ("[" * 70_000, "{}", '{"file": 7}', "\xff"):
        (site / "page.json").write_text(damaged)
        write_page(saved, site, overwrite=True)
    linked = tmp_path / "linked"
    linked.symlink_to(site, target_is_directory=True)
    before = set(contents(site))
    write_page(other, linked, overwrite=True)
    assert before <= set(contents(site))


@pytest.mark.parametrize("stop_at", [0, 1, 20, 43])
def test_an_interrupted_page_is_written_again_with_force(saved, other, tmp_path, stop_at):
    site, left = tmp_path / "site", stop_at
    write_page(other, site)

    @contextlib.contextmanager
    def stopped(path):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        with atomic_write(path) as file:
            yield file

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("embits.page.atomic_write", stopped)
        with pytest.raises(KeyboardInterrupt):
            write_page(saved, site, overwrite=True)
    page = json.loads((site / "page.json").read_bytes())
    assert embits.load(site / page["file"], verify=True).n_bits == 8  # still the earlier page
    written = write_page(saved, site, overwrite=True)
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


@contextlib.contextmanager
def served(folder):
    with serve(folder) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_page_has_the_title_that_it_was_given(saved, tmp_path):
    site = tmp_path / "site"
    write_page(saved, site, title="Words & <meanings>")
    page = (site / "index.html").read_text()
    assert "<title>Words &amp; &lt;meanings&gt;</title>" in page
    assert page.count("Words &amp; &lt;meanings&gt;") == 2
    assert json.loads((site / "manifest.webmanifest").read_bytes())["name"] == "Words & <meanings>"
    write_page(saved, site, overwrite=True)
    assert "<title>embits</title>" in (site / "index.html").read_text()


def test_open_serves_the_page_here_alone_with_a_strict_policy(folder):
    with served(folder) as port:
        kinds = {"": "html", "app.js?x": "javascript", "kernel.wasm": "wasm"}
        for name, kind in kinds.items():
            with urllib.request.urlopen(f"http://localhost:{port}/{name}") as response:
                assert kind in response.headers["Content-Type"]
                assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_open_serves_only_the_files_of_the_page(saved, tmp_path, capfd):
    site = tmp_path / "site"
    write_page(saved, site)
    (site / ".git").mkdir()
    (site / ".git/config").write_text("secret")
    (site / "notes.txt").write_text("secret")
    (tmp_path / "secret").write_text("secret")
    (site / "style.css").unlink()
    (site / "style.css").symlink_to(tmp_path / "secret")

    def status(name, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.putrequest(method, name, skip_host="Host" in headers)
        for each in headers.items():
            connection.putheader(*each)
        connection.endheaders()
        response = connection.getresponse()
        assert b"secret" not in response.read()
        connection.close()
        return response.status

    with served(site) as port:
        assert status("/app.js") == status("/", "HEAD") == 200
        for name in ("/.git/config", "/notes.txt", "/views/", "/views", "/style.css", "/%00",
                     "/app.js%00", "/../secret", "/%2e%2e/secret", "//[", "app.jss"):  # fmt: skip
            assert status(name) == 404, name
        for host in ("evil.example", f"evil.example:{port}", "", f"127.0.0.1.evil.org:{port}"):
            assert status("/app.js", Host=host) == 421
        assert status("/", Host=f"localhost:{port}") == 200
    assert "Traceback" not in capfd.readouterr().err


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
