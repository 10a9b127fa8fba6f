"""The file: what goes in comes out, whole or refused, and never half-written."""

import hashlib
import json
import os
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy

import embits
from embits.errors import FormatError
from embits.file import store
from tests.support import damage

GOOD = store.Contents(
    codes=np.array([[0b1010_0000], [0b0110_0000], [0b1110_0000]], dtype=np.uint8),
    n_bits=3,
    dims=2,
    method="lsh",
    params={"n_bits": 3, "random_state": 0},
    tensors={
        "coder.planes": np.arange(6, dtype="f4").reshape(3, 2),
        "coder.decoder": np.ones((3, 2), dtype="f4"),
        "coder.offset": np.zeros(2, dtype="f4"),
    },
)


@pytest.fixture
def path(tmp_path):
    store.write(tmp_path / "x.safetensors", GOOD)
    return tmp_path / "x.safetensors"


def same(a, b):
    return np.array_equal(a.codes, b.codes) and all(
        np.array_equal(a.tensors[name], b.tensors[name]) for name in a.tensors
    )


def test_what_is_written_is_read_back(path):
    contents = store.open_file(path, verify=True)
    assert same(GOOD, contents)
    assert (contents.n_bits, contents.dims, contents.method) == (3, 2, "lsh")
    assert contents.params == GOOD.params


def test_pipes_and_devices_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, found in ((tmp_path / "pipe", "a pipe"), ("/dev/zero", "a device")):
        for use in (embits.load, lambda path: embits.load(path, verify=True)):
            with pytest.raises(FormatError, match=f"{path}: found {found}, expected a file$"):
                use(path)


def test_the_official_library_opens_it(path):
    tensors = safetensors.numpy.load_file(path)
    assert np.array_equal(tensors["codes"], GOOD.codes)
    assert np.array_equal(tensors["coder.planes"], GOOD.tensors["coder.planes"])
    with safetensors.safe_open(path, "np") as file:
        assert file.metadata()["format"] == "embits"


def test_codes_start_on_a_64_byte_boundary_and_every_tensor_is_aligned(saved):
    header_length = int.from_bytes(saved.read_bytes()[:8], "little")
    assert (8 + header_length) % 64 == 0
    header = json.loads(saved.read_bytes()[8 : 8 + header_length])
    assert header["codes"]["data_offsets"][0] == 0
    for array in store.open_file(saved).tensors.values():
        assert array.ctypes.data % array.itemsize == 0


def test_bytes_after_the_end_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(embits.FormatError, match="cut short"):
        embits.load(path)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("codes", "shape"), [3, 2]),
        (("codes", "shape"), [2**63, 2**63]),
        (("codes", "shape"), [-3, -1]),
        (("codes", "shape"), [3.0, 1]),
        (("codes", "shape"), [True, 3]),
        (("padding", "shape"), [0, 2**62]),
        (("codes", "dtype"), "F32"),
        (("codes", "dtype"), "BOOL"),
        (("codes", "data_offsets"), [0, 2**64]),
        (("codes", "data_offsets"), [3, 0]),
        (("coder.planes", "data_offsets"), [0, 24]),
        (("coder.planes", "shape"), [2, 3]),
        (("coder.planes", "shape"), [24]),
        (("coder.planes",), None),
        (("__metadata__", "bits"), "4"),
        (("__metadata__", "bits"), "17"),
        (("__metadata__", "bits"), "-3"),
        (("__metadata__", "dims"), "many"),
        (("__metadata__", "dims"), " 2"),
        (("__metadata__", "bits"), "+3"),
        (("__metadata__", "dims"), "3"),
        (("__metadata__", "method"), "paper"),
        (("__metadata__", "method"), "os.system"),
        (("__metadata__", "params"), "[1]"),
        (("__metadata__", "params"), '{"bits": 1}'),
        (("__metadata__", "format"), "other"),
        (("__metadata__", "format_version"), "4"),
        (("__metadata__", "bits"), 3),
    ],
)
def test_a_header_that_lies_is_refused_even_with_a_checksum_that_fits(path, where, value):
    def change(header):
        at = header
        for name in where[:-1]:
            at = at[name]
        at[where[-1]] = value

    damage.resigned(path, change)
    with pytest.raises(embits.FormatError) as error:
        embits.load(path, verify=True)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_other_files_are_refused_for_what_they_are(tmp_path):
    plain = tmp_path / "plain.safetensors"
    safetensors.numpy.save_file({"a": np.zeros(3, "f4")}, plain)
    with pytest.raises(embits.FormatError, match=r"not an embits file|not one that embits wrote"):
        embits.load(plain)
    for content in (b"", b"short", b"\0" * 100, b"\xff" * 100, b"word 0.1 0.2\n" * 10):
        plain.write_bytes(content)
        with pytest.raises(embits.FormatError):
            embits.load(plain)
    with pytest.raises(FileNotFoundError):
        embits.load(tmp_path / "absent")


