"""The browser page: a static site that searches a file on the visitor's device.

`write_page` writes the site and the vectors to a folder that any static web server can serve.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from embits.collection import load
from embits.errors import InputError
from embits.page.folder import PageFolder

MANIFEST = "page.json"  # names the vectors that the page opens
_LAST = (MANIFEST, "index.html")  # until they are written, a folder holds the old page or none
_FOR_PROGRAMS = ("embits.d.ts", "simd.d.ts", "package.json")  # browsers do not need them
_NO_VERSION = b'const PAGE = { version: "", files: [] };'  # in sw.js
# Comments on lines of their own or at the end of a line, and indentation. No string of the page's
# code contains " // ".
_COMMENTS = re.compile(
    rb"^[ \t]*(?:/\*.*?\*/|//[^\n]*)\n|^[ \t]+|[ \t]+// [^\n]*$", re.MULTILINE | re.DOTALL
)
MAX_BYTES = 2**32 - 2**20  # a WebAssembly module has 32-bit addresses


def write_page(file: Path, folder: Path, *, overwrite: bool = False) -> list[Path]:
    """Write the page that searches `file` into `folder`, and return the files of the page.

    A page that embits wrote is replaced, and other files in its folder are left alone. The
    vectors are copied. Each file is replaced atomically, the manifest after the vectors and code.

    Args:
        file: An embits file, a collection, or the folder of a Ray job.
        folder: The folder to write; created if it does not exist.
        overwrite: Replace files of the page that were changed since embits wrote them.

    Raises:
        FormatError: `file` is not an embits file, or is damaged: every byte is checked.
        InputError: The folder holds files that embits did not write, or that were changed since
            and `overwrite` is false, or the file is too large for a browser.
        OSError: A file could not be written.
    """
    with _single_file(file) as source:
        size = source.stat().st_size
        if size > MAX_BYTES:
            raise InputError(f"{file}: {size:,} bytes; a browser can hold {MAX_BYTES:,}")
        with source.open("rb") as opened:
            checksum = hashlib.file_digest(opened, "sha256").hexdigest()
        vectors = f"vectors-{checksum[:12]}.safetensors"
        shell = _shell({"file": vectors, "name": file.name, "bytes": size})
        checksums = {name: hashlib.sha256(content).hexdigest() for name, content in shell.items()}
        page = PageFolder(folder, checksums | {vectors: checksum}, overwrite)
        page.begin()
        page.copy(source, vectors)
        for name in (*(shell.keys() - set(_LAST)), *_LAST):
            page.write(name, shell[name])
        return page.finish()


@contextlib.contextmanager
def _single_file(file: Path) -> Iterator[Path]:
    """Yield a checked embits file; a folder of codes is saved as a temporary one."""
    bits = load(file, verify=True)
    if not file.is_dir():
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="embits-page-") as temporary:
        path = Path(temporary, "vectors.safetensors")
        bits.save(path)
        yield path


def _shell(facts: dict[str, str | int]) -> dict[str, bytes]:
    """Return all files of the page but the vectors, by name."""
    site = _site(files("embits.page") / "site")
    shell = {
        name: _COMMENTS.sub(b"", content) if name.endswith((".js", ".css")) else content
        for name, content in site
    }
    content = repr([*sorted(shell.items()), facts["file"]])
    version = hashlib.sha256(content.encode()).hexdigest()[:12]
    shell["sw.js"] = _with_version(shell["sw.js"], version, ["./", MANIFEST, *sorted(shell)])
    shell[MANIFEST] = json.dumps(facts | {"version": version}).encode()
    return shell


def _site(folder: Traversable, within: PurePosixPath | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the site's files."""
    for entry in folder.iterdir():
        name = (within or PurePosixPath()) / entry.name
        if entry.is_dir():
            yield from _site(entry, name)
        elif not entry.name.startswith("."):
            yield str(name), entry.read_bytes()


def _with_version(service_worker: bytes, version: str, names: list[str]) -> bytes:
    needed = [name for name in names if name not in _FOR_PROGRAMS and name != "sw.js"]
    page = json.dumps({"version": version, "files": needed})
    return service_worker.replace(_NO_VERSION, f"const PAGE = {page};".encode())
