"""Jobs on files that are read in small blocks."""

import gzip
import lzma
import warnings
import zipfile
from itertools import pairwise

import numpy as np
import pytest

import embits
from embits.errors import ReadWarning
from embits.jobs import stream
from embits.readers import blocks, source


def in_blocks(monkeypatch, *, block=1 << 12):
    """Read every file in blocks, and in small ones."""
    monkeypatch.setattr(stream, "STREAM_FROM", -1)
    monkeypatch.setattr(stream, "STREAM_PACKED_FROM", -1)
    monkeypatch.setattr(source, "CHUNK_BYTES", block)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)


def noted(call, *args, **kwargs):
    """What a call gives, and the notes it makes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(*args, **kwargs)
    return result, [str(each.message) for each in caught if each.category is ReadWarning]


def words_of(n):
    words = [f"w{i}" for i in range(n)]
    words[n // 3] = words[1]  # repeated
    words[n // 2] = "Zürich"
    return words


def write(folder, name, words, matrix):
    """The vectors in the format of a name."""
    path = folder / name
    vectors = embits.WordVectors(None, matrix)
    object.__setattr__(vectors, "words", words)  # the words of a file may repeat
    plain = folder / "plain.vec"
    if name.endswith((".gz", ".xz", ".zip")):
        embits.write_vectors(plain, vectors, overwrite=True)
        text = plain.read_bytes()
        plain.unlink()
        if name.endswith(".zip"):
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("plain.vec", text)
        else:
            path.write_bytes(gzip.compress(text) if name.endswith(".gz") else lzma.compress(text))
    elif name == "rows.npy":
        np.save(path, matrix)
    elif name == "columns.npy":
        np.save(path, np.asfortranarray(matrix.astype(np.float64)))
    elif name == "matrix.safetensors":
        numpy = pytest.importorskip("safetensors.numpy")
        numpy.save_file({"embeddings": matrix.astype(np.float16)}, path)
        path.with_suffix(".words").write_text("\n".join(words))
    elif name == "groups.parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pa.table({"word": words, "vector": pa.array(list(matrix), pa.list_(pa.float32()))})
        pq.write_table(table, path, row_group_size=700)
    elif name == "lake":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pa.table({"word": words, "vector": pa.array(list(matrix), pa.list_(pa.float32()))})
        cuts = [0, 0, len(words) // 3, len(words) // 3 + 1, len(words)]  # one of them has no rows
        for number, (start, stop) in enumerate(pairwise(cuts)):
            part = path / f"half={number // 2}" / f"part-{number}.parquet"
            part.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table.slice(start, stop - start), part)
    else:
        embits.write_vectors(path, vectors, overwrite=True)
    return path
