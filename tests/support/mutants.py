"""Files and collections that lie, as recipes: a golden file and the steps that change it.

A recipe is JSON, so a finding is kept as a few lines (tests/golden/differential.json). Checksums
are made to fit after the steps, but for those steps that stand for damage of a disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from embits.coders import METHODS
from embits.file.store import DTYPES
from tests.support import damage
from tests.support.damaged_collections import MANIFEST, Files, places, read, signed

GOLDEN = Path(__file__).parents[1] / "golden"
COLLECTIONS = ["collection-v1", "collection-v2", "notes-v2"]
ENCODERS = ["v3-encoder-tokens", "v3-encoder-net", "v3-encoder-words"]
FILES = sorted({path.stem for path in GOLDEN.glob("*.safetensors")} - set(ENCODERS))
SOURCES = [*FILES, *ENCODERS, *COLLECTIONS]

# One of a kind for every name that a file may have, and shapes that are almost right.
NAMES = (
    "words", "word_codes", "word_starts", "word_rows", "word_links", "word_numbers", "word_uuids",
    "word_ends", "word_order", "codes", "padding", "lengths", "floats", "column.year", "unknown",
    "subwords.buckets", "subwords.lengths", "subwords.more", "cells.order", "cells.starts",
    "cells.centers", "cells.curve", "cells.sha256", "cells.more", "text.scales", "text.rows",
    *sorted({f"coder.{name}" for kind in METHODS.values() for name in kind.state_shapes}),
    "coder.more",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, 0, 1, -1, 2, 3, 7, 13, 64, 100, 255, 256, 2**31, 2**48, 2**53, 2**63, 0.5, 3.0, 1e300,
    True, False, "", "a", "0", "1", "2", "3", "4", "013", "13", "-1", "1.0", "1e2", "9" * 30, "٣",
    "\n", "uniform", "sif", "idf", "coder", "subwords", "coder,subwords", "{}", "[]", "null", "lsh",
    "sign", [], {},
)  # fmt: skip
NUMBERS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e6, 1e18, 2e18, 1e30, float("inf"), float("nan"), 2.0, 7.0,
    255.0, 256.0, 65535.0, 2.0**31,
)  # fmt: skip
SIZES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 24, 25)

Recipe = dict[str, Any]
Tensors = dict[str, tuple[str, list[int], bytes]]
Step = list[Any]


# -- from a recipe to bytes ------------------------------------------------------------------------


def is_collection(recipe: Recipe) -> bool:
    return recipe["source"] in COLLECTIONS


def is_encoder(recipe: Recipe) -> bool:
    return recipe["source"] in ENCODERS


def write(recipe: Recipe, path: Path) -> None:
    """Write what a recipe makes: a file, or a folder."""
    if not is_collection(recipe):
        path.write_bytes(file_of(recipe))
        return
    path.mkdir()
    for name, content in files_of(recipe).items():
        (path / name).write_bytes(content)


def file_of(recipe: Recipe) -> bytes:
    """The bytes of a changed golden file."""
    return _changed(damage.golden(recipe["source"]), recipe["steps"])


def files_of(recipe: Recipe) -> Files:
    """The files of a changed golden collection."""
    files = dict(_collection(recipe["source"]))
    body = json.loads(files[MANIFEST])
    for step in recipe["steps"]:
        with contextlib.suppress(ValueError, KeyError):  # it is no file any more, or not there
            _change(files, body, step)
    for piece in body["pieces"] if isinstance(body.get("pieces"), list) else []:
        _reseal(piece, files)
    if not any(step[:2] == ["unsealed", MANIFEST] for step in recipe["steps"]):
        files[MANIFEST] = signed(body)
    return files


def _change(files: Files, body: Any, step: Step) -> None:
    match step:
        case ["in", name, inner]:
            files[name] = _changed(files[name], [inner])
        case ["copy", name, other]:
            files[name] = files[other]
        case ["coder", name, other]:
            files[name] = damage.golden(other)
        case ["lose", name]:
            del files[name]
        case ["manifest", path, value]:
            _set(body, path, value)
        case ["without", path]:
            _set(body, path)
        case ["unsealed", name, at, bit]:
            files[name] = _flipped(files[name], at, bit)


@cache
def _collection(name: str) -> Files:
    return read(GOLDEN / name)


def _set(body: Any, path: list[Any], *value: Any) -> None:
    *parents, key = path
    with contextlib.suppress(LookupError, TypeError):  # an earlier step took it away
        for parent in parents:
            body = body[parent]
        if value:
            body[key] = value[0]
        else:
            del body[key]


def _reseal(piece: Any, files: Files) -> None:
    """Make the checksums in the manifest fit the files of a piece, if it has them."""
    if not isinstance(piece, dict):
        return
    content = files.get(str(piece.get("file")), b"")
    if isinstance(piece.get("header"), str) and content:
        length = int.from_bytes(content[:8], "little")
        piece["header"] = hashlib.sha256(content[8 : 8 + length]).hexdigest()
    for part in (piece.get("columns"), piece.get("removed")):
        if isinstance(part, dict) and isinstance(part.get("sha256"), str):
            content = files.get(str(part.get("file")), b"")
            part["sha256"] = hashlib.sha256(content).hexdigest()


def _changed(whole: bytes, steps: list[Step]) -> bytes:
    header, data = damage.parts(whole)
    about = header.pop("__metadata__")
    tensors: Tensors = {}
    for name, entry in header.items():
        start, stop = entry["data_offsets"]
        tensors[name] = entry["dtype"], entry["shape"], data[start:stop]
    for kind, *rest in steps:
        if kind in _STEPS:
            _STEPS[kind](tensors, about, *rest)
    raw = _sealed(tensors, about)
    for kind, *rest in steps:
        if kind == "flip":
            raw = _flipped(raw, *rest)
        elif kind == "cut":
            raw = raw[: rest[0]]
    return raw


def _flipped(raw: bytes, at: int, bit: int) -> bytes:
    at %= len(raw)
    return raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :]


def _sealed(tensors: Tensors, about: Any) -> bytes:
    header: dict[str, Any] = {"__metadata__": about}
    data = b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    return damage.signed(header, data)


def _drop(tensors: Tensors, about: Any, name: str) -> None:
    tensors.pop(name, None)


def _rename(tensors: Tensors, about: Any, name: str, other: str) -> None:
    if name in tensors:
        tensors[other] = tensors.pop(name)


def _dtype(tensors: Tensors, about: Any, name: str, dtype: str) -> None:
    """Another type over the same bytes, with as many items as fit."""
    if name in tensors:
        _, shape, content = tensors[name]
        items = len(content) // np.dtype(DTYPES[dtype]).itemsize
        rows = shape[0] if len(shape) > 1 and shape[0] else 1
        fits = len(shape) > 1 and items % rows == 0
        tensors[name] = dtype, [rows, items // rows] if fits else [items], content


def _convert(tensors: Tensors, about: Any, name: str, dtype: str) -> None:
    """The same numbers in another type."""
    if name in tensors:
        own, shape, content = tensors[name]
        size = np.dtype(DTYPES[own]).itemsize
        whole = content[: len(content) // size * size]
        with np.errstate(all="ignore"):
            numbers = np.frombuffer(whole, DTYPES[own]).astype(DTYPES[dtype])
        tensors[name] = dtype, shape, numbers.tobytes()


def _shape(tensors: Tensors, about: Any, name: str, shape: list[int]) -> None:
    """Another shape: zeros are added, or bytes taken away."""
    if name in tensors:
        dtype, _, content = tensors[name]
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(DTYPES[dtype]).itemsize
        tensors[name] = dtype, shape, content[:size].ljust(size, b"\0")


def _fill(
    tensors: Tensors, about: Any, name: str, dtype: str, shape: list[int], value: float
) -> None:
    with np.errstate(all="ignore"):
        tensors[name] = dtype, shape, np.full(shape, value).astype(DTYPES[dtype]).tobytes()


def _number(tensors: Tensors, about: Any, name: str, at: int, value: float) -> None:
    if name in tensors:
        dtype, shape, content = tensors[name]
        size = np.dtype(DTYPES[dtype]).itemsize
        numbers = np.frombuffer(content[: len(content) // size * size], DTYPES[dtype]).copy()
        if len(numbers):
            with np.errstate(all="ignore"):
                numbers[at % len(numbers)] = np.array(value).astype(numbers.dtype)
        tensors[name] = dtype, shape, numbers.tobytes()


def _take(tensors: Tensors, about: Any, name: str, source: str, other: str) -> None:
    """A tensor of another file."""
    header, data = damage.parts(damage.golden(source))
    if other in header:
        start, stop = header[other]["data_offsets"]
        tensors[name] = header[other]["dtype"], header[other]["shape"], data[start:stop]


def _meta(tensors: Tensors, about: Any, name: str, *value: Any) -> None:
    if value:
        about[name] = value[0]
    else:
        about.pop(name, None)


def _member(tensors: Tensors, about: Any, owner: str, name: str, *value: Any) -> None:
    """A member of the JSON in a value of the metadata: of `params` or `text`."""
    try:
        members = json.loads(about[owner])
        _meta(tensors, members, name, *value)
        about[owner] = json.dumps(members)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass


_STEPS: dict[str, Callable[..., None]] = {
    "drop": _drop, "rename": _rename, "dtype": _dtype, "convert": _convert, "shape": _shape,
    "fill": _fill, "number": _number, "take": _take, "meta": _meta, "member": _member,
}  # fmt: skip


# -- from a seed to a recipe -----------------------------------------------------------------------


def drawn(rng: random.Random, source: str | None = None) -> Recipe:
    """A recipe of one to three steps."""
    source = source or rng.choice(SOURCES)
    several = rng.choice((1, 1, 1, 2, 2, 3))
    if source not in COLLECTIONS:
        header = damage.parts(damage.golden(source))[0]
        return {"source": source, "steps": [_step(header, rng) for _ in range(several)]}
    files = _collection(source)
    steps: list[Step] = []
    for _ in range(several):
        steps += _collection_steps(files, rng)
    return {"source": source, "steps": steps}


def _step(header: dict[str, Any], rng: random.Random) -> Step:
    there = [name for name in header if name != "__metadata__"]
    name = rng.choice(there)
    entry, about = header[name], header["__metadata__"]
    shape, dtype = entry["shape"], rng.choice(list(DTYPES))
    other = rng.choice((rng.choice(NAMES), rng.choice(there)))
    sizes = [*SIZES, *(size + d for size in shape for d in (-1, 0, 1) if size + d >= 0)]
    near = [rng.choice((size, size, rng.choice(sizes))) for size in shape]
    any_shape = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 1, 2)))]
    value: Any = rng.choice(VALUES)
    match rng.randrange(16):
        case 0:
            return ["drop", name]
        case 1:
            return ["rename", name, other]
        case 2:
            return ["dtype", name, dtype]
        case 3:
            return ["convert", name, dtype]
        case 4 | 5:
            return ["shape", name, rng.choice((near, near, any_shape))]
        case 6:
            kind, shape = rng.choice((entry["dtype"], dtype)), rng.choice((near, any_shape))
            return ["fill", other, kind, shape, rng.choice((0, 0, 1, 8, 255, 1e19))]
        case 7 | 8 | 9:
            return ["number", name, rng.randrange(4096), rng.choice(NUMBERS)]
        case 10:
            source = rng.choice([*FILES, *ENCODERS])
            names = set(damage.parts(damage.golden(source))[0]) - {"__metadata__"}
            chosen = rng.choice(sorted(names))
            return ["take", rng.choice((chosen, other)), source, chosen]
        case 11:
            key = rng.choice([*about, "left_out", "lengths_base", "text", "bits", "dims"])
            same = damage.parts(damage.golden(rng.choice(FILES)))[0]["__metadata__"].get(key, "1")
            drop = rng.random() < 0.2
            return ["meta", key] if drop else ["meta", key, rng.choice((same, str(value)))]
        case 12 | 13:
            owner = "text" if "text" in about and rng.random() < 0.7 else "params"
            keys = [*json.loads(about[owner]), "n_bits", "more"]
            drop = rng.random() < 0.2
            return ["member", owner, rng.choice(keys), *([] if drop else [value])]
        case 14:
            return ["flip", rng.randrange(1 << 20), rng.randrange(8)]
        case _:
            return ["cut", rng.randrange(1 << 14)]


def _collection_steps(files: Files, rng: random.Random) -> list[Step]:
    body = json.loads(files[MANIFEST])
    of_tensors = [name for name in files if name.endswith(".safetensors")]
    name, other = rng.choice(list(files)), rng.choice(list(files))
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            name = rng.choice([each for each in of_tensors if each != "_encoder.safetensors"])
            return [["in", name, _step(damage.parts(files[name])[0], rng)]]
        case 4:
            return [["copy", rng.choice(of_tensors), rng.choice(of_tensors)]]
        case 5:
            coder = next(each for each in of_tensors if each.startswith("_coder"))
            return [["coder", coder, rng.choice(FILES)]]
        case 6:
            return [["lose", name]] if name != MANIFEST else [["copy", name, name]]
        case 7:
            return [["unsealed", other, rng.randrange(1 << 20), rng.randrange(8)]]
        case _:
            path = list(rng.choice([each for each in places(body) if each and each[0] != "sha256"]))
            if rng.random() < 0.2 and isinstance(path[-1], str):
                return [["without", path]]
            return [["manifest", path, rng.choice(VALUES)]]
