"""Files at addresses: memory and local file systems of fsspec, and an HTTP server."""

import gc
import http.server
import json
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import embits
from embits import errors, remote
from embits.jobs import binarize_to_file, encode_to_collection, encode_to_file
from tests.support.program import run

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder of temporary files; when a test ends, none is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    gc.collect()
    assert not list(folder.iterdir())


@pytest.fixture
def memory():
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()


class Server(http.server.BaseHTTPRequestHandler):
    """Serves files from a dictionary."""

    def do_HEAD(self):
        self._answer(with_body=False)

    def do_GET(self):
        self._answer(with_body=True)

    def log_message(self, *_):
        pass

    def _answer(self, with_body):
        server = self.server
        name = self.path.partition("?")[0].strip("/")
        if name == "silent":
            return server.stopped.wait(60)
        if name == "forbidden":
            return self.send_error(403)
        if name not in server.files:
            return self.send_error(404)
        body = server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            body = body[: len(body) // 2] if name in ("short.npy", "stops.npy") else body
            self.wfile.write(body)
            if name == "stops.npy":
                server.stopped.wait(60)
        return None


@contextmanager
def serving(**files):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.files, server.stopped = files, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield server
    finally:
        server.stopped.set()
        server.shutdown()
        server.server_close()


def matrix(n=300, dims=12):
    return np.random.default_rng(3).normal(size=(n, dims)).astype(np.float32)


def saved(tmp_path, name, vectors):
    """The bytes of a file of vectors."""
    embits.write_vectors(tmp_path / name, vectors)
    return (tmp_path / name).read_bytes()


@pytest.mark.parametrize("name", ["v.npy", "v.npz", "v.vec", "v.txt.gz", "v.bin", "v.parquet"])
def test_every_format_is_read_as_from_the_disk(tmp_path, memory, name):
    given = embits.WordVectors([f"w{i}" for i in range(300)], matrix())
    content = saved(tmp_path, name, given)
    memory.pipe_file(f"/folder/{name}", content)
    local = embits.read_vectors(tmp_path / name, ids=False if name == "v.npy" else None)
    with serving(**{name: content}) as server:
        addresses = [f"memory://folder/{name}", f"{server.address}/{name}"]
        for address in [*addresses, f"file://{tmp_path.as_posix()}/{name}"]:
            there = embits.read_vectors(address, ids=False if name == "v.npy" else None)
            assert there.words == local.words
            assert np.array_equal(there.matrix, local.matrix)
            n = embits.binarize(address, 16, "lsh", ids=np.arange(300) + 7)
            assert n.ids()[0] in (7, "7")


def test_codes_are_fetched_checked_and_searched(tmp_path, memory):
    bits = embits.binarize(matrix(), 64, "lsh", ids=[f"d{i}" for i in range(300)])
    bits.save(tmp_path / "b.safetensors")
    content = (tmp_path / "b.safetensors").read_bytes()
    damaged = bytearray(content)
    damaged[-3] ^= 1
    memory.pipe_file("/b.safetensors", content)
    with serving(b=content, damaged=bytes(damaged), cut=content[:-9]) as server:
        for address in ("memory://b.safetensors", f"{server.address}/b?token=secret"):
            there = embits.load(address)
            gc.collect()  # the copy is gone, and what is mapped stays
            assert np.array_equal(there.codes, bits.codes)
            assert (
                there.search(bits.codes[5], 3).ids.tolist()
                == bits.search(bits.codes[5], 3).ids.tolist()
            )
            assert there.coder.encode(matrix()[:4]).tolist() == bits.codes[:4].tolist()
        for name in ("damaged", "cut"):
            with pytest.raises(embits.FormatError) as found:
                embits.load(f"{server.address}/{name}")
            assert str(found.value).startswith(f"{server.address}/{name}: ")
            del found


def test_errors_are_one_line_without_secrets(tmp_path, memory, monkeypatch):
    np.save(tmp_path / "short.npy", matrix())
    memory.pipe_file("/folder/inside", b"x")
    content = (tmp_path / "short.npy").read_bytes()
    with serving(**{"short.npy": content, "page": b"<!doctype html><html>"}) as server:
        at, hidden = server.address, server.address.replace("//", "//user:secret@")
        for address, kind, message in (
            (f"{at}/none.npy", errors.MissingFileError, f"{at}/none.npy: no such file"),
            (f"{hidden}/forbidden?key=secret", embits.ReadError, "cannot be read: HTTP 403"),
            (f"{at}/short.npy", embits.ReadError, f"{at}/short.npy: cannot be read: "),
            (f"{at}/page", embits.ReadError, f"{at}/page: found an HTML page"),
            ("memory://none", errors.MissingFileError, "memory://none: no such file"),
            ("memory://folder", embits.ReadError, "found a folder, expected a file"),
            ("nothing://x", embits.ReadError, "Protocol not known"),
            ("http://127.0.0.1:9/x.npy", embits.ReadError, "x.npy: cannot be read: "),
        ):
            for read in (embits.read_vectors, embits.load):
                if read is embits.load and address.endswith(("page", "nothing://x")):
                    continue
                with pytest.raises(kind) as found:
                    read(address)
                assert message in str(found.value)
                assert "\n" not in str(found.value)
                assert "secret" not in str(found.value)
                assert "temporary" not in str(found.value)
                del found
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(errors.MissingExtraError, match=r"embits\[remote\]"):
        embits.read_vectors("https://example.org/x.npy")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(errors.MissingExtraError, match="s3fs"):
        embits.load("s3://bucket/x.safetensors")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(errors.MissingExtraError, match=r"for memory://x, .*embits\[remote\]"):
        embits.read_vectors("memory://x")


def test_a_missing_column_or_damage_names_the_address(tmp_path, memory):
    content = saved(tmp_path, "v.parquet", embits.WordVectors(["a", "b"], np.eye(2)))
    memory.pipe_file("/v.parquet", content)
    memory.pipe_file("/cut.parquet", content[:-40] + b"PAR1")
    bits = embits.open_collection(tmp_path / "c", embits.RandomHyperplanes(8).fit(np.eye(2)))
    for name, options in (("v", {"columns": ["year"]}), ("cut", {})):
        with pytest.raises(embits.ReadError) as found:
            embits.encode_to_collection(bits, f"memory://{name}.parquet", **options)
        assert str(found.value).startswith(f"memory://{name}.parquet: ")
        del found


def test_a_server_that_stops_sending_is_an_error_of_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "_SILENCE", 0.6)
    content = saved(tmp_path, "v.npy", embits.WordVectors(["a"], np.zeros((1, 9000))))
    with serving(**{"stops.npy": content}) as server:
        for name in ("silent", "stops.npy"):
            address = f"{server.address}/{name}"
            for read in (embits.read_vectors, embits.load):
                with pytest.raises(embits.ReadError) as found:
                    read(address)
                message = f"{address}: cannot be read: the server sends nothing: try later"
                assert str(found.value) == message
                del found


