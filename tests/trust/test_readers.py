"""Damaged and hostile float files are read or refused, within bounds of time and memory."""

import contextlib
import gzip
import io
import json
import lzma
import os
import random
import struct
import subprocess
import sys
import time
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

import embits
from tests.support import damage
from tests.support import reader_corpus as corpus

MUTATIONS = 50_000  # of a test run, shared out among the formats
LONGEST_S = 10.0 if "EMBITS_SANITIZED" in os.environ else 1.0  # a sanitizer is that much slower
REFUSED = (embits.ReadError, embits.InputError, embits.errors.MissingExtraError)


def read(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", embits.errors.ReadWarning)
        return embits.read_vectors(path, **options)


@pytest.fixture
def path(memory_path):
    return memory_path / "vectors"


@pytest.mark.slow
@pytest.mark.parametrize("name", corpus.FORMATS)
def test_damage_is_read_or_refused(name, path):
    goods = corpus.FORMATS[name]
    for good in goods:
        rng = random.Random(len(good))
        for i in range(MUTATIONS // len(corpus.FORMATS) // len(goods)):
            path.write_bytes((damage.blind, damage.numbers)[i % 2](good, rng))
            start = time.process_time()
            try:
                vectors = read(path, on_bad=("raise", "skip")[i // 2 % 2])
                sound = np.isfinite(vectors.matrix).all() and len(vectors) > 0
            except REFUSED as error:
                sound = "\n" not in str(error) and len(str(error)) < 1000
            assert sound
            assert time.process_time() - start < LONGEST_S


@pytest.mark.slow
@pytest.mark.parametrize("name", corpus.FORMATS)
def test_every_truncation_is_read_or_refused(name, path):
    good = corpus.FORMATS[name][0]
    for length in range(0, len(good), 1 + len(good) // 500):
        path.write_bytes(good[:length])
        with contextlib.suppress(*REFUSED):
            assert len(read(path)) > 0


def npy_header(text):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def fasttext(word=b"cat", dims=3, buckets=1, minn=1, maxn=256):
    args = struct.pack("<12id", dims, 5, 5, 1, 5, 1, 2, 2, buckets, minn, maxn, 100, 1e-4)
    matrix = struct.pack("<?qq", False, 1 + buckets, dims) + bytes(4 * dims * (1 + buckets))
    counts = struct.pack("<3iqq", 1, 1, 0, 10, -1)
    return struct.pack("<ii", 793712314, 12) + args + counts + word + b"\0" + bytes(9) + matrix


def safetensors(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def parquet(n_rows, *, in_groups):
    """Parquet that claims other rows than its five, in its metadata or in its row groups too."""
    good = corpus.parquet()
    five, number = b"\x16\x0a", 2 * n_rows if n_rows >= 0 else -2 * n_rows - 1  # zigzag, varint
    false = b"\x16"
    while number > 127:
        false, number = false + bytes([number & 127 | 128]), number >> 7
    false += bytes([number])
    body = good[:-8].replace(five, false) if in_groups else good[:-8].replace(five, false, 1)
    size = int.from_bytes(good[-8:-4], "little") + len(body) - len(good[:-8])
    return body + size.to_bytes(4, "little") + good[-4:]


LYING = {
    "parquet of a negative number of rows": parquet(-24, in_groups=False),
    "parquet of a negative number of rows in groups": parquet(-24, in_groups=True),
    "parquet of more rows than its groups": parquet(2**44, in_groups=False),
    "parquet of huge groups": parquet(2**44, in_groups=True),
    "word2vec of huge dims in a .gz": gzip.compress(b"1 99999999999\n" + bytes(range(20)) * 99),
    "word2vec of many rows": b"999999999 4\nthe " + bytes(range(16)),
    "npy of a huge shape": npy_header("{'descr':'<f4','fortran_order':False,'shape':(2**40,9)}"),
    "npy of a negative shape": npy_header(
        "{'descr':'<f4','fortran_order':False,'shape':(-1,4)}\n" + "x" * 64
    ),
    "npy that calls": npy_header("__import__('os').system('true')"),
    "npy nested without end": npy_header("(" * 9000),
    "npz of a lying array": corpus.zipped(
        npy_header("{'descr':'<f4','fortran_order':False,'shape':(99999999,99)}"), "a.npy"
    ),
    "safetensors of no bytes and huge dims": safetensors(
        {"a": {"dtype": "F32", "shape": [0, 2**61], "data_offsets": [0, 0]}}
    ),
    "safetensors nested without end": b"\xff\xff\0\0\0\0\0\0" + b'{"a":' * 20_000,
    "json without an end": b'{"a": [1, 2], "b' + b"x" * 200_000,
    "fasttext of many words": fasttext()[:64] + struct.pack("<3iqq", 2**30, 2**30, 0, 0, -1),
}


@pytest.mark.parametrize("name", LYING)
def test_lies_about_size_are_refused_at_once_and_with_little_memory(name, path):
    path.write_bytes(LYING[name])
    with pytest.raises(REFUSED):  # imports are not counted below
        read(path)
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(REFUSED):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000 + 4 * len(LYING[name])
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < LONGEST_S


def test_a_signalling_nan_is_refused_without_a_warning(path):
    """Found by mutation: NumPy warns of it as it casts."""
    numbers = np.zeros((2, 2))
    numbers.view(np.uint64)[1, 1] = 0x7FF0000000000001
    path.write_bytes(corpus.npy(numbers))
    with pytest.raises(embits.ReadError, match="nan or inf"):
        read(path)


def test_ngrams_that_would_take_minutes_are_refused(path):
    path.write_bytes(fasttext(b"x" * 100_000, dims=5_000))
    start = time.process_time()
    with pytest.raises(embits.ReadError, match="to add up for n-grams"):
        read(path)
    assert time.process_time() - start < LONGEST_S


def test_a_words_file_of_one_long_line_of_numbers_is_read_at_once(path):
    np.save(path.with_suffix(".npy"), corpus.MATRIX[:1])
    path.with_suffix(".words").write_text("1 " * 100_000 + "x")
    start = time.process_time()
    assert len(read(path.with_suffix(".npy"))) == 1
    assert time.process_time() - start < LONGEST_S


# -- bombs -----------------------------------------------------------------------------------------

LINE = b"a 1 1 1 1 1 1 1 1\n"


def bomb_zip(content, name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as to:
        for block in content:
            to.write(block)
    return file.getvalue()


def npz_bomb():
    header = npy_header("{'descr':'<f4','fortran_order':False,'shape':(50000000,4)}")
    return bomb_zip([header, *[bytes(8 << 20)] * 100], "matrix.npy")


BOMBS = {
    "gz": lambda: gzip.compress(LINE * (10 << 20), 9),
    "xz": lambda: lzma.compress(LINE * (10 << 20), preset=1),
    "zip": lambda: bomb_zip([LINE * (1 << 16)] * 160, "v.txt"),
    "npz": npz_bomb,
}

_READ = """
import sys, time, warnings
from pathlib import Path
import embits
from embits.readers import arrays, text  # noqa
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) >> 10
warnings.simplefilter("ignore")
start, before = time.process_time(), peak()
try:
    embits.read_vectors(sys.argv[1], words=[*sys.argv, None][2])
except embits.ReadError as error:
    print(error)
print(time.process_time() - start)
print(peak() - before)
"""


@pytest.mark.skipif("EMBITS_SANITIZED" in os.environ, reason="a sanitizer takes memory itself")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_fills_the_memory(name, path):
    path.write_bytes(BOMBS[name]())
    done = subprocess.run(
        [sys.executable, "-c", _READ, path], capture_output=True, text=True, timeout=60, check=True
    )
    refusal, seconds, megabytes = done.stdout.splitlines()
    assert "times its size" in refusal
    assert float(seconds) < LONGEST_S
    assert int(megabytes) < 100


@pytest.mark.skipif("EMBITS_SANITIZED" in os.environ, reason="a sanitizer takes memory itself")
def test_what_never_ends_or_is_far_too_large_is_refused_at_once(tmp_path):
    matrix, fifo = tmp_path / "m.npy", tmp_path / "fifo"
    np.save(matrix, corpus.MATRIX)
    os.mkfifo(fifo)
    huge = {name: tmp_path / name for name in ("huge.words", "huge.npy", "huge.json", "huge.vec")}
    starts = {"huge.words": b"a\n", "huge.npy": b"\x93NUMPY", "huge.json": b'{"a": [1], "',
              "huge.vec": b"a 1 2\nb 3 4 " + b" " * 70_000}  # fmt: skip
    for name, path in huge.items():
        with path.open("wb") as file:
            file.write(starts[name])
            file.seek(6 << 30)  # sparse: it takes no room on the disk
            file.write(b"\n")
    cases = [(fifo, None), ("/dev/zero", None), (matrix, fifo), (matrix, "/dev/zero")]
    cases += [(matrix, huge["huge.words"]), *((path, None) for path in huge.values())]
    for path, words in cases:
        done = subprocess.run(
            [sys.executable, "-c", _READ, path, *([words] if words else [])],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        refusal, seconds, megabytes = done.stdout.splitlines()
        assert refusal.startswith(str(words or path))
        assert float(seconds) < LONGEST_S
        assert int(megabytes) < 100


def test_an_xz_that_asks_for_gigabytes_is_refused(path):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 512 << 20}]
    path.write_bytes(lzma.compress(corpus.text(), filters=filters))
    with pytest.raises(embits.ReadError, match="damaged compression"):
        read(path)


@pytest.mark.parametrize("parts", [1, 3])
def test_an_xz_of_several_streams_is_read_whole(path, parts):
    lines = [b"w%d 1 2\n" % i for i in range(9)]
    step = 9 // parts
    packed = [lzma.compress(b"".join(lines[i : i + step])) for i in range(0, 9, step)]
    path.write_bytes(b"".join(packed) + b"\0" * 4)
    assert len(read(path)) == 9


def test_nothing_is_extracted_to_the_paths_that_an_archive_names(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    name = "../../escaped/v.txt"
    path.write_bytes(corpus.zipped(corpus.text(), name))
    assert len(read(path)) == 5
    file = io.BytesIO()
    np.savez(file, **{"../../escaped/matrix": corpus.MATRIX})
    path.write_bytes(file.getvalue())
    assert len(read(path)) == 5
    assert os.listdir(path.parent) == ["vectors"]  # noqa: PTH208
    assert not (path.parent / name).exists()


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", npy_header("{}"), b"x" * 99])
def test_original_floats_that_are_damaged_are_refused_in_a_search(path, content):
    bits = damage.small("lsh", subwords=False)
    path.write_bytes(content)
    is_npy = content.startswith(b"\x93NUMPY")
    said = "no usable array" if is_npy else "a file of another format, expected a .npy"
    with pytest.raises(embits.ReadError, match=said):
        bits.search(np.ones(6, "f4"), 3, rescore=embits.Rescore(by=path))
