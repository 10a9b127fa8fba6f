"""Damaged and hostile collections, and every change made to those that open.

A collection is a dictionary of files. `pack` and `unpack` turn it into bytes and back, for the
fuzzer.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np

import embits
from embits.collection import changes
from embits.collection.manifest import CODER, MANIFEST, _digest
from tests.support import damage
from tests.support.answers import answers

Files = dict[str, bytes]
GOLDEN = Path(__file__).parents[1] / "golden"
VALUES: list[Any] = [
    *damage.ODD, "x", "numbers", "given", "../c", MANIFEST, CODER, "a.parquet", "0" * 64,
    "piece-00000000.safetensors", "part-0.parquet", "id", [[]] * 100,
]  # fmt: skip


def good(folder: Path) -> list[Files]:
    """A collection of words, one of numbers and one of Parquet files; and the golden ones."""
    return [
        *(_grown(folder / str(i), given=given) for i, given in enumerate((True, False))),
        _parquet(folder / "parquet"),
        *(
            read(GOLDEN / name)
            for name in ("collection-v1", "collection-v2", "collection-v3", "notes-v2")
        ),
    ]


def _matrix(n: int) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(n, 6)).astype("f4")


def _coder() -> embits.RandomHyperplanes:
    return embits.RandomHyperplanes(n_bits=13).fit(_matrix(60))


def _grown(folder: Path, *, given: bool) -> Files:
    """Several pieces, one of two blocks of words, with removed and updated rows."""
    collection = embits.open_collection(folder, _coder())
    for start, stop in ((0, 45), (45, 53), (53, 60)):
        ids = [f"word{i}" for i in range(start, stop)] if given else None
        collection.add(_matrix(60)[start:stop], ids)
    first = "word" if given else ""
    collection.remove([f"{first}{i}" for i in (3, 44, 46)])
    if given:
        collection.update(_matrix(2), ["word7", "word52"])
    return read(folder)


def _parquet(folder: Path) -> Files:
    """As a job on several workers writes it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    embits.open_collection(folder, _coder())
    body = json.loads((folder / MANIFEST).read_text())
    codes = _coder().encode(_matrix(8))
    for part in range(2):
        rows = range(4 * part, 4 * part + 4)
        column = pa.array([codes[row].tobytes() for row in rows], pa.binary(codes.shape[1]))
        table = pa.table({"code": column, "id": [f"word{row}" for row in rows]})
        pq.write_table(table, folder / f"part-{part}.parquet", write_page_checksum=True)
        body["pieces"].append({"file": f"part-{part}.parquet", "rows": 4, "column": "id"})
    return {**read(folder), MANIFEST: signed(body | {"ids": "given", "rows": 8})}


def read(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "_lock"}


