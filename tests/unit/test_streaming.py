"""Files larger than memory: the same bytes as when read whole, whatever stops the job half-way."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.coders import METHODS
from embits.coders.lazy import LazyRows
from embits.errors import InputError, ReadError, ReadWarning
from embits.readers import blocks as reader_blocks
from embits.readers import open_blocks, source
from embits.streaming import checkpoint, steps
from embits.streaming import input as job_input
from tests.support.vectors import clustered

QUICK = {
    "near-lossless": {"steps": 10},
    "paper": {"epochs": 1},
    "lsh": {},
    "sign": {},
    "itq": {"iterations": 2},
    "sparse": {"iterations": 1},
}


def in_blocks(monkeypatch, *, block=1 << 12):
    """Read every file in blocks, and in small ones."""
    monkeypatch.setattr(job_input, "STREAM_FROM", -1)
    monkeypatch.setattr(job_input, "STREAM_PACKED_FROM", -1)
    monkeypatch.setattr(source, "CHUNK_BYTES", block)
    monkeypatch.setattr(reader_blocks, "BLOCK_BYTES", block)


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
        embits.write_vectors(plain, vectors)
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
    else:
        embits.write_vectors(path, vectors)
    return path


FORMATS = ["v.vec", "v.txt.gz", "v.txt.xz", "v.zip", "v.bin", "v.npy", "rows.npy", "columns.npy",
           "matrix.safetensors", "v.parquet", "groups.parquet"]  # fmt: skip
WORDS_BESIDE = ["v.npy", "matrix.safetensors"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_read_in_blocks_gives_the_bytes_of_one_read_whole(tmp_path, monkeypatch, name):
    matrix = clustered(5000, dims=10)
    words = words_of(len(matrix))
    if name in WORDS_BESIDE:  # they are refused if they repeat
        words[5000 // 3] = "other"
    path = write(tmp_path, name, words, matrix)
    _, whole_notes = noted(embits.binarize_to_file, path, tmp_path / "whole", 20, "lsh")
    other = embits.binarize(matrix[:50], 12, "lsh")
    noted(embits.encode_to_file, other, path, tmp_path / "whole-encoded")
    in_blocks(monkeypatch)
    bits, notes = noted(embits.binarize_to_file, path, tmp_path / "blocks", 20, "lsh")
    noted(embits.encode_to_file, other, path, tmp_path / "blocks-encoded")
    (in_memory, _) = noted(embits.binarize, path, 20, "lsh")
    in_memory.save(tmp_path / "memory")
    whole = (tmp_path / "whole").read_bytes()
    assert (tmp_path / "blocks").read_bytes() == whole == (tmp_path / "memory").read_bytes()
    assert notes == whole_notes
    assert len(bits) == (5000 if name in ("rows.npy", "columns.npy", *WORDS_BESIDE) else 4999)
    encoded = (tmp_path / "blocks-encoded").read_bytes()
    assert encoded == (tmp_path / "whole-encoded").read_bytes()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", WORDS_BESIDE)
@pytest.mark.parametrize("blocks", [False, True])
def test_repeats_of_words_beside_a_matrix_are_refused_or_left_out(
    tmp_path, monkeypatch, name, blocks
):
    matrix = clustered(300, dims=10)
    path = write(tmp_path, name, words_of(len(matrix)), matrix)
    before = sorted(tmp_path.iterdir())
    if blocks:
        in_blocks(monkeypatch)
    coder = embits.RandomHyperplanes(8).fit(matrix)
    for call in (
        lambda **options: embits.binarize_to_file(path, tmp_path / "out", 20, "lsh", **options),
        lambda **options: embits.encode_to_file(coder, path, tmp_path / "out", **options),
    ):
        for repeats in ({}, {"repeats": "refuse"}):
            with pytest.raises(
                ReadError, match=r"row 101: found the word 'w1' again, .* --repeats"
            ):
                call(**repeats)
            assert sorted(tmp_path.iterdir()) == before
        bits, notes = noted(call, repeats="first")
        assert len(bits) == 299
        assert "1 repeated word left out, the first at row 101: 'w1'" in notes[0]
        (tmp_path / "out").unlink()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_on_a_file_as_it_fits_in_memory(tmp_path, monkeypatch, method):
    from embits.coders import linear_decoder, sparse
    from embits.coders.near_lossless import sampling

    for module in (linear_decoder, sampling, sparse):  # as if the file were much larger
        monkeypatch.setattr(module, "SAMPLE_ROWS", 300)
    matrix = clustered(4000, dims=12)
    np.save(tmp_path / "m.npy", matrix)
    n_bits = None if method == "sign" else 30
    expected = embits.binarize(matrix, n_bits, method, **QUICK[method])
    expected.save(tmp_path / "memory")
    in_blocks(monkeypatch)
    embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "file", n_bits, method, **QUICK[method])
    assert (tmp_path / "file").read_bytes() == (tmp_path / "memory").read_bytes()


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_looks_at_no_other_rows_than_it_says(method, monkeypatch):
    from embits.coders import linear_decoder, sparse
    from embits.coders.near_lossless import sampling

    for module in (linear_decoder, sampling, sparse):
        monkeypatch.setattr(module, "SAMPLE_ROWS", 200)
    coder = METHODS[method](**QUICK[method])
    matrix = clustered(20_000, dims=6)
    rows = coder.rows_for_fit(*matrix.shape)
    if rows is None:
        return

    def take(asked):
        assert np.isin(asked, rows).all()
        return matrix[asked]

    fitted = METHODS[method](**QUICK[method]).fit(LazyRows(take, *matrix.shape))
    for name, array in coder.fit(matrix).state().items():
        assert np.array_equal(fitted.state()[name], array)
    assert len(rows) < len(matrix)


def test_a_sample_is_drawn_by_the_seed_alike_in_memory_and_in_blocks(tmp_path, monkeypatch):
    matrix = clustered(3000, dims=8)
    np.save(tmp_path / "m.npy", matrix)
    options = {"n_bits": 16, "method": "itq", "sample": 500, "random_state": 3}
    embits.binarize(matrix, **options).save(tmp_path / "memory")
    in_blocks(monkeypatch)
    embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "file", **options)
    assert (tmp_path / "file").read_bytes() == (tmp_path / "memory").read_bytes()
    other = embits.binarize(matrix, **{**options, "random_state": 4})
    assert not np.array_equal(other.codes, embits.load(tmp_path / "file").codes)
    with pytest.raises(InputError, match="sample is 0, expected"):
        embits.binarize(matrix, sample=0)


# -- block boundaries ----------------------------------------------------

LINES = st.lists(
    st.sampled_from(
        [
            b"a 1 2",
            b"b 3 4",
            b"c\xff 5 6",
            b"a 7 8",
            b". . 9 9",
            b"",
            b"x 1",
            b"y nan 2",
            b"d 1 2\r",
        ]
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=60)
@given(
    lines=LINES,
    ends=st.booleans(),
    header=st.none() | st.integers(0, 40),
    limit=st.none() | st.integers(1, 12),
    on_bad=st.sampled_from(["raise", "skip"]),
    size=st.integers(1, 60),
)
def test_where_blocks_end_changes_nothing(
    tmp_path_factory, lines, ends, header, limit, on_bad, size
):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    first = [] if header is None else [b"%d 2" % header]
    path.write_bytes(b"\n".join([*first, *lines]) + (b"\n" if ends else b""))
    target = path.with_name("out")
    outcomes = []
    for least in (1 << 30, -1):
        with pytest.MonkeyPatch.context() as patched:
            in_blocks(patched, block=size)
            patched.setattr(job_input, "STREAM_FROM", least)
            try:
                _, notes = noted(
                    embits.binarize_to_file, path, target, 5, "lsh", limit=limit, on_bad=on_bad
                )
                outcomes.append((target.read_bytes(), notes))
            except ReadError as error:
                outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@settings(max_examples=20)
@given(rows=st.integers(1, 60), at=st.integers(0, 59), size=st.integers(1, 200))
def test_reading_goes_on_at_any_block(tmp_path_factory, rows, at, size):
    folder = tmp_path_factory.getbasetemp()
    matrix = clustered(rows, dims=3)
    words = [f"w{i}" for i in range(rows)]
    with pytest.MonkeyPatch.context() as patched:
        in_blocks(patched, block=size)
        for name in ("v.vec", "v.bin", "v.npy", "v.parquet"):
            opened = open_blocks(write(folder, name, words, matrix))
            read = list(opened.read(opened.start(), words=True))
            assert np.array_equal(np.concatenate([block.matrix for block in read]), matrix)
            start = read[at % len(read)].start
            again = [w for block in opened.read(start, words=True) for w in block.words]
            assert again == words[start.rows :]


# -- a coder that breaks its contract ----------------------------------------------------


class Forgetful(embits.RandomHyperplanes):
    """Fits its decoder on all rows, and leaves some out of `rows_for_fit`."""

    def rows_for_fit(self, n, dims):
        return np.delete(np.arange(n), [7, 1000])


class Unordered(embits.RandomHyperplanes):
    def rows_for_fit(self, n, dims):
        return np.arange(n)[::-1]


@pytest.mark.parametrize(
    ("coder", "message"),
    [(Forgetful(16), "reads row 7, which its rows_for_fit leaves out"),
     (Unordered(16), "rows_for_fit of Unordered must return row numbers from 0 to 2999")],
)  # fmt: skip
def test_a_row_that_rows_for_fit_leaves_out_is_never_replaced_by_another(
    tmp_path, monkeypatch, coder, message
):
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(3000, dims=6))
    with pytest.raises(embits.TrainingError, match=message):
        embits.binarize(tmp_path / "m.npy", coder=coder)


# -- what may be replaced ----------------------------------------------------


@pytest.mark.parametrize("large", [False, True])
def test_an_input_or_a_foreign_file_is_not_replaced(tmp_path, monkeypatch, large):
    if large:
        in_blocks(monkeypatch)
    matrix, notes = tmp_path / "self.npy", tmp_path / "notes.md"
    words, fitted = tmp_path / "words.txt", tmp_path / "fitted"
    np.save(matrix, clustered(30, dims=6))
    notes.write_text("mine")
    words.write_text("\n".join(f"w{i}" for i in range(30)))
    embits.binarize_to_file(matrix, fitted, 16, "lsh")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for target in (matrix, words):
        with pytest.raises(InputError, match="is an input"):
            embits.binarize_to_file(matrix, target, 16, "lsh", words=words, overwrite=True)
    for target in (matrix, fitted):
        with pytest.raises(InputError, match="is an input"):
            embits.encode_to_file(fitted, matrix, target, overwrite=True)
    for job, coder in ((embits.binarize_to_file, ()), (embits.encode_to_file, (fitted,))):
        with pytest.raises(InputError, match=r"notes\.md exists, and embits did not write it"):
            job(*coder, matrix, notes)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert len(embits.encode_to_file(fitted, matrix, notes, overwrite=True)) == 30


# -- bad input ----------------------------------------------------


def test_a_bad_row_is_named_by_its_line_and_nothing_is_left(tmp_path, monkeypatch):
    in_blocks(monkeypatch, block=64)
    lines = [f"w{i} 1 {i}" for i in range(300)]
    lines[200] = "w200 1 oops"
    (tmp_path / "v.txt").write_text("\n".join(lines))
    with pytest.raises(ReadError, match=r"v\.txt, line 201: found 'oops', expected 2 numbers"):
        embits.binarize_to_file(tmp_path / "v.txt", tmp_path / "out", 8, "lsh")
    matrix = clustered(300, dims=4)
    matrix[250, 1] = np.nan
    np.save(tmp_path / "m.npy", matrix)
    with pytest.raises(ReadError, match="row 251: found nan or inf"):
        embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "out", 8, "lsh")
    assert {path.name for path in tmp_path.iterdir()} == {"v.txt", "m.npy"}
    bits, notes = noted(
        embits.binarize_to_file, tmp_path / "m.npy", tmp_path / "out", 8, "lsh", on_bad="skip"
    )
    assert len(bits) == 299
    assert "1 row left out, the first at row 251" in notes[0]


def test_vectors_of_other_dimensions_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(300, dims=4))
    coder = embits.RandomHyperplanes(8).fit(clustered(50, dims=5))
    with pytest.raises(InputError, match="vectors of 4 dimensions, but the coder takes 5"):
        embits.encode_to_file(coder, tmp_path / "m.npy", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["m.npy"]


# -- stopped half-way ----------------------------------------------------

_JOB = """
import os, signal, sys
import embits, embits.cli
from embits.readers import blocks, source
from embits.streaming import checkpoint, input
input.STREAM_FROM = checkpoint.SECONDS_APART = -1
blocks.BLOCK_BYTES = source.CHUNK_BYTES = 1 << 13
end, how, stage, left = {end!r}
real = checkpoint.Stage.save
def save(self, *args, **kwargs):
    global left
    left -= self._name == stage
    if left < 0 and how == "before":
        for file in self.files.values():
            file.flush()
        os.kill(os.getpid(), end)
    real(self, *args, **kwargs)
    if left < 0:
        os.kill(os.getpid(), end)
