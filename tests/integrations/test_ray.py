"""Codes made by several Ray workers are those of one process, whatever happens on the way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import embits
from tests.support.program import messages
from tests.support.vectors import clustered

ray = pytest.importorskip("ray")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("ray.data")

import pyarrow.parquet as pq  # noqa: E402
from pyarrow import fs  # noqa: E402

from embits.integrations import ray as on_ray  # noqa: E402
from embits.integrations.parquet import read_codes, read_column  # noqa: E402
from embits.integrations.ray import pieces  # noqa: E402

pytestmark = pytest.mark.slow
DIMS = 24


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
        object_store_memory=100 << 20,
    )  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "MIN_BYTES", 1)  # several pieces of what fits into one
        yield
    ray.shutdown()


@pytest.fixture(scope="module")
def matrix():
    return clustered(6000, DIMS)


@pytest.fixture(scope="module")
def coder(matrix):
    return embits.RandomHyperplanes(n_bits=100).fit(matrix[:500])


def fixed(matrix, kind="f4"):
    flat = np.ascontiguousarray(matrix.astype(kind)).ravel()
    return pa.FixedSizeListArray.from_arrays(flat, matrix.shape[1])


def write_folder(folder, matrix, files=5, vectors=fixed):
    """Parquet files of unequal length, each with several row groups."""
    folder.mkdir()
    cuts = np.linspace(0, 1, files + 1) ** 1.5 * len(matrix)
    for number, (start, stop) in enumerate(
        zip(cuts[:-1].astype(int), cuts[1:].astype(int), strict=True)
    ):
        table = pa.table(
            {
                "id": np.arange(start, stop),
                "vector": vectors(matrix[start:stop]),
                "word": [f"word{i}" for i in range(start, stop)],
            }
        )
        pq.write_table(table, folder / f"{number:03d}.parquet", row_group_size=311)
    return folder


@pytest.fixture(scope="module")
def folder(matrix, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("vectors") / "in", matrix)


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


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


# -- a worker is killed --------------------------------------------------------------------------


def busy_workers():
    """Processes of this session's Ray that are at work on our tasks."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            title = (entry / "cmdline").read_bytes()
            parents = [int(entry.name)]
            for _ in range(2):
                stat = Path(f"/proc/{parents[-1]}/stat").read_text()
                parents.append(int(stat.rpartition(")")[2].split()[1]))
        except (OSError, ValueError, IndexError):
            continue
        if title.startswith(b"ray::") and b"write_piece" in title and parents[-1] == os.getpid():
            found.append(int(entry.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds the workers in /proc")
def test_a_worker_that_is_killed_loses_and_doubles_nothing(tmp_path, monkeypatch):
    matrix = clustered(60_000, DIMS)
    coder = embits.RandomHyperplanes(n_bits=512).fit(matrix[:500])
    source = write_folder(tmp_path / "in", matrix, files=40)
    monkeypatch.setattr(pieces, "PIECES_PER_CPU", 20)
    killed = []

    def kill_when_half_done():
        while not killed and not done.is_set():
            if len(list(tmp_path.glob(".out.*.tmp/*.parquet"))) >= 8:
                for process in busy_workers()[:1]:
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
    monkeypatch.setattr(pieces, "MIN_BYTES", wanted)
    monkeypatch.setattr(pieces, "MAX_BYTES", wanted)
    files = pieces.ParquetFiles.under(folder)
    runs = [run for piece in files.pieces(2) for run in piece]
    groups = [(run["file"], group) for run in runs for group in range(run["first"], run["last"])]
    assert groups == [(f, i) for f, sizes in files.groups.items() for i in range(len(sizes))]
    for run in runs:
        assert run["row"] == sum(rows for rows, _ in files.groups[run["file"]][: run["first"]])


# -- bad input -----------------------------------------------------------------------------------


def spoilt(matrix, how):
    """Row 1,234 is bad in the named way."""
    rows = list(matrix.astype("f8"))
    rows[1234] = {
        "null": None,
        "short": rows[1234][:5],
        "nan": np.full(DIMS, np.nan),
        "huge": np.full(DIMS, 1e300),
        "hole": [None, *rows[1234][1:]],
    }[how]
    return pa.array(rows, pa.list_(pa.float64()))


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("null", "a null"),
        ("short", "5 numbers"),
        ("nan", "nan, inf or null among the numbers"),
        ("huge", "nan, inf or null among the numbers"),
        ("hole", "nan, inf or null among the numbers"),
    ],
)
def test_bad_rows_are_refused_by_name_or_left_out(how, found, matrix, coder, tmp_path):
    (tmp_path / "in").mkdir()
    path = tmp_path / "in/a.parquet"
    table = pa.table({"vector": spoilt(matrix[:2000], how), "id": np.arange(2000)})
    pq.write_table(table, path, row_group_size=500)
    with pytest.raises(embits.ReadError) as caught:
        on_ray.encode(path.parent, coder, tmp_path / "out")
    assert str(caught.value).startswith(
        f"{path}, column 'vector', row 1234: found {found}, expected"
    )
    assert "\n" not in str(caught.value)
    assert leftovers(tmp_path) == ["in"]

    facts = on_ray.encode(path.parent, coder, tmp_path / "out", on_bad="skip")
    assert (facts["rows"], facts["skipped"]) == (1999, 1)
    good = np.delete(np.arange(2000), 1234)
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix[good]))
    assert np.array_equal(read_column(tmp_path / "out", "id").to_numpy(), good)


