"""Codes made by several Ray workers are those of one process, whatever happens on the way."""

import json
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import embits
from tests.support.vectors import clustered

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402
from pyarrow import fs  # noqa: E402

from embits.collection.parquet import manifest_at  # noqa: E402
from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.parquet import read_codes, read_column  # noqa: E402
from embits.integrations.ray import encoding  # noqa: E402
from tests.support.ray_jobs import DIMS, busy_workers, fixed, leftovers, write_folder  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("method", ["near-lossless", "paper", "sign", "itq", "sparse"])
def test_codes_are_those_of_one_process_in_the_order_of_the_rows(method, folder, matrix, tmp_path):
    quick = {"near-lossless": {"steps": 5}, "sparse": {"iterations": 1}}.get(method, {})
    coder = embits.coders.METHODS[method](**quick).fit(matrix[:1000])
    facts = on_ray.encode(folder, coder, tmp_path / "out")
    bits = read_codes(tmp_path / "out", ids="word")
    assert np.array_equal(bits.codes, coder.transform(matrix))
    assert np.array_equal(read_column(tmp_path / "out", "id").to_numpy(), np.arange(len(matrix)))
    assert (facts["rows"], facts["skipped"], facts["parts"] > 1) == (len(matrix), 0, True)
    assert bits.most_similar("word7", topn=3) == embits.BinaryVectors.encoded(
        embits.WordVectors(list(bits.words), matrix), coder
    ).most_similar("word7", topn=3)
    assert leftovers(tmp_path) == ["out"]


def as_lists(matrix):
    return pa.array(list(matrix), pa.list_(pa.float32()))


def as_large_lists(matrix):
    return pa.array(list(matrix.astype("f8")), pa.large_list(pa.float64()))


def as_tensors(matrix):
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(matrix))


def as_ray_tensors(matrix):
    from ray.data.extensions import ArrowTensorArray

    return ArrowTensorArray.from_numpy(np.ascontiguousarray(matrix))


@pytest.mark.parametrize(
    "vectors", [as_lists, as_large_lists, as_tensors, as_ray_tensors, lambda m: fixed(m, "f8")]
)
def test_every_kind_of_column_is_read(vectors, matrix, coder, tmp_path):
    source = write_folder(tmp_path / "in", matrix[:900], files=2, vectors=vectors)
    on_ray.encode(source, coder, tmp_path / "out", column="vector")
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix[:900]))


def test_half_floats_are_read(matrix, coder, tmp_path):
    half = matrix[:900].astype("f2")
    source = write_folder(tmp_path / "in", half, files=2, vectors=lambda m: fixed(m, "f2"))
    on_ray.encode(source, coder, tmp_path / "out")
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(half))


def test_a_ray_dataset_is_encoded(matrix, coder, tmp_path):
    dataset = ray.data.from_numpy(list(np.split(matrix, 4)))
    on_ray.encode(dataset, coder, tmp_path / "out")
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix))
    facts = on_ray.encode(dataset.filter(lambda row: False), coder, tmp_path / "none")
    assert (facts["rows"], len(embits.load(tmp_path / "none"))) == (0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
def test_a_worker_that_is_killed_loses_and_doubles_nothing(tmp_path, monkeypatch):
    matrix = clustered(60_000, DIMS)
    coder = embits.RandomHyperplanes(n_bits=512).fit(matrix[:500])
    source = write_folder(tmp_path / "in", matrix, files=40)
    monkeypatch.setattr(encoding, "PIECES_PER_CPU", 20)
    killed = []

    def kill_when_half_done():
        while not killed and not done.is_set():
            if len(list(tmp_path.glob("out/*.parquet"))) >= 8:
                for process in busy_workers("map_piece")[:1]:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)
            time.sleep(0.001)

    done = threading.Event()
    killer = threading.Thread(target=kill_when_half_done)
    killer.start()
    try:
        facts = on_ray.encode(source, coder, tmp_path / "out")
    finally:
        done.set()
        killer.join()
    assert killed, "the job was over before a worker could be killed"
    assert facts["rows"] == len(matrix)
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix))
    assert np.array_equal(read_column(tmp_path / "out", "id").to_numpy(), np.arange(len(matrix)))
    listed = {
        part["file"] for part in json.loads((tmp_path / "out/_embits.json").read_text())["pieces"]
    }
    assert {path.name for path in (tmp_path / "out").glob("*.parquet")} == listed


@pytest.mark.parametrize("wanted", [1, 5_000, 40_000, 10**9])
def test_pieces_hold_every_row_group_once_and_in_order(wanted, folder, monkeypatch):
    monkeypatch.setattr(encoding, "MIN_BYTES", wanted)
    monkeypatch.setattr(encoding, "MAX_BYTES", wanted)
    pieces = encoding.Vectors(folder, None, None).pieces(2)
    files = sorted(folder.iterdir())
    counts = [pq.ParquetFile(file).num_row_groups for file in files]
    expected = [(str(f), i) for f, n in zip(files, counts, strict=True) for i in range(n)]
    assert [group for piece in pieces for group in piece] == expected
    assert (len(pieces) == 1) == (wanted == 10**9)


def test_a_sample_depends_on_vectors_and_seed_alone(folder, matrix):
    seen = []

    class Recorder(embits.RandomHyperplanes):
        def fit(self, X, y=None, *, progress=None):
            seen.append(X)
            return super().fit(X)

    shuffled = matrix[np.random.default_rng(1).permutation(len(matrix))]
    on_ray.fit(folder, Recorder(8), sample=700)
    on_ray.fit(ray.data.from_numpy(list(np.split(shuffled, 3))), Recorder(8), sample=700)
    on_ray.fit(folder, Recorder(8), sample=700, seed=1)
    on_ray.fit(folder, Recorder(8), sample=10**6)
    assert [len(rows) for rows in seen] == [700, 700, 700, len(matrix)]
    assert np.array_equal(seen[0], seen[1])
    known = {row.tobytes() for row in matrix}
    assert {row.tobytes() for row in seen[3]} == known
    assert {row.tobytes() for row in seen[0]} <= known
    shared = {row.tobytes() for row in seen[0]} & {row.tobytes() for row in seen[2]}
    assert len(shared) < 200  # two samples of 700 of 6,000: about 80


def test_an_object_store_is_read_and_written(bucket, matrix, folder, coder):
    files, address = bucket
    for path in folder.iterdir():
        with files.open_output_stream(f"bucket/in/{path.name}") as stream:
            stream.write(path.read_bytes())
    facts = on_ray.encode(address("in"), coder, address("out"), lengths=True)
    assert facts["rows"] == len(matrix)
    bits = embits.BinaryVectors.encoded(embits.WordVectors(None, matrix), coder, lengths=True)
    assert np.array_equal(embits.load(address("out")).lengths, bits.lengths)
    assert np.array_equal(read_codes(address("out")).codes, coder.transform(matrix))
    with pytest.raises(embits.InputError, match="already"):
        on_ray.encode(address("in"), coder, address("out"))
    facts = on_ray.encode(address("in"), coder, address("out"), keep=[], overwrite=True, workers=1)
    selector = fs.FileSelector("bucket/out", recursive=True)
    names = {info.base_name for info in files.get_file_info(selector)}
    parts = {piece.file for piece in manifest_at(address("out")).pieces}
    assert len(parts) == facts["parts"]
    assert names == {"_embits.json", "_coder.safetensors", *parts}
    files.delete_file("bucket/out/_embits.json")
    with pytest.raises(embits.FormatError, match="has not finished"):
        read_codes(address("out"))