def write(files: Files, folder: Path) -> None:
    """Replace a folder; names that no folder can hold are left out."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        if name in (".", "..", "") or "/" in name or "\0" in name:
            continue
        with contextlib.suppress(OSError, UnicodeEncodeError):
            (folder / name).write_bytes(content)


def pack(files: Files) -> bytes:
    sizes = {name: len(content) for name, content in files.items()}
    return json.dumps(sizes).encode() + b"\n" + b"".join(files.values())


def unpack(data: bytes) -> Files:
    """The files again; of bytes that are damaged, the manifest."""
    head, _, rest = data.partition(b"\n")
    files: Files = {}
    try:
        for name, size in json.loads(head).items():
            files[str(name)], rest = rest[: int(size)], rest[int(size) :]
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return {MANIFEST: data}
    return files or {MANIFEST: data}


# -- damage ----------------------------------------------------------------------------------------


def damaged(files: Files, rng: random.Random) -> Files:
    """A few bytes of a file changed, or a file lost, swapped with another or added."""
    files = dict(files)
    name, other = rng.choice(list(files)), rng.choice(list(files))
    match rng.randrange(8):
        case 0:
            del files[name]
        case 1:
            files[name], files[other] = files[other], files[name]
        case 2:
            files[rng.choice((".x.tmp", "piece-00000009.safetensors", "more"))] = files[name]
        case 3:
            files[name] = damage.numbers(files[name] or b"0", rng)
        case _:
            files[name] = damage.blind(files[name], rng)
    return files


def hostile(files: Files, rng: random.Random) -> Files:
    """Files that lie, in a manifest whose checksums fit."""
    files = dict(files)
    try:
        body = json.loads(files[MANIFEST])
        body.pop("sha256", None)
        if rng.random() < 0.5:
            _lie_in_file(files, body, rng)
        else:
            _lie_in_manifest(body, rng)
        files[MANIFEST] = signed(body)
    except Exception:  # noqa: BLE001 - it was damaged before, and has no such places
        return damaged(files, rng)
    return files


def _lie_in_manifest(body: dict[str, Any], rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 2))):
        *parents, key = rng.choice([place for place in places(body) if place])
        owner: Any = body
        for parent in parents:
            owner = owner[parent]
        match rng.randrange(8):
            case 0 if isinstance(owner, dict):
                del owner[key]
            case 1 if isinstance(owner, list):
                owner.append(copy.deepcopy(owner[key]))
            case _:
                owner[key] = copy.deepcopy(rng.choice(VALUES))


def _lie_in_file(files: Files, body: dict[str, Any], rng: random.Random) -> None:
    name = rng.choice([name for name in files if name != MANIFEST])
    if name.endswith(".safetensors"):
        files[name] = damage.hostile(files[name], rng)
    else:
        files[name] = rng.choice((damage.blind, damage.numbers))(files[name] or b"0", rng)
    content = files[name]
    for piece in body["pieces"]:
        if piece["file"] == name and "header" in piece:
            length = int.from_bytes(content[:8], "little")
            piece["header"] = hashlib.sha256(content[8 : 8 + length]).hexdigest()
        columns = piece.get("columns")
        if columns and columns["file"] == name:
            columns["sha256"] = hashlib.sha256(content).hexdigest()
        removed = piece.get("removed")
        if removed and removed["file"] == name:
            removed["sha256"] = hashlib.sha256(content).hexdigest()
            if rng.random() < 0.5:
                removed["rows"] = sum(byte.bit_count() for byte in content)


def places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The paths of all values in a JSON object."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))
        else:
            yield (*path, key)


def signed(body: Any) -> bytes:
    body.pop("sha256", None)
    return json.dumps({**body, "sha256": _digest(body)}).encode()


# -- questions and changes -------------------------------------------------------------------------


def use(folder: Path, *, verify: bool) -> bool:
    """Ask and change a collection that may be damaged; whether it opened.

    Raises:
        AssertionError: Ids and codes do not match, or a failed change lost a file.
    """
    try:
        bits = embits.load(folder, verify=verify)
        assert len(bits.words) == len(bits) == len(list(bits.words))
        assert np.asarray(bits.codes).shape == (len(bits), bits.coder.n_bytes_)
        answers(bits, folder)
        _ask(bits)
        bits.merged()
    except embits.FormatError as error:
        if "\n" in str(error):
            raise AssertionError("more than one line") from error
        return False
    for change in (_add, _remove, _compact):
        before = read(folder)
        try:
            collection = embits.open_collection(folder)
            change(collection)
        except (embits.FormatError, embits.InputError, embits.UnknownWordError):
            left = read(folder)
            lost = {name for name in before if name not in left and not changes.is_leftover(name)}
            assert left[MANIFEST] == before[MANIFEST]
            assert not lost
    return True


def _ask(bits: embits.Collection) -> None:
    """Filters by columns, kept vectors and texts, where there are some."""
    rows = np.eye(2, bits.dims)
    if "floats" in bits.columns and not bits.coder.is_left_out:
        bits.search(rows, 2, rescore=4)
    with contextlib.suppress(embits.InputError):  # there are no such columns or no texts
        bits.search(bits.codes[:1], 2, where={"year": (2010, None)})
    with contextlib.suppress(embits.InputError):
        bits.search_texts(["boats", "日本"], 2).column("text")


def _add(collection: embits.Collection) -> None:
    has_ids = collection.manifest.ids == "given"
    collection.add(np.eye(2, collection.dims), ["new", "newer"] if has_ids else None)


def _remove(collection: embits.Collection) -> None:
    collection.remove(list(collection.words)[:3])


def _compact(collection: embits.Collection) -> None:
    collection.compact()