checkpoint.Stage.save = save
sys.argv = ["embits", *sys.argv[1:]]
embits.cli.main()
"""
NEVER = (0, "", "", 0)


def run_job(folder, args, end=NEVER):
    """A job that ends itself by a signal, before or after a record of a stage, the n-th."""
    return subprocess.run(
        [sys.executable, "-c", _JOB.format(end=(int(end[0]), *end[1:])), *args],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    matrix = clustered(9000, dims=6)
    write(folder, "v.vec", words_of(len(matrix)), matrix)
    np.save(folder / "m.npy", matrix)
    embits.binarize(matrix[:100], 16, "lsh").save(folder / "coder.safetensors")
    return folder


COMMANDS = {
    "binarize": ["binarize", "v.vec", "-o", "out", "--bits", "24", "--method", "itq"],
    "rows": ["binarize", "m.npy", "-o", "out", "--bits", "24", "--method", "lsh"],
    "encode": ["encode", "coder.safetensors", "v.vec", "-o", "out"],
}


ENDS = {
    "binarize": [("after", "scan", 3), ("before", "scan", 5), ("before", "index", 0),
                 ("after", "sample", 4), ("before", "fit", 0), ("after", "encode", 1),
                 ("before", "encode", 1)],
    "rows": [("before", "sample", 9), ("after", "fit", 0), ("before", "encode", 2)],
    "encode": [("before", "scan", 9), ("after", "encode", 0), ("before", "encode", 3)],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_job_that_is_killed_again_and_again_gives_the_same_bytes(killed, name):
    """kill -9 right after a record of a stage, and when more was written than was recorded."""
    assert run_job(killed, COMMANDS[name]).returncode == 0
    expected = (killed / "out").read_bytes()
    (killed / "out").unlink()
    for end in ENDS[name]:
        done = run_job(killed, COMMANDS[name], (signal.SIGKILL, *end))
        assert done.returncode == -signal.SIGKILL, (end, done.stderr)
        assert "starting again" not in done.stderr
        stages = json.loads((killed / ".out.partial/state.json").read_text())["stages"]
        assert end[0] == "before" or end[1] in stages
    assert run_job(killed, COMMANDS[name]).returncode == 0
    assert (killed / "out").read_bytes() == expected
    assert not (killed / ".out.partial").exists()
    (killed / "out").unlink()


def test_a_finished_fit_is_not_done_again(tmp_path, monkeypatch):
    in_blocks(monkeypatch)
    monkeypatch.setattr(checkpoint, "SECONDS_APART", -1)
    np.save(tmp_path / "m.npy", clustered(5000, dims=6))
    args = tmp_path / "m.npy", tmp_path / "out", 16, "lsh"

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(steps, "encode_file", stop)
        with pytest.raises(KeyboardInterrupt, match="run the same command again to resume"):
            embits.binarize_to_file(*args)
    assert not (tmp_path / "out").exists()
    with monkeypatch.context() as patched:
        patched.setattr(embits.RandomHyperplanes, "fit", stop)
        bits = embits.binarize_to_file(*args)
    whole = embits.binarize(np.load(tmp_path / "m.npy"), 16, "lsh")
    assert np.array_equal(bits.codes, whole.codes)
    assert {path.name for path in tmp_path.iterdir()} == {"m.npy", "out"}


def interrupted(monkeypatch, *args, **kwargs):
    """Leave the folder of a job that was stopped in its last pass."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(steps, "encode_file", stop)
        with pytest.raises(KeyboardInterrupt):
            embits.binarize_to_file(*args, **kwargs)


