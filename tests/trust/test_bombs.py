"""Small files that unpack to much: each way into a file ends soon, in little memory, in one line.

The files are made here; each is opened by a process of its own.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pytest

import embits
from embits.collection.manifest import Beside, read_manifest, write_manifest
from tests.support import damage
from tests.support.damaged_encoders import golden, with_tokenizer
from tests.support.javascript import HERE, NODE, needs_node
from tests.support.static_models import write_model

SECONDS, MEGABYTES = 2, 300  # beyond what the imports take
ENCODER = golden("tokens")

# Reads [way, path] from lines, and answers each in a forked child: [error, seconds, megabytes].
_PROGRAM = """
import json, os, resource, sys, time, warnings
from pathlib import Path
import numpy, pyarrow, pyarrow.compute, pyarrow.fs, pyarrow.parquet, tokenizers
import embits
import embits.collection.opening, embits.readers.formats, embits.text.encoder
from embits.text.passages import read_passages

def encode(opened):
    return opened.encode(["a text of some words " + 30 * "a" + "b"])

def first(path):
    for part in read_passages([Path(path)]):
        return part

warnings.simplefilter("ignore")
ways = {
    "load": lambda path: embits.load(path),
    "verify": lambda path: embits.load(path, verify=True),
    "open_collection": lambda path: embits.open_collection(path),
    "read_vectors": lambda path: embits.read_vectors(path),
    "binarize": lambda path: embits.binarize(path, n_bits=16, method="lsh"),
    "read_passages": first,
    "TextEncoder.load": lambda path: encode(embits.TextEncoder.load(path)),
    "TextEncoder.verify": lambda path: encode(embits.TextEncoder.load(path, verify=True)),
    "from_words": lambda path: embits.TextEncoder.from_words(path),
    "from_static": lambda path: encode(embits.TextEncoder.from_static(path, n_bits=16)),
}
for line in sys.stdin:
    way, path = json.loads(line)
    receive, send = os.pipe()
    if child := os.fork():
        os.close(send)
        said = os.fdopen(receive).read()
        _, status, used = os.wait4(child, 0)
        print(said or json.dumps([f"ended by {status}", 0, 0]), flush=True)
        continue
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    error = ""
    try:
        ways[way](path)
    except (embits.EmbitsError, OSError) as refused:
        error = str(refused)
    except BaseException as unexpected:
        error = f"\\n{type(unexpected).__name__}: {unexpected}"
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    answer = [error, time.process_time() - start, used >> 10]
    os.write(send, json.dumps(answer).encode())
    os._exit(0)
