"""Damaged and hostile files, made by rule from good ones.

Used by the tests, the fuzz targets and the benchmark of damage: all three break files in the same
ways. `tests.support.answers` calls every method of the files that open.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import embits
from embits.coders import METHODS
from embits.errors import TrainingWarning
from embits.ids.subwords import Subwords

WORDS = ["the", "queen", "of", "Zürich", "日本", "", "a b", "queen's"]
NO_CHECKSUM = "0" * 64
# Golden files: words of several blocks, with and without an order, and ids of other kinds.
SEVERAL_BLOCKS = ["v2-words", "v2-sorted", "v2-slim", "v2-shuffled-numbers", "v2-uuids"]

# ... and what 0.3 added: a net with a layer of its encoder, whitening, lengths, columns and cells.
OF_0_3 = ["v3-layer", "v3-similarity", "v3-lengths", "v3-columns", "v3-cells"]


def small(method: str, *, n_bits: int = 13, words: bool = True, subwords: bool = True) -> Any:
    """A few words of a method, fast to make; with everything that a file can hold."""
    rng = np.random.default_rng(1)
    matrix = rng.normal(0, 0.5, (len(WORDS), 6)).astype("f4")
    grams = Subwords(rng.normal(0, 0.5, (5, 6)).astype("f4"), 2, 3) if subwords else None
    vectors = embits.WordVectors(WORDS if words else None, matrix, grams)
    params: dict[str, Any] = {} if method == "sign" else {"n_bits": n_bits}
    if "epochs" in METHODS[method].param_names():
        params["epochs"] = 1
    with warnings.catch_warnings(action="ignore", category=TrainingWarning):  # of few rows
        return embits.binarize(vectors, method=method, **params)


def golden(name: str) -> bytes:
    """The bytes of a golden file."""
    return (Path(__file__).parents[1] / "golden" / f"{name}.safetensors").read_bytes()


# -- blind damage: what a disk or a network does ---------------------------------------------------


def blind(whole: bytes, rng: random.Random) -> bytes:
    """A file with a few bytes changed, taken out, put in, repeated or moved."""
    raw = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(raw) + 1)
        size = min(rng.choice((1, 1, 2, 4, 8, 64)), len(raw) - at)
        match rng.randrange(7):
            case 0 if size:
                raw[at] ^= 1 << rng.randrange(8)
            case 1:
                raw[at : at + size] = rng.randbytes(size)
            case 2:
                raw[at : at + size] = rng.choice((b"\0", b"\xff", b"\x7f", b"\x80", b"9")) * size
            case 3:
                del raw[at : at + size]
            case 4:
                raw[at:at] = rng.randbytes(rng.choice((1, 8, 64)))
            case 5:
                raw[at:at] = raw[at : at + size]
            case _:
                del raw[at:]
        if not raw:
            return b""
    return bytes(raw)


def numbers(whole: bytes, rng: random.Random) -> bytes:
    """A file one of whose numbers, in digits or in binary, is another: often an extreme one."""
    value = rng.choice([number for number in NUMBERS if isinstance(number, int)])
    digits = list(re.finditer(rb"-?\d+", whole[:4096]))
    if digits and rng.random() < 0.5:
        chosen = rng.choice(digits)
        return whole[: chosen.start()] + str(int(value)).encode() + whole[chosen.end() :]
    size = rng.choice((1, 2, 4, 8))
    at = rng.randrange(max(1, min(len(whole), 512) - size))
    binary = (value % (1 << 8 * size)).to_bytes(size, rng.choice(("little", "big")))
    return whole[:at] + binary + whole[at + size :]


# -- damage with intent: a header that lies, with checksums that fit ------------------------------

NUMBERS = (0, 1, 2, 3, 7, 8, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**48, 2**53, 2**62, 2**63, 2**64,
           10**40, -1, -8, -(2**31), -(2**63), 0.5, 3.0, 1e300, True, False)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, "", "a", "\ud800", "é\n", "9" * 4000, [], [0], [[]], {}, {"a": 1}, "NaN", float("nan"),
    float("inf"), *NUMBERS,
)  # fmt: skip
DTYPES = ("U8", "F16", "U32", "F32", "U64", "F64", "I8", "BOOL", "BF16", "", "u8", "F8_E4M3")


def parts(whole: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of a good file, and the bytes of its tensors."""
    length = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def signed(header: Any, data: bytes) -> bytes:
    """The file of this header, with every checksum made to fit: what an attacker writes."""
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if isinstance(metadata, dict):
        metadata["sha256"] = json.dumps(_checksums(header, data))
        metadata["header_sha256"] = NO_CHECKSUM
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    checksum = hashlib.sha256(text).hexdigest().encode()
    text = text.replace(NO_CHECKSUM.encode(), checksum, 1)
    return len(text).to_bytes(8, "little") + text + data


def _checksums(header: dict[str, Any], data: bytes) -> dict[str, str]:
    found = {}
    for name, entry in header.items():
        match entry:
            case {"data_offsets": [int(start), int(stop)]} if 0 <= start <= stop <= len(data):
                found[name] = hashlib.sha256(data[start:stop]).hexdigest()
    return found


def hostile(whole: bytes, rng: random.Random) -> bytes:
    """A file whose checksums fit, but whose header or tensors lie in one to three ways."""
    header, data = parts(whole)
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(_LIES)(header, data, rng)
        if "__metadata__" not in header:
            break
    return signed(header, data)


def hostile_words(whole: bytes, rng: random.Random) -> bytes:
    """A file whose checksums fit, but whose words, their codes, starts, rows or links lie."""
    header, data = parts(whole)
    vocabulary = {name: entry for name, entry in header.items() if name.startswith("word")}
    for _ in range(rng.choice((1, 1, 2, 8))):
        data = _lie_in_data(vocabulary, data, rng)
    return signed(header, data)


