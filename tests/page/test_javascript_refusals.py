"""Python and JavaScript refuse the same damaged files."""

import hashlib
import json
import shutil
from pathlib import Path

from embits.file import store
from tests.support.damage import resigned
from tests.support.javascript import needs_node, node, refuses

GOLDEN = Path(__file__).parent.parent / "golden"

LIES = [
    (("codes", "shape"), [3, 2]),
    (("codes", "shape"), [2**63, 2**63]),
    (("codes", "shape"), [-3, -1]),
    (("codes", "shape"), [3.0, 1]),
    (("codes", "shape"), [True, 24]),
    (("codes", "dtype"), "F32"),
    (("codes", "dtype"), "BOOL"),
    (("codes", "dtype"), "__proto__"),
    (("codes", "data_offsets"), [0, 2**64]),
    (("codes", "data_offsets"), [24, 0]),
    (("coder.planes", "data_offsets"), [0, 24]),
    (("coder.planes", "shape"), [2, 3]),
    (("coder.planes", "shape"), [6]),
    (("coder.planes",), None),
    (("word_ends", "dtype"), "F64"),
    (("word_ends", "shape"), [24, 1]),
    (("__metadata__", "bits"), "4"),
    (("__metadata__", "bits"), "17"),
    (("__metadata__", "bits"), "-3"),
    (("__metadata__", "bits"), 3),
    (("__metadata__", "dims"), "many"),
    (("__metadata__", "dims"), "3"),
    (("__metadata__", "method"), "paper"),
    (("__metadata__", "params"), "[1]"),
    (("__metadata__", "params"), '{"n_bits": 3, "n_bits": 3}'),
    (("__metadata__", "format"), "other"),
    (("__metadata__", "format_version"), "2"),
]


@needs_node
def test_both_readers_refuse_the_same_damaged_files(tmp_path):
    """Headers that lie with checksums that fit, and vocabularies that point outside."""
    source = GOLDEN / "lsh-3-bits-u64.safetensors"
    for i, (where, value) in enumerate(LIES):
        path = tmp_path / f"lie-{i:02}.safetensors"
        shutil.copy(source, path)
        resigned(path, lambda header, where=where, value=value: put(header, where, value))
        aligned(path)
    good = store.open_file(source)
    n = len(good.codes)
    for name, place, value in [
        ("word_ends", 0, 9999), ("word_ends", 5, 0), ("word_ends", n - 1, 3),
        ("word_ends", 3, 2**63), ("word_order", 3, n),
        ("word_order", 3, 2**63), ("word_order", 0, 5), ("words", 0, 255),
    ]:  # fmt: skip
        tensors = {key: array.copy() for key, array in good.tensors.items()}
        tensors[name][place] = value
        contents = store.Contents(
            good.codes, good.n_bits, good.dims, good.method, good.params, tensors
        )
        store.write(tmp_path / f"words-{name}-{place}-{value}.safetensors", contents)
    codes = good.codes.copy()
    codes[7] |= 1
    store.write(
        tmp_path / "padding.safetensors",
        store.Contents(codes, 3, 2, good.method, good.params, good.tensors),
    )
    shutil.copy(source, tmp_path / "whole.safetensors")
    by_python = {path.name: refuses(path) for path in tmp_path.iterdir()}
    assert [name for name, refused in by_python.items() if not refused] == ["whole.safetensors"]
    by_javascript = json.loads(node("refuses.mjs", tmp_path))
    assert by_javascript == by_python


def put(header, where, value):
    for name in where[:-1]:
        header = header[name]
    header[where[-1]] = value


def aligned(path):
    """The same file with its header padded to 64 bytes, and its checksum made to fit again."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length] + b" " * (-(8 + length) % 64)
    checksum = json.loads(header)["__metadata__"]["header_sha256"].encode()
    zeroed = header.replace(checksum, b"0" * 64, 1)
    header = header.replace(checksum, hashlib.sha256(zeroed).hexdigest().encode(), 1)
    path.write_bytes(len(header).to_bytes(8, "little") + header + raw[8 + length :])