@pytest.mark.parametrize("change", ["input", "bits", "damage", "short"])
def test_what_another_job_left_is_thrown_away_with_a_word(tmp_path, monkeypatch, change):
    in_blocks(monkeypatch)
    path, target = tmp_path / "m.npy", tmp_path / "out"
    np.save(path, clustered(3000, dims=6))
    interrupted(monkeypatch, path, target, 16, "lsh")
    folder = tmp_path / ".out.partial"
    n_bits = 24 if change == "bits" else 16
    if change == "input":
        np.save(path, clustered(3000, dims=6, seed=1))
    elif change == "damage":
        (folder / "state.json").write_bytes(b'{"stages": [')
    elif change == "short":
        kept = json.loads((folder / "state.json").read_text())
        kept["stages"]["encode"] = {"lengths": {"codes": 99}, "mark": None}
        (folder / "state.json").write_text(json.dumps(kept))
    bits, notes = noted(embits.binarize_to_file, path, target, n_bits, "lsh")
    assert ["starting again" in note for note in notes] == [True]
    assert np.array_equal(bits.codes, embits.binarize(np.load(path), n_bits, "lsh").codes)
    assert not folder.exists()


def test_two_jobs_do_not_write_one_file(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    in_blocks(monkeypatch)
    np.save(tmp_path / "m.npy", clustered(3000, dims=6))
    first = checkpoint.Checkpoint(tmp_path / ".out.partial", {})
    with pytest.raises(InputError, match="another process is writing the same file"):
        embits.binarize_to_file(tmp_path / "m.npy", tmp_path / "out", 16, "lsh")
    first.remove()
    assert [path.name for path in tmp_path.iterdir()] == ["m.npy"]


def test_files_of_others_in_the_folder_stay(tmp_path):
    kept = checkpoint.Checkpoint(tmp_path / ".out.partial", {})
    (tmp_path / ".out.partial/mine").write_text("x")
    kept.remove()
    assert [path.name for path in (tmp_path / ".out.partial").iterdir()] == ["mine"]


def test_ctrl_c_says_that_the_same_command_goes_on(killed):
    done = run_job(killed, COMMANDS["binarize"], (signal.SIGINT, "after", "sample", 2))
    assert done.returncode == 130, done.stderr
    assert done.stderr.strip().endswith(".out.partial: run the same command again to resume")
    assert not (killed / "out").exists()
    assert run_job(killed, COMMANDS["binarize"]).returncode == 0
    assert embits.load(killed / "out", verify=True).n_bits == 24
    (killed / "out").unlink()


# -- memory ----------------------------------------------------

_PEAK = """
import sys
import embits
from embits.streaming import input
input.STREAM_FROM = 0
embits.binarize_to_file(sys.argv[1], sys.argv[2], 64, "lsh")
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's peak memory")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Four times the rows: 130 MB more of floats, of which next to none is held."""
    peaks = []
    for n in (40_000, 160_000):
        matrix = np.zeros((n, 256), np.float32)
        matrix[:, 0] = np.arange(n)
        np.save(tmp_path / "m.npy", matrix)
        done = subprocess.run(
            [sys.executable, "-c", _PEAK, tmp_path / "m.npy", tmp_path / "out"],
            capture_output=True, text=True, check=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 30


def test_words_of_a_large_list_are_read_as_they_lie(tmp_path):
    np.save(tmp_path / "m.npy", clustered(6, dims=4))
    for content in (
        "a\nb\nc\nd\ne\nf",
        "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\n",
        "\ufeffa\nb\nc\nd\ne\nf\n",
    ):
        Path(tmp_path / "ids").write_text(content, newline="")
        opened = open_blocks(tmp_path / "m.npy", words=tmp_path / "ids")
        words = [w for block in opened.read(opened.start(), words=True) for w in block.words]
        assert words == list("abcdef")
