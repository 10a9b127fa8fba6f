"""The browser page: a static site that searches a file on the visitor's device.

`write_page` puts the site and the vectors into a folder that any static web server can serve.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from embits.binary_vectors import load
from embits.errors import InputError
from embits.file.atomic import atomic_write

MANIFEST = "page.json"  # which vectors the page opens
_LAST = (MANIFEST, "index.html")  # until they are written, a folder holds the old page or none
_FOR_PROGRAMS = ("embits.d.ts", "simd.d.ts", "package.json")  # no browser asks for them
_UNKNOWN = b'const PAGE = { version: "", files: [] };'  # in sw.js
_LARGEST = 2**32 - 2**20  # the memory of a WebAssembly module has 32-bit addresses


def write_page(file: Path, folder: Path) -> list[Path]:
    """Write the page that searches `file` into `folder`, and return what was written.

    Files of other names that are there already stay. Each file is replaced whole, and what says
    which vectors to open comes after the vectors and the code.

    Raises:
        FormatError: `file` is damaged, or not a file of bits: every byte is checked.
        InputError: The folder holds another web page, or the file is too large for a browser.
        OSError: The disk said no.
    """
    load(file, verify=True)
    size = file.stat().st_size
    if size > _LARGEST:
        raise InputError(f"{file}: {size:,} bytes, and a browser can hold {_LARGEST:,}")
    before = _page_in(folder)
    shell = dict(_site(files("embits.page") / "site"))
    with file.open("rb") as opened:
        checksum = hashlib.file_digest(opened, "sha256").hexdigest()
    vectors = f"vectors-{checksum[:12]}.safetensors"
    version = hashlib.sha256(repr([*sorted(shell.items()), vectors]).encode()).hexdigest()[:12]
    shell["sw.js"] = _with_version(shell["sw.js"], version, ["./", MANIFEST, *sorted(shell)])
    facts = {"file": vectors, "name": file.name, "bytes": size, "version": version}
    shell[MANIFEST] = json.dumps(facts).encode()

    folder.mkdir(parents=True, exist_ok=True)
    _place(file, folder / vectors)
    for name in (*(shell.keys() - set(_LAST)), *_LAST):
        (folder / name).parent.mkdir(exist_ok=True)
        with atomic_write(folder / name) as target:
            target.write(shell[name])
    if before not in (None, vectors):
        (folder / str(before)).unlink(missing_ok=True)
    return [folder / name for name in (*shell, vectors)]


def _page_in(folder: Path) -> str | None:
    """The vectors of the page that is in a folder, if one is.

    Raises:
        InputError: What is there is not a page of ours.
    """
    if not (folder / "index.html").exists():
        return None
    try:
        name = json.loads((folder / MANIFEST).read_bytes())["file"]
    except (OSError, ValueError, KeyError, TypeError):
        name = ""
    ours = isinstance(name, str) and name.startswith("vectors-") and Path(name).name == name
    if not ours:
        raise InputError(
            f"{folder}: has an index.html that is not of embits; choose another folder"
        )
    return str(name)


def _site(folder: Traversable, within: PurePosixPath | None = None) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of the site's files."""
    for entry in folder.iterdir():
        name = (within or PurePosixPath()) / entry.name
        if entry.is_dir():
            yield from _site(entry, name)
        elif not entry.name.startswith("."):
            yield str(name), entry.read_bytes()


def _with_version(service_worker: bytes, version: str, names: list[str]) -> bytes:
    needed = [name for name in names if name not in _FOR_PROGRAMS and name != "sw.js"]
    page = json.dumps({"version": version, "files": needed})
    return service_worker.replace(_UNKNOWN, f"const PAGE = {page};".encode())


def _place(file: Path, target: Path) -> None:
    """Link or copy the vectors; their name holds their checksum, so one that is there is right."""
    if target.exists() and target.stat().st_size == file.stat().st_size:
        return
    target.unlink(missing_ok=True)
    try:
        os.link(file.resolve(), target)
    except OSError:  # another disk, or one without links
        with file.open("rb") as source, atomic_write(target) as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