"""


@pytest.fixture(scope="module")
def opened():
    """A function of a way and a path: the error, the seconds and the megabytes that it took."""
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], **how) as program:

        def ask(way, path):
            program.stdin.write(json.dumps([way, str(path)]) + "\n")
            program.stdin.flush()
            return json.loads(program.stdout.readline())

        yield ask
        program.stdin.close()


# -- the corpus ------------------------------------------------------------------------------------


def tokenizer(model=None, **parts):
    """A packed tokenizer of two tokens, with other parts."""
    vocab = {"[UNK]": 0, "a": 1}
    own = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}
    own |= {"max_input_chars_per_word": 100, "vocab": vocab}
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": []}
    whole |= dict.fromkeys(("normalizer", "pre_tokenizer", "post_processor", "decoder"))
    return {"tokenizer": whole | {"model": model or own} | parts}


def added(content, number):
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "special"), False)
    return {"id": number, "content": content, "normalized": True, **flags}


DEEP = b"[" * 983 + b"]" * 983
LONG = [f"{chr(0x4E00 + i)}{'a' * 10_000}" for i in range(400)]
TWICE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
TOKENIZERS = {
    "spaces": tokenizer() | {"separator": " ", "tokens": " " * (60 << 20)},
    "long tokens": tokenizer({"type": "Unigram", "unk_id": 0, "vocab": [[x, -1.0] for x in LONG]}),
    "lists": tokenizer() | {"more": [[]] * 3_000_000},
    "deep": b'{"more": ' + DEEP + b', "tokenizer": {}}',
    "growing": tokenizer(normalizer={"type": "Sequence", "normalizers": [TWICE] * 40}),
    "steps": tokenizer(normalizer={"type": "Sequence", "normalizers": [{"type": "NFC"}] * 10**6}),
    "added tokens": tokenizer(added_tokens=[added(x, 0) for x in LONG]),
    "padding": tokenizer(
        padding={
            "strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[UNK]",
        }
    ),
    "template": tokenizer(
        post_processor={
            "type": "TemplateProcessing", "special_tokens": {},
            "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 4_000,
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
        }
    ),
    "backtracking": tokenizer(
        pre_tokenizer={
            "type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated",
            "invert": False,
        }
    ),
}  # fmt: skip
HARMLESS = {"padding", "template"}  # what is not used is left out
MANIFESTS = {
    "pieces": b'{"format":"embits collection","version":2,"pieces":['
    + b'{"file":"a.parquet","rows":1},' * 2_000_000 + b"{}]}",
    "lists": b'{"format":"embits collection","version":2,"a":[' + b"[]," * 5_000_000 + b"[]]}",
    "deep": b'{"format":"embits collection","version":2,"a":' + b"[" * 983 + b"]" * 983 + b"}",
    "most pieces": b'{"format":"embits collection","version":2,"pieces":['
    + b'{"file":"a.parquet","rows":1,"header":null},' * 99_000 + b"{}]}",
}  # fmt: skip


def encoder_of(path, about):
    path.write_bytes(with_tokenizer(ENCODER, about))
    return path


def tensors_over_the_same_bytes(path):
    shape = {"dtype": "F32", "shape": [1000, 1000], "data_offsets": [0, 4_000_000]}
    header = json.dumps({f"tensor {i}": shape for i in range(300)} | {"embeddings": shape}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(4_000_000))


def arrow_file(path, batches, compression):
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(str(path), batches[0].schema, options=options) as file:
        for batch in batches:
            file.write_batch(batch)


def collection_of(folder, batches, compression=None):
    """A collection whose file of columns has other batches, with a manifest that fits."""
    bits = embits.binarize(np.eye(8), n_bits=8, method="lsh")
    made = embits.open_collection(folder, coder=bits.coder)
    made.add(np.eye(8), columns={"text": [""] * 8})
    manifest = read_manifest(folder)
    [piece] = manifest.pieces
    arrow_file(folder / piece.columns.file, batches, compression)
    sha256 = hashlib.sha256((folder / piece.columns.file).read_bytes()).hexdigest()
    piece = replace(piece, columns=Beside(piece.columns.file, sha256))
    write_manifest(folder, replace(manifest, pieces=(piece,)))


def parquet_file(path, **columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=1 << 20)


# -- the gate --------------------------------------------------------------------------------------


def bounded(answer, *, harmless=False):
    error, seconds, megabytes = answer
    assert "\n" not in error, error
    assert len(error) < 1000
    assert bool(error) != harmless, error or "it was opened"
    assert seconds <= SECONDS, f"{seconds:.1f} s, {error}"
    assert megabytes <= MEGABYTES, f"{megabytes} MB, {error}"


@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokenizers_in_files_and_folders(name, opened, tmp_path):
    path = encoder_of(tmp_path / "encoder.safetensors", TOKENIZERS[name])
    assert path.stat().st_size < 1 << 20
    for way in ("TextEncoder.load", "TextEncoder.verify"):
        bounded(opened(way, path), harmless=name in HARMLESS)
    if name not in ("spaces", "deep", "lists"):
        write_model(tmp_path / "model")
        about = json.dumps(TOKENIZERS[name]["tokenizer"])
        (tmp_path / "model" / "tokenizer.json").write_text(about)
        bounded(opened("from_static", tmp_path / "model"), harmless=name in HARMLESS)


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests(name, opened, tmp_path):
    (tmp_path / "_embits.json").write_bytes(MANIFESTS[name])
    for way in ("load", "verify", "open_collection"):
        bounded(opened(way, tmp_path))


def test_configurations_and_tables_of_static_models(opened, tmp_path):
    for name, content in {
        "config.json": b'{"a": [' + b"{}," * 30_000_000 + b"{}]}",
        "config.json ": b'{"a": [' + b"{}," * 300_000 + b"{}]}",
        "tokenizer.json": b'{"a": ' + b"[" * 983 + b"]" * 983 + b"}",
    }.items():
        write_model(tmp_path / name)
        (tmp_path / name / name.strip()).write_bytes(content)
        bounded(opened("from_static", tmp_path / name))
    write_model(tmp_path / "same")
    tensors_over_the_same_bytes(tmp_path / "same" / "model.safetensors")
    bounded(opened("from_static", tmp_path / "same"))


@pytest.mark.parametrize("params", [b"[" * 20_000 + b"]" * 20_000, b"[" + b"{}," * 20_000 + b"{}]"])
def test_headers(params, opened, tmp_path):
    path = tmp_path / "codes.safetensors"
    header, data = damage.parts(ENCODER)
    header["__metadata__"]["params"] = params.decode()
    path.write_bytes(damage.signed(header, data))
    for way in ("load", "verify", "TextEncoder.load", "from_words"):
        bounded(opened(way, path))
    path.write_bytes(struct.pack("<Q", len(params)) + b'{"a":' + params[5:])
    for way in ("load", "read_vectors"):
        bounded(opened(way, path))


def test_columns_of_collections(opened, tmp_path):
    import pyarrow as pa

    long = pa.record_batch({"text": pa.array(["a" * 30_000_000] * 8, pa.large_string())})
    short = pa.record_batch({"text": pa.array([""] * 8, pa.large_string())})
    collection_of(tmp_path / "compressed", [long], "zstd")
    collection_of(tmp_path / "empty", [short, *[short.slice(0, 0)] * 20_000])
    collection_of(tmp_path / "whole", [short])
    for way in ("load", "verify", "open_collection"):
        bounded(opened(way, tmp_path / "compressed"))
        bounded(opened(way, tmp_path / "empty"))
        bounded(opened(way, tmp_path / "whole"), harmless=True)


def test_codes_in_parquet(opened, tmp_path):
    import pyarrow as pa

    bits = embits.binarize(np.eye(8), n_bits=8, method="lsh")
    embits.open_collection(tmp_path, coder=bits.coder)
    n = 50_000_000
    codes = pa.FixedSizeBinaryArray.from_buffers(pa.binary(1), n, [None, pa.py_buffer(bytes(n))])
    parquet_file(tmp_path / "part.parquet", code=codes)
    manifest = json.loads((tmp_path / "_embits.json").read_bytes())
    manifest |= {"format": "embits codes", "parts": [{"file": "part.parquet", "rows": n}]}
    (tmp_path / "_embits.json").write_text(json.dumps(manifest))
    for way in ("load", "verify"):
        bounded(opened(way, tmp_path))


def test_parquet(opened, tmp_path):
    import pyarrow as pa

    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(20_000_000, "f4")), 50)
    parquet_file(tmp_path / "zeros.parquet", v=zeros)
    few = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(16_000, "f4")), 4)
    one = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(4_000, "i4")), pa.array(["x" * 5_000_000])
    )
    parquet_file(tmp_path / "ids.parquet", v=few, id=one)
    for name in ("zeros", "ids"):
        assert (tmp_path / f"{name}.parquet").stat().st_size < 1 << 20
        for way in ("read_vectors", "binarize"):
            bounded(opened(way, tmp_path / f"{name}.parquet"))


def npz(path, array, members=1):
    content = io.BytesIO()
    np.save(content, array)
    how = zipfile.ZIP_DEFLATED if members == 1 else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", how) as file:
        for i in range(members):
            file.writestr(f"{i}.npy", content.getvalue())


def test_arrays(opened, tmp_path):
    npz(tmp_path / "members.npz", np.zeros((1, 1), "f4"), 20_000)
    npz(tmp_path / "zeros.npz", np.zeros((1000, 16_000), "f4"))
    with (tmp_path / "shape.npy").open("wb") as file:
        about = {"descr": "<f4", "fortran_order": False, "shape": (10**9, 300)}
        np.lib.format.write_array_header_1_0(file, about)
    for name in ("members.npz", "zeros.npz", "shape.npy"):
        bounded(opened("read_vectors", tmp_path / name))


def test_texts_of_vectors_and_passages(opened, tmp_path):
    (tmp_path / "line.txt.gz").write_bytes(gzip.compress(b"word" + b" 1" * (60 << 20)))
    (tmp_path / "list.json.gz").write_bytes(gzip.compress(b'{"word": [' + b"1," * (60 << 20)))
    (tmp_path / "deep.jsonl").write_bytes(
        b'{"text": "a", "more": ' + b"[" * 983 + b"]" * 983 + b"}"
    )
    (tmp_path / "lists.jsonl").write_bytes(b'{"text": "a", "more": [' + b"[]," * 5_000_000 + b"1]}")
    (tmp_path / "long.txt.gz").write_bytes(gzip.compress(b"word " * (12 << 20)))
    for name in ("line.txt.gz", "list.json.gz"):
        bounded(opened("read_vectors", tmp_path / name))
    for name in ("deep.jsonl", "lists.jsonl", "long.txt.gz"):
        bounded(opened("read_passages", tmp_path / name))


def test_words_beside_a_matrix(opened, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(4, dtype="f4"))
    (tmp_path / "x.json").write_bytes(b'["a",' + b"[]," * 5_000_000 + b"1]")
    bounded(opened("read_vectors", tmp_path / "x.npy"))


@needs_node
def test_in_javascript(tmp_path):
    names = {}
    for name, about in TOKENIZERS.items():
        encoder_of(tmp_path / f"{name}.encoder", about)
        names[f"{name}.encoder"] = name in HARMLESS
    for name, content in MANIFESTS.items():
        (tmp_path / f"{name}.manifest").write_bytes(content)
        names[f"{name}.manifest"] = False
    del names["backtracking.encoder"]  # refused, as every pattern that is unknown
    for name, harmless in names.items():
        command = [NODE, "bombs.mjs", str(tmp_path / name)]
        done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (name, done.stderr)
        bounded(json.loads(done.stdout), harmless=harmless)