def test_jobs_read_addresses_and_write_files(tmp_path, memory):
    content = saved(
        tmp_path, "v.parquet", embits.WordVectors([f"w{i}" for i in range(300)], matrix())
    )
    memory.pipe_file("/v.parquet", content)
    memory.pipe_file("/words.txt", "\n".join(f"w{i}" for i in range(300)).encode())
    np.save(tmp_path / "m.npy", matrix())
    memory.pipe_file("/m.npy", (tmp_path / "m.npy").read_bytes())
    for vectors, words in (("memory://v.parquet", None), ("memory://m.npy", "memory://words.txt")):
        binarize_to_file(tmp_path / "v.parquet", tmp_path / "a", 32, "lsh")
        binarize_to_file(vectors, tmp_path / "b", 32, "lsh", words=words)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    memory.pipe_file("/a.safetensors", (tmp_path / "a").read_bytes())
    encode_to_file("memory://a.safetensors", "memory://v.parquet", tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    for source in ("memory://a.safetensors", "memory://v.parquet"):
        c = embits.open_collection(tmp_path / f"collection-{source[9]}", "memory://a.safetensors")
        assert encode_to_collection(c, source) == 300
        assert c.search(matrix()[7], 1).ids[0] == "w7"
    bits, before = embits.load(tmp_path / "a"), sorted(tmp_path.iterdir())
    for write in (
        lambda: bits.save("memory://out"),
        lambda: binarize_to_file(tmp_path / "m.npy", "memory://out", 32, "lsh"),
        lambda: encode_to_file(bits, tmp_path / "m.npy", "s3://bucket/out"),
    ):
        with pytest.raises(embits.InputError, match="is an address: write a local file"):
            write()
    (tmp_path / "mine").write_text("notes")
    with pytest.raises(embits.InputError, match="exists"):
        binarize_to_file("memory://none", tmp_path / "mine", 32, "lsh")
    with pytest.raises(errors.MissingFileError):
        binarize_to_file("memory://none", tmp_path / "out", 32, "lsh")
    assert sorted(tmp_path.iterdir()) == sorted([*before, tmp_path / "mine"])


def test_a_large_file_is_streamed_and_its_job_resumes(tmp_path, memory, monkeypatch):
    from embits.jobs import stream

    monkeypatch.setattr(stream, "STREAM_FROM", 1)
    memory.pipe_file("/v.vec", saved(tmp_path, "v.vec", embits.WordVectors(list("abc"), matrix(3))))
    source = [embits.readers.new_source("memory://v.vec") for _ in range(2)]
    assert stream.input_fingerprint(source[0]) == stream.input_fingerprint(source[1])
    binarize_to_file("memory://v.vec", tmp_path / "b", 8, "lsh")
    monkeypatch.undo()
    binarize_to_file(tmp_path / "v.vec", tmp_path / "a", 8, "lsh")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    source.clear()


def test_the_command_line_takes_addresses(tmp_path):
    content = saved(tmp_path, "v.vec", embits.WordVectors([f"w{i}" for i in range(300)], matrix()))
    with serving(v=content) as server:
        out = tmp_path / "b.safetensors"
        made = run("binarize", f"{server.address}/v", "-o", out, "--bits", 64, "--json")
        assert json.loads(made.stdout)["words"] == 300, made.stderr
        server.files["b"] = out.read_bytes()
        facts = json.loads(run("info", f"{server.address}/b", "--json").stdout)
        assert facts["bytes"] == out.stat().st_size
        near = run("neighbors", f"{server.address}/b", "w7", "--json").stdout
        assert (
            json.loads(near)["queries"][0]["neighbors"]
            == json.loads(run("neighbors", out, "w7", "--json").stdout)["queries"][0]["neighbors"]
        )
        found = run("search", f"{server.address}/b", f"{server.address}/v", "-k", 1, "--json")
        assert json.loads(found.stdout)["queries"][9]["neighbors"][0]["id"] == "w9"
        none = run("info", f"{server.address}/none")
        assert none.returncode != 0
        assert len(none.stderr.splitlines()) == 1
        assert "no such file" in none.stderr
        assert "add --ray" in run("binarize", out, "-o", "s3://b/x").stderr


def test_an_interrupted_process_leaves_no_copy(temporary, tmp_path):
    program = (
        "import sys; from embits.readers import new_source, read_source;"
        "source = new_source(sys.argv[1]); read_source(source); sys.exit('stop')"
    )
    np.save(tmp_path / "m.npy", matrix())
    address = f"file://{(tmp_path / 'm.npy').as_posix()}"
    subprocess.run([sys.executable, "-c", program, address], capture_output=True, check=False)
    assert not list(temporary.iterdir())