def test_a_bad_row_of_a_dataset_is_named_by_what_stands_beside_it(matrix, coder, tmp_path):
    table = pa.table({"vector": spoilt(matrix[:2000], "null"), "id": np.arange(2000)})
    with pytest.raises(embits.ReadError, match="the row of id 1234: found a null"):
        on_ray.encode(ray.data.from_arrow(table), coder, tmp_path / "out")


def test_what_cannot_be_read_is_refused_in_one_line(folder, coder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text/a.parquet").write_text("not Parquet at all")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "ids.parquet")
    wide = embits.RandomHyperplanes(n_bits=8).fit(np.eye(5))
    for source, options, message in [
        (tmp_path / "nowhere", {}, "found nothing there, expected a folder of Parquet"),
        (tmp_path / "empty", {}, "found no .parquet files"),
        (tmp_path / "text", {}, "found a damaged file"),
        (tmp_path / "ids.parquet", {}, "found no column of vectors"),
        (folder, {"column": "id"}, "column 'id': found int64, expected lists of floats"),
        (folder, {"column": "x"}, "found columns id, vector, word, expected one named 'x'"),
        (folder, {"keep": ["x"]}, "there is no column 'x' to keep"),
        (folder, {"coder": wide}, "found 24 numbers, expected 5"),
    ]:
        options = {"coder": coder, **options}
        with pytest.raises(embits.EmbitsError, match=message) as caught:
            on_ray.encode(source, target=tmp_path / "out", **options)
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_replaced_only_when_asked(folder, coder, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(embits.InputError, match="holds 1 files already"):
        on_ray.encode(folder, coder, tmp_path / "out")
    assert (tmp_path / "out/mine.txt").read_text() == "mine"
    on_ray.encode(folder, coder, tmp_path / "out", overwrite=True)
    assert not (tmp_path / "out/mine.txt").exists()
    assert leftovers(tmp_path) == ["out"]


def test_the_vectors_are_never_overwritten(matrix, coder, tmp_path):
    source = write_folder(tmp_path / "in", matrix[:900], files=2)
    before = {path: path.read_bytes() for path in source.iterdir()}
    (tmp_path / "link").symlink_to(source)
    single = source / "000.parquet"
    dataset = ray.data.read_parquet(str(source))
    for vectors, target in [
        (source, source),
        (source, tmp_path / "link"),
        (source, tmp_path),
        (single, source),
        (dataset, source),
        (str(source) + "/", source),
    ]:
        with pytest.raises(embits.InputError, match="may hold the vectors to encode"):
            on_ray.encode(vectors, coder, target, overwrite=True)
    assert {path: path.read_bytes() for path in source.iterdir()} == before


def test_load_opens_what_a_job_wrote(folder, coder, matrix, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out", ids="word", keep=[])
    bits = embits.load(tmp_path / "out", verify=True)
    assert np.array_equal(bits.codes, coder.transform(matrix))
    assert list(bits.words[:3]) == ["word0", "word1", "word2"]
    assert np.array_equal(bits.encode(matrix[:5]), bits.codes[:5])
    on_ray.encode(folder, coder, tmp_path / "numbers", ids="id")
    assert embits.load(tmp_path / "numbers").words[7] == "7"
    on_ray.encode(folder, coder, tmp_path / "rows")
    assert embits.load(str(tmp_path / "rows")).ids([7]).tolist() == [7]


def test_ids_that_cannot_name_rows_are_refused(folder, coder, matrix, tmp_path):
    with pytest.raises(embits.ReadError, match=r"'vector': found .*, expected ids"):
        on_ray.encode(folder, coder, tmp_path / "out", ids="vector")
    with pytest.raises(embits.EmbitsError, match="'title'"):
        on_ray.encode(folder, coder, tmp_path / "out", ids="title")
    assert leftovers(tmp_path) == []
    table = pa.table({"vector": fixed(matrix[:3]), "id": ["a", "b", "a"]})
    on_ray.encode(ray.data.from_arrow(table), coder, tmp_path / "out", ids="id")
    with pytest.raises(embits.FormatError, match=r"column 'id': .*'a' appears twice"):
        embits.load(tmp_path / "out")
    assert np.array_equal(read_codes(tmp_path / "out").codes, coder.transform(matrix[:3]))


def test_load_refuses_damage_in_a_part(folder, coder, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out", keep=[])
    part = tmp_path / "out/part-00000.parquet"
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content)
    with pytest.raises(embits.FormatError, match="damaged: part-00000"):
        embits.load(tmp_path / "out")


def test_a_folder_of_something_else_is_refused_in_one_line(tmp_path):
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(embits.FormatError, match=r"no _embits.json: .* not a collection"):
        embits.load(tmp_path)


def test_an_unfinished_or_damaged_folder_is_refused(folder, coder, tmp_path):
    on_ray.encode(folder, coder, tmp_path / "out", keep=[])
    (tmp_path / "out/part-00001.parquet").rename(tmp_path / "hidden")
    with pytest.raises(embits.FormatError, match="part-00001"):
        read_codes(tmp_path / "out")
    with pytest.raises(embits.ReadError, match="expected one named 'id'"):
        read_column(tmp_path / "out", "id")
    (tmp_path / "out/_embits.json").unlink()
    with pytest.raises(embits.FormatError, match="has not finished"):
        read_codes(tmp_path / "out")


# -- an object store -----------------------------------------------------------------------------


@pytest.fixture
def bucket():
    """The address of an empty bucket on an S3 server of this machine, for a path to go in."""
    server_module = pytest.importorskip("moto.server")
    server = server_module.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = f"?scheme=http&region=us-east-1&endpoint_override={host}:{port}"
    files, _ = fs.FileSystem.from_uri(
        f"s3://name:secret@bucket{options}&allow_bucket_creation=true"
    )
    files.create_dir("bucket")
    yield files, lambda path: f"s3://name:secret@bucket/{path}{options}"
    server.stop()


def test_an_object_store_is_read_and_written(bucket, matrix, folder, coder):
    files, address = bucket
    for path in folder.iterdir():
        with files.open_output_stream(f"bucket/in/{path.name}") as stream:
            stream.write(path.read_bytes())
    facts = on_ray.encode(address("in"), coder, address("out"))
    assert facts["rows"] == len(matrix)
    assert np.array_equal(read_codes(address("out")).codes, coder.transform(matrix))
    with pytest.raises(embits.InputError, match="already"):
        on_ray.encode(address("in"), coder, address("out"))
    facts = on_ray.encode(address("in"), coder, address("out"), keep=[], overwrite=True, workers=1)
    selector = fs.FileSelector("bucket/out", recursive=True)
    names = {info.base_name for info in files.get_file_info(selector)}
    parts = {f"part-{number:05d}.parquet" for number in range(facts["parts"])}
    assert names == {"_embits.json", "_coder.safetensors", *parts}
    files.delete_file("bucket/out/_embits.json")
    with pytest.raises(embits.FormatError, match="has not finished"):
        read_codes(address("out"))


# -- fit -----------------------------------------------------------------------------------------


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


# -- the command line ----------------------------------------------------------------------------


def run(*arguments):
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "embits", *map(str, arguments), "--ray-address", address]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_command_line_binarizes_and_encodes(folder, matrix, tmp_path):
    out = tmp_path / "out"
    done = run("binarize", folder, "-o", out, "--ray", "--method", "lsh", "--bits", "64", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["rows"] == len(matrix)
    bits = read_codes(out)
    assert np.array_equal(bits.codes, bits.coder.transform(matrix))

    done = run("encode", out / "_coder.safetensors", folder, "-o", tmp_path / "again", "--ray")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("6,000 rows × 64 bits in ")
    assert np.array_equal(read_codes(tmp_path / "again").codes, bits.codes)


def embits_says(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "embits", *map(str, arguments)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_verb_takes_the_folder_of_a_job(folder, matrix, tmp_path):
    out = tmp_path / "out"
    done = run("binarize", folder, "-o", out, "--ray", "--bits", "64", "--method", "lsh",
               "--ids", "word", "--keep", "id")  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    bits = embits.load(out)
    bits.save(tmp_path / "file.safetensors")
    words = embits.WordVectors(list(bits.words), matrix)
    embits.write_vectors(tmp_path / "raw.npz", words)

    info = json.loads(embits_says("info", out, "--json"))
    assert (info["words"], info["bits"], info["method"]) == (len(matrix), 64, "lsh")
    assert info["bytes"] == sum(path.stat().st_size for path in out.iterdir())
    for verb in (["neighbors"], ["similarity"], ["verify"]):
        words = {"neighbors": ["word7"], "similarity": ["word7", "word8"]}.get(verb[0], [])
        of_folder = json.loads(embits_says(*verb, out, *words, "--json"))
        of_file = json.loads(embits_says(*verb, tmp_path / "file.safetensors", *words, "--json"))
        for answer in (of_folder, of_file):
            answer.pop("file", None)
            for query in answer.get("queries", []):
                query.pop("ms")
        assert of_folder == of_file

    embits_says("export", out, "--to", "npy", "-o", tmp_path / "codes.npy")
    assert np.array_equal(np.load(tmp_path / "codes.npy"), bits.codes)
    embits_says("decode", out, "-o", tmp_path / "floats.npy")
    assert np.array_equal(np.load(tmp_path / "floats.npy"), bits.decode())
    scores = embits_says(
        "evaluate", out, "--raw", tmp_path / "raw.npz", "--tasks", "neighbors", "--json"
    )
    entry = json.loads(scores)[-1]
    assert entry["file"] == str(out)
    assert 0 < entry["neighbors"]["recall_at_10"] <= 1
    embits_says("page", out, "-o", tmp_path / "site")
    vectors = next((tmp_path / "site").glob("vectors-*.safetensors"))
    assert np.array_equal(embits.load(vectors).codes, bits.codes)


def test_the_command_line_fails_in_one_line(matrix, coder, tmp_path):
    embits.BinaryVectors.encoded(embits.WordVectors(None, matrix[:1]), coder).save(tmp_path / "c")
    table = pa.table({"vector": spoilt(matrix[:2000], "nan")})
    pq.write_table(table, tmp_path / "bad.parquet")
    done = run("encode", tmp_path / "c", tmp_path / "bad.parquet", "-o", tmp_path / "out", "--ray")
    assert done.returncode == 1
    assert done.stderr.startswith("embits: error: ")
    assert "row 1234: found nan" in done.stderr
    assert messages(done.stderr).count("\n") == 1
