"""Files larger than memory: the same bytes as when read whole, wherever blocks end."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import embits
from embits.arrays import LazyRows
from embits.coders import METHODS
from embits.errors import InputError, ReadError
from embits.jobs import stream
from embits.readers import new_source, open_blocks
from tests.support.streaming import in_blocks, noted, words_of, write
from tests.support.vectors import clustered

QUICK = {
    "near-lossless": {"steps": 10},
    "neural": {},
    "paper": {"epochs": 1},
    "lsh": {},
    "sign": {},
    "itq": {"iterations": 2},
    "sparse": {"iterations": 1},
}


FORMATS = ["v.vec", "v.txt.gz", "v.txt.xz", "v.zip", "v.bin", "v.npy", "rows.npy", "columns.npy",
           "matrix.safetensors", "v.parquet", "groups.parquet", "lake"]  # fmt: skip
WORDS_BESIDE = ["v.npy", "matrix.safetensors"]
REFUSED = [*WORDS_BESIDE, "v.parquet", "groups.parquet", "lake"]  # if words repeat
pytestmark = pytest.mark.filterwarnings("ignore:.*columns of its folders left out")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_read_in_blocks_gives_the_bytes_of_one_read_whole(tmp_path, monkeypatch, name):
    matrix = clustered(5000, dims=10)
    words = words_of(len(matrix))
    if name in REFUSED:
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
    assert len(bits) == (5000 if name in ("rows.npy", "columns.npy", *REFUSED) else 4999)
    encoded = (tmp_path / "blocks-encoded").read_bytes()
    assert encoded == (tmp_path / "whole-encoded").read_bytes()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("blocks", [False, True])
def test_repeats_of_words_beside_a_matrix_are_refused_or_left_out(
    tmp_path, monkeypatch, name, blocks
):
    matrix = clustered(300, dims=10)
    path = write(tmp_path, name, words_of(len(matrix)), matrix)
    before = sorted(tmp_path.iterdir())
    row, file = (0, f"{path}/half=1/part-2.parquet, ") if name == "lake" else (100, "")
    if blocks:
        in_blocks(monkeypatch)
    coder = embits.RandomHyperplanes(8).fit(matrix)
    for call in (
        lambda **options: embits.binarize_to_file(path, tmp_path / "out", 20, "lsh", **options),
        lambda **options: embits.encode_to_file(coder, path, tmp_path / "out", **options),
    ):
        for repeats in ({}, {"repeats": "refuse"}):
            with pytest.raises(
                ReadError, match=rf"row {row}: found the word 'w1' again.*, .* --repeats"
            ):
                call(**repeats)
            assert sorted(tmp_path.iterdir()) == before
        bits, notes = noted(call, repeats="first")
        assert len(bits) == 299
        note = f"1 repeated word left out, the first at {file}row {row}: 'w1'"
        assert any(note in each for each in notes)
        (tmp_path / "out").unlink()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_on_a_file_as_it_fits_in_memory(tmp_path, monkeypatch, method):
    from embits.coders import linear, sparse
    from embits.coders.near_lossless import sampling

    for module in (linear, sampling, sparse):  # as if the file were much larger
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
    from embits.coders import linear, sparse
    from embits.coders.near_lossless import sampling

    for module in (linear, sampling, sparse):
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
            patched.setattr(stream, "STREAM_FROM", least)
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
        for name in ("v.vec", "v.bin", "v.npy", "v.parquet", "lake"):
            opened = open_blocks(new_source(write(folder, name, words, matrix)))
            read = list(opened.read(opened.first, words=True))
            assert np.array_equal(np.concatenate([block.matrix for block in read]), matrix)
            start = read[at % len(read)].start
            again = [w for block in opened.read(start, words=True) for w in block.words]
            assert again == words[start.rows :]


def test_words_of_a_large_list_are_read_as_they_lie(tmp_path):
    np.save(tmp_path / "m.npy", clustered(6, dims=4))
    for content in (
        "a\nb\nc\nd\ne\nf",
        "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\n",
        "\ufeffa\nb\nc\nd\ne\nf\n",
    ):
        Path(tmp_path / "ids").write_text(content, newline="")
        opened = open_blocks(new_source(tmp_path / "m.npy", words=tmp_path / "ids"))
        words = [w for block in opened.read(opened.first, words=True) for w in block.words]
        assert words == list("abcdef")


@pytest.mark.parametrize("name", ["v.vec", "rows.npy", "columns.npy", "v.npy"])
def test_lengths_are_stored_alike_in_memory_and_in_blocks(tmp_path, monkeypatch, name):
    matrix = clustered(5000, dims=10) * np.geomspace(0.01, 100, 5000, dtype=np.float32)[:, None]
    matrix[77] = 0
    path = write(tmp_path, name, [f"w{i}" for i in range(5000)], matrix)
    arguments = (path, tmp_path / "whole", 20, "lsh")
    embits.binarize_to_file(*arguments, lengths=True)
    other = embits.load(tmp_path / "whole")
    embits.encode_to_file(other, path, tmp_path / "whole-encoded", lengths=True)
    in_blocks(monkeypatch)
    bits = embits.binarize_to_file(path, tmp_path / "blocks", *arguments[2:], lengths=True)
    embits.binarize(path, 20, "lsh", lengths=True).save(tmp_path / "memory")
    embits.encode_to_file(other, path, tmp_path / "blocks-encoded", lengths=True)
    for kind in ("blocks", "memory"):
        assert (tmp_path / kind).read_bytes() == (tmp_path / "whole").read_bytes()
    encoded = (tmp_path / "blocks-encoded").read_bytes()
    assert encoded == (tmp_path / "whole-encoded").read_bytes()
    np.testing.assert_allclose(bits.lengths, np.linalg.norm(matrix, axis=1), rtol=0.0225)