def test_a_failing_write_leaves_the_old_file_and_no_other(path, monkeypatch):
    before = path.read_bytes()

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "_raw", fail)
    with pytest.raises(OSError, match="No space"):
        store.write(path, GOOD)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_reader_of_the_old_file_keeps_reading_it(saved, bits, vectors):
    opened = embits.load(saved)
    embits.binarize(vectors, n_bits=8, method="lsh").save(saved)
    assert np.array_equal(opened.codes, bits.codes)
    assert embits.load(saved).n_bits == 8


def test_saving_through_a_link_keeps_the_link(bits, tmp_path):
    bits.save(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    bits.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert embits.load(tmp_path / "real").n_bits == bits.n_bits


def test_numpy_numbers_as_parameters_are_stored_and_others_refused(vectors, tmp_path):
    embits.binarize(vectors, np.int64(16), "lsh", random_state=np.int32(3)).save(tmp_path / "f")
    assert embits.load(tmp_path / "f").coder.get_params() == {"n_bits": 16, "random_state": 3}
    made = embits.binarize(vectors, 16, "lsh", random_state=np.random.default_rng(0))
    with pytest.raises(embits.InputError, match="cannot be stored"):
        made.save(tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_an_empty_vocabulary_and_no_words_at_all_are_files_too(bits, tmp_path):
    for words, n in (([], 0), (None, 0), (None, 5)):
        vectors = embits.WordVectors(words, np.ones((n, 24), dtype="f4"))
        embits.BinaryVectors.encoded(vectors, bits.coder).save(tmp_path / "f")
        assert len(embits.load(tmp_path / "f", verify=True)) == n


def test_a_header_that_aligns_nothing_is_refused(tmp_path):
    path = tmp_path / "f"
    store.write(path, GOOD)
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length]
    checksum = json.loads(header)["__metadata__"]["header_sha256"].encode()
    longer = header.replace(checksum, b"0" * 64) + b" "
    longer = longer.replace(b"0" * 64, hashlib.sha256(longer).hexdigest().encode(), 1)
    path.write_bytes((length + 1).to_bytes(8, "little") + longer + raw[8 + length :])
    with pytest.raises(FormatError, match="aligns no tensor to 64"):
        store.open_file(path)


@pytest.mark.parametrize(
    "content",
    [b"the 0.1 0.2\nof 0.3 0.4\n", b"\x93NUMPY\x01\x00" + bytes(100), b"PAR1" + bytes(9)],
)
def test_float_vectors_in_place_of_bits_are_told_what_they_need(tmp_path, content):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(FormatError, match="not an embits file: if it holds float vectors, `embits"):
        store.open_file(tmp_path / "f")
    (tmp_path / "f").write_bytes(b"\xff" * 100 + bytes(10))
    with pytest.raises(FormatError, match="not an embits file, or damaged"):
        store.open_file(tmp_path / "f")


@pytest.mark.parametrize("name", ["words", "word_ends", "word_order"])
def test_words_of_version_1_without_one_of_their_arrays_are_refused(name, tmp_path):
    (tmp_path / "f").write_bytes(damage.golden("v1-lsh-3"))

    def rename(header):  # in its place: tensors are listed in the order of their bytes
        renamed = {"other" if key == name else key: entry for key, entry in header.items()}
        header.clear()
        header.update(renamed)

    damage.resigned(tmp_path / "f", rename)
    with pytest.raises(FormatError, match="word_ends"):
        embits.load(tmp_path / "f")


@pytest.mark.parametrize("n", [1, 7, 8, 9, 16, 72])
def test_padding_aligns_the_tensors_and_is_there_only_if_needed(n, tmp_path):
    store.write(tmp_path / "f", replace(GOOD, codes=np.zeros((n, 1), np.uint8)))
    header, _ = damage.parts((tmp_path / "f").read_bytes())
    assert ("padding" in header) == (n % 8 > 0)
    first = min(header[name]["data_offsets"][0] for name in header if name.startswith("coder."))
    assert first == -(-n // 8) * 8
