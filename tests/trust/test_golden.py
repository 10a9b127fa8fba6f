"""Files of every format version open for ever, on any machine; newer ones are refused clearly."""

import json
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.coders import METHODS
from embits.file import store
from embits.file.store import DTYPES
from tests.golden import make_v2, make_v3
from tests.golden.make import facts, vectors
from tests.support import damage

GOLDEN = Path(__file__).parents[1] / "golden"
EXPECTED = json.loads((GOLDEN / "v1.json").read_text())
EXPECTED_2 = json.loads((GOLDEN / "v2.json").read_text())
EXPECTED_3 = json.loads((GOLDEN / "v3.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_file_says_what_it_always_said(name):
    bits = embits.load(GOLDEN / name, verify=True)
    found = json.loads(json.dumps(facts(bits)))
    expected = EXPECTED[name]
    np.testing.assert_allclose(found.pop("floats"), expected["floats"], atol=2e-4)
    params = found.pop("params")
    assert expected["params"].items() <= params.items()  # a newer coder may know more of them
    assert found == {key: expected[key] for key in found}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_file_saved_again_is_the_same_file(name, tmp_path):
    embits.load(GOLDEN / name).save(tmp_path / "again")
    again, golden = (store.open_file(p, verify=True) for p in (tmp_path / "again", GOLDEN / name))
    assert again.codes.tobytes() == golden.codes.tobytes()
    assert {k: v.tobytes() for k, v in again.tensors.items() if not k.startswith("word")} == {
        k: v.tobytes() for k, v in golden.tensors.items() if not k.startswith("word")
    }
    assert list(embits.load(tmp_path / "again").words) == EXPECTED[name]["words"]


@pytest.mark.parametrize("name", EXPECTED_2)
def test_a_golden_file_of_version_2_says_what_it_always_said(name, tmp_path):
    bits = embits.load(GOLDEN / name, verify=True)
    found = json.loads(json.dumps(make_v2.facts(bits)))
    del found["spellings"]  # their order is no part of the format
    assert found == {key: EXPECTED_2[name][key] for key in found}
    assert bits.words.find_many(list(bits.words)).tolist() == list(range(len(bits)))
    bits.save(tmp_path / "again")
    again, golden = (store.open_file(p, verify=True) for p in (tmp_path / "again", GOLDEN / name))
    assert {k: v.tobytes() for k, v in again.tensors.items()} == {
        k: v.tobytes() for k, v in golden.tensors.items()
    }


@pytest.mark.parametrize("name", EXPECTED_2)
def test_the_same_ids_still_give_the_tensors_of_the_golden_file(name, tmp_path):
    ids = make_v2.IDS[name.removeprefix("v2-").removesuffix(".safetensors")]
    make_v2.vectors(ids).save(tmp_path / "made")
    made, golden = (store.open_file(p) for p in (tmp_path / "made", GOLDEN / name))
    assert {k: v.tobytes() for k, v in made.tensors.items() if k.startswith("word")} == {
        k: v.tobytes() for k, v in golden.tensors.items() if k.startswith("word")
    }


@pytest.mark.parametrize("name", EXPECTED_3)
def test_what_0_3_wrote_says_what_it_always_said(name):
    if not name.startswith("v3") or "tokens" in name or "net" in name:
        pytest.importorskip("pyarrow")
        pytest.importorskip("tokenizers")
    found = json.loads(json.dumps(make_v3.found_in(GOLDEN / name)))
    expected = dict(EXPECTED_3[name])
    for key in set(make_v3.APPROXIMATE) & set(expected):
        np.testing.assert_allclose(found.pop(key), expected.pop(key), atol=2e-4)
    assert found == expected


@pytest.mark.parametrize("name", [name for name in EXPECTED_3 if name.startswith("v3")])
def test_a_golden_file_of_0_3_saved_again_has_the_same_tensors(name, tmp_path):
    kind = embits.TextEncoder if "encoder" in name else embits
    kind.load(GOLDEN / name).save(tmp_path / "again")
    again, golden = (store.open_file(p, verify=True) for p in (tmp_path / "again", GOLDEN / name))
    assert again.codes.tobytes() == golden.codes.tobytes()
    assert (again.method, again.n_bits, again.text) == (golden.method, golden.n_bits, golden.text)
    assert {k: v.tobytes() for k, v in again.tensors.items()} == {
        k: v.tobytes() for k, v in golden.tensors.items()
    }


def test_every_method_has_golden_files():
    ours = {name for name, coder in METHODS.items() if coder.__module__.startswith("embits.")}
    listed = [*EXPECTED.values(), *EXPECTED_3.values()]
    assert {facts["method"] for facts in listed if "method" in facts} == ours


@pytest.mark.filterwarnings("ignore:fitted on")
@pytest.mark.parametrize("method", METHODS)
def test_the_same_input_and_seed_give_the_same_bytes(method, tmp_path):
    for name in "ab":
        embits.binarize(vectors(), None if method == "sign" else 40, method).save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("version", ["5", "1.1", "10", "01", "one"])
def test_another_version_is_refused_and_says_which(version, tmp_path):
    header, data = damage.parts((GOLDEN / next(iter(EXPECTED))).read_bytes())
    header["__metadata__"]["format_version"] = version
    path = tmp_path / "newer"
    path.write_bytes(damage.signed(header, data))
    with pytest.raises(embits.FormatError, match=f"format version '{version}'; this embits reads"):
        embits.load(path)
    header["__metadata__"]["format_version"] = ""
    path.write_bytes(damage.signed(header, data))
    with pytest.raises(embits.FormatError, match="damaged: the header has no format version"):
        embits.load(path)


def test_arrays_of_the_other_byte_order_give_the_same_file(tmp_path):
    """As a big-endian machine has them, or a .npy that came from one."""
    own = vectors()
    swapped = embits.WordVectors(own.words, own.matrix.astype(">f4"))
    for name, source in (("own", own), ("swapped", swapped)):
        embits.binarize(source, 24, "lsh").save(tmp_path / name)
    assert (tmp_path / "own").read_bytes() == (tmp_path / "swapped").read_bytes()
    contents = store.open_file(tmp_path / "own")
    big = {
        name: array.astype(array.dtype.newbyteorder(">"))
        for name, array in contents.tensors.items()
    }
    big_contents = store.Contents(
        contents.codes, contents.n_bits, contents.dims, contents.method, contents.params, big
    )
    store.write(tmp_path / "big", big_contents)
    assert (tmp_path / "big").read_bytes() == (tmp_path / "own").read_bytes()


def test_numbers_in_the_file_are_little_endian_whatever_the_machine():
    raw = (GOLDEN / "v1-lsh-64.safetensors").read_bytes()
    header, data = damage.parts(raw)
    start, stop = header["word_ends"]["data_offsets"]
    lengths = np.cumsum([len(word.encode()) for word in vectors().words])
    assert data[start:stop] == b"".join(int(end).to_bytes(4, "little") for end in lengths)
    assert all(dtype.startswith("<") for dtype in DTYPES.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_every_tensor_is_aligned_to_its_items_and_the_codes_to_64_bytes(name):
    raw = (GOLDEN / name).read_bytes()
    header, data = damage.parts(raw)
    first = len(raw) - len(data)
    assert first % 64 == 0
    assert header["codes"]["data_offsets"][0] == 0
    for key, entry in header.items():
        if key != "__metadata__":
            item = np.dtype(DTYPES[entry["dtype"]]).itemsize
            assert (first + entry["data_offsets"][0]) % item == 0, key
    contents = store.open_file(GOLDEN / name)
    assert all(array.flags.aligned for array in contents.tensors.values())


def test_codes_at_any_address_give_the_same_answers(simd):
    """A caller's codes may be a slice of anything."""
    codes = np.random.default_rng(0).integers(0, 256, (50, 13), dtype=np.uint8)
    expected = embits.search.top_k(codes, codes[3], 9)
    for shift in range(64):
        memory = np.zeros(codes.size + 64, np.uint8)
        moved = memory[shift : shift + codes.size].reshape(codes.shape)
        moved[:] = codes
        found = embits.search.top_k(moved, codes[3], 9)
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", ["words", "sorted", "one", "none", "empty-word"])
def test_the_specification_has_a_reader_that_reads_words(name):
    page = (GOLDEN.parents[1] / "docs" / "file-format.md").read_text()
    reader = page.rpartition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {}
    exec(reader.replace("glove.safetensors", f"{GOLDEN}/v2-{name}.safetensors"), names)
    assert names["words"] == EXPECTED_2[f"v2-{name}.safetensors"]["words"]