def _tensor(header: dict[str, Any], rng: random.Random) -> str:
    return rng.choice([name for name in header if name != "__metadata__"] or ["codes"])


def _lie_in_entry(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    """Sizes, offsets and dtypes that are not so: overlapping, backwards, out of range, huge."""
    entry = header.get(_tensor(header, rng))
    if not isinstance(entry, dict) or not entry:
        return data
    match rng.randrange(6):
        case 0:
            entry["dtype"] = rng.choice(DTYPES)
        case 1:
            entry["shape"] = [rng.choice(NUMBERS) for _ in range(rng.randrange(4))]
        case 2:
            entry["data_offsets"] = [
                rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 2, 2, 3)))
            ]
        case 3:
            entry["data_offsets"] = [len(data), 0]
        case 4:
            entry[rng.choice(list(entry))] = rng.choice(ODD)
        case _:
            del entry[rng.choice(list(entry))]
            entry["more"] = 1
    return data


def _reshape(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    """Another dtype or shape over the same bytes: nothing is wrong but the meaning."""
    entry = header.get(_tensor(header, rng))
    match entry:
        case {"data_offsets": [int(start), int(stop)]} if start <= stop:
            name = rng.choice(DTYPES[:6])
            items = (stop - start) * 8 // int(name[1:])
            rows = rng.choice((1, 2, 3, 6, 8, 13, items or 1))
            entry["dtype"] = name
            entry["shape"] = rng.choice(([items], [rows, items // rows], [items // rows, rows]))
    return data


def _lie_in_metadata(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    metadata = header["__metadata__"]
    if not isinstance(metadata, dict) or not metadata:
        return data
    key = rng.choice(list(metadata))
    match rng.randrange(4):
        case 0:
            del metadata[key]
        case 1:
            metadata[key] = rng.choice(ODD)
        case 2:
            metadata[key] = rng.choice([*METHODS, "1", "13", "14", "6", "2", "0", "-1", "٣", "1_0"])
        case _:
            metadata[rng.choice(("bits", "dims"))] = str(rng.choice(NUMBERS))
    return data


def _lie_in_params(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    """Parameters of the wrong types, too many, too few, or not JSON."""
    metadata = header["__metadata__"]
    try:
        params = json.loads(metadata["params"])
        name = rng.choice([*params, "clip", "n_bits", "__class__", "self"])
        if rng.random() < 0.2:
            params.pop(name, None)
        else:
            params[name] = rng.choice(ODD)
        metadata["params"] = rng.choice((json.dumps(params), json.dumps(params)[:-1], "[" * 900))
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    return data


def _other_tensors(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    """A tensor missing, renamed, of no bytes, twice over the same bytes, or not one at all."""
    name = _tensor(header, rng)
    match rng.randrange(5):
        case 0:
            header.pop(name, None)
        case 1 if name in header:
            header[_tensor(header, rng) + rng.choice(("", "x"))] = header.pop(name)
        case 2:
            header[name] = {"dtype": "F32", "shape": [0, 6], "data_offsets": [len(data)] * 2}
        case 3 if name in header:
            header["again"] = header[name]
        case _:
            header[rng.choice((name, "__metadata__", "new", "\ud800"))] = rng.choice(ODD)
    return data


def _huge_json(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    """Much JSON in few bytes: deep, long, or with long numbers."""
    value: Any = []
    for _ in range(rng.choice((10, 400, 900))):
        value = [value]
    long = [[]] * rng.choice((100, 5_000, 14_000))
    odd = rng.choice((value, long, {str(i): {} for i in range(2000)}, "9" * 60_000, 10**4200))
    where = rng.choice(("entry", "metadata", "shape"))
    if where == "metadata" and isinstance(header["__metadata__"], dict):
        header["__metadata__"]["params"] = odd if isinstance(odd, str) else json.dumps(odd)
    elif where == "shape" and isinstance(entry := header.get(_tensor(header, rng)), dict):
        entry["shape"] = odd
    else:
        header["odd"] = odd
    return data


def _lie_in_data(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    """Tensors of the right shape that say wrong things: ends that run backwards, orders that
    point outside, words that are not UTF-8, weights that are not finite."""
    entry = header.get(_tensor(header, rng))
    match entry:
        case {"data_offsets": [int(start), int(stop)]} if 0 <= start < stop <= len(data):
            raw = bytearray(data)
            size = rng.choice((1, 2, 4, 4, 8))
            at = rng.randrange(start, stop) // size * size
            wrong = (b"\xff" * size, b"\0" * size, b"\0\0\xc0\x7f", b"\xff\x7f", b"\0\0\x80\x7f",
                     b"\x80\xff\xfe", (2**31).to_bytes(4, "little"))  # fmt: skip
            new = rng.choice((rng.randbytes(size), *wrong))
            raw[at : at + len(new)] = new
            return bytes(raw[: len(data)])
    return data


def _less_or_more_data(header: dict[str, Any], data: bytes, rng: random.Random) -> bytes:
    return rng.choice((data[:-1], data + b"\0", b"", data[: rng.randrange(len(data) + 1)]))


_Lie = Callable[[dict[str, Any], bytes, random.Random], bytes]
_LIES: tuple[_Lie, ...] = (
    _lie_in_entry, _reshape, _lie_in_metadata, _lie_in_params, _other_tensors, _huge_json,
    _lie_in_data, _lie_in_data, _lie_in_data, _less_or_more_data,
)  # fmt: skip


def resigned(path, change):
    """The file again with its header changed, and all checksums made to fit."""
    header, data = parts(path.read_bytes())
    change(header)
    path.write_bytes(signed(header, data))
