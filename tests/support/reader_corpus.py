"""Small good files of every format that the readers take, made anew each time."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
import zipfile

import numpy as np

WORDS = ["the", "queen", "Zürich", "日本", "x"]
MATRIX = np.random.default_rng(0).normal(0, 0.5, (len(WORDS), 4)).astype("<f4")


def _pairs() -> zip[tuple[str, np.ndarray]]:
    return zip(WORDS, MATRIX, strict=True)


def text(header: bool = True) -> bytes:
    lines = [f"{word} {' '.join(f'{x:.5g}' for x in row)}" for word, row in _pairs()]
    return "\n".join([f"{len(WORDS)} 4"] * header + lines + [""]).encode()


def word2vec() -> bytes:
    rows = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in _pairs()]
    return b"5 4\n" + b"".join(rows)


def fasttext() -> bytes:
    matrix = np.random.default_rng(1).normal(0, 0.5, (len(WORDS) + 3, 4)).astype("<f4")
    return b"".join(
        [
            struct.pack("<ii", 793712314, 12),
            struct.pack("<12id", 4, 5, 5, 1, 5, 1, 2, 2, 3, 2, 4, 100, 1e-4),
            struct.pack("<3iqq", len(WORDS), len(WORDS), 0, 10, -1),
            *(word.encode() + b"\0" + struct.pack("<qb", 5, 0) for word in WORDS),
            struct.pack("<?qq", False, *matrix.shape),
            matrix.tobytes(),
        ]
    )


def npy(matrix: np.ndarray = MATRIX) -> bytes:
    file = io.BytesIO()
    np.save(file, matrix)
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, words=np.array(WORDS), matrix=MATRIX)
    return file.getvalue()


def safetensors() -> bytes:
    entry = {"dtype": "F32", "shape": [5, 4], "data_offsets": [0, MATRIX.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    return len(header).to_bytes(8, "little") + header + MATRIX.tobytes()


def json_object() -> bytes:
    return json.dumps({word: row.tolist() for word, row in _pairs()}).encode()


def parquet() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = io.BytesIO()
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(MATRIX.ravel()), 4)
    pq.write_table(pa.table({"word": WORDS, "vector": vectors}), file)
    return file.getvalue()


def zipped(content: bytes, name: str = "v.txt") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


FORMATS = {
    "text": [text(), text(header=False), b"\xef\xbb\xbf" + text().replace(b"\n", b"\r\n")],
    "word2vec": [word2vec(), gzip.compress(word2vec(), mtime=0)],
    "fasttext": [fasttext()],
    "npy": [npy(), npy(MATRIX.astype("f2")), npy(np.asfortranarray(MATRIX.astype(">f8")))],
    "npz": [npz()],
    "safetensors": [safetensors()],
    "json": [json_object()],
    "parquet": [parquet()],
    "archives": [gzip.compress(text(), mtime=0), lzma.compress(text()), zipped(text())],
}
