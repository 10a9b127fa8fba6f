"""The browser page: a static site that searches a file on the visitor's device."""

from __future__ import annotations

import hashlib
import html
import json
import mimetypes
import re
import tempfile
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from embits.binary_vectors import BinaryRows
from embits.bounded_json import parse_json
from embits.collection import load
from embits.errors import InputError
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_folder
from embits.segment import FLOATS
from embits.text.answers import ENCODER, noise_threshold
from embits.text.encoder import TextEncoder

_INSTALLED = "manifest.webmanifest"  # says how the page is installed as an app
MANIFEST = "page.json"  # names the vectors that the page opens
_LAST = (MANIFEST, "index.html")  # until they are written, a folder holds the old page or none
_PROGRAM_MODULES = "embits collection coder_checksum blake2b manifest pieces log remote remote_ids"
_FOR_PROGRAMS = {"embits.d.ts", "simd.d.ts", "package.json"}  # the page itself does not load them
_FOR_PROGRAMS |= {f"{name}.js" for name in _PROGRAM_MODULES.split()}
_NO_VERSION = b'const PAGE = { version: "", files: [] };'  # in sw.js
# Comments on lines of their own or at the end of a line, and indentation. No string of the page's
# code contains " // ".
_COMMENTS = re.compile(
    rb"^[ \t]*(?:/\*.*?\*/|//[^\n]*)\n|^[ \t]+|[ \t]+// [^\n]*$", re.MULTILINE | re.DOTALL
)
_SITE = Path(__file__).parent / "page" / "site"
_OWN_NAMES = re.compile(r"(127\.0\.0\.1|localhost)(:\d+)?")  # of this machine, in requests
_DATA = re.compile(r"(vectors|encoder|texts)-[0-9a-f]{12}\.(safetensors|json)")
_TEXT_COLUMNS = "title", "text", "url"  # of a collection of texts, that its page shows
MAX_BYTES = 2**32 - 2**20  # a WebAssembly module has 32-bit addresses

_HEADERS = {
    # The page says so itself for its document; a header says it for its workers too.
    "Content-Security-Policy": "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "
    "worker-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}


def write_page(
    file: Path, folder: Path, *, title: str = "embits", overwrite: bool = False
) -> list[Path]:
    """Write the page that searches `file` into `folder`, and return the files of the page.

    The vectors are copied, and checked. Each file is written atomically, the manifest last.

    Args:
        file: An embits file, a collection, or the folder of a Ray job. The page of a collection
            that `embits index` made answers questions with its texts.
        folder: The folder to write; created if it does not exist.
        overwrite: Replace a page in the folder. Files that are not part of a page stay.

    Raises:
        FormatError: `file` is not an embits file, or is damaged.
        InputError: The folder is not empty and `overwrite` is false, a file of the page is a link,
            or the file is too large for a browser.
    """
    bits = load(file, verify=True)
    with tempfile.TemporaryDirectory(prefix="embits-page-") as temporary:
        source = file
        if file.is_dir():  # the codes are saved as one file
            source = Path(temporary, "vectors.safetensors")
            bits.slim(["columns", FLOATS]).save(source)  # those of a page are in texts.json
        parts = {"file": source} | _parts_of_texts(bits, file, Path(temporary))
        size = sum(path.stat().st_size for path in parts.values())
        if size > MAX_BYTES:
            raise InputError(f"{file}: {size:,} bytes; a browser can hold {MAX_BYTES:,}")
        facts: dict[str, str | int] = {"name": file.name, "bytes": source.stat().st_size}
        checksums = {}
        for key, path in parts.items():
            with path.open("rb") as opened:
                checksum = hashlib.file_digest(opened, "sha256").hexdigest()
            stem, suffix = ("vectors", ".safetensors") if key == "file" else (key, path.suffix)
            name = facts[key] = f"{stem}-{checksum[:12]}{suffix}"
            checksums[name] = checksum
        shell = _shell(title, facts)
        check_folder(folder, [*checksums, *shell], overwrite)
        taken = [folder / name for name in shell if (folder / name).exists()]
        if taken and not any(_DATA.fullmatch(path.name) for path in folder.iterdir()):
            raise InputError(f"{taken[0]} is not of a page that embits wrote: move it away")
        earlier = _data_of(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for path, (name, checksum) in zip(parts.values(), checksums.items(), strict=True):
            _copy(path, folder / name, checksum)
        for name in (*sorted(shell.keys() - set(_LAST)), *_LAST):
            (folder / name).parent.mkdir(exist_ok=True)
            with atomic_write(folder / name) as target:
                target.write(shell[name])
    for name in () if folder.is_symlink() else earlier - checksums.keys():
        (folder / name).unlink(missing_ok=True)  # the data of the page replaced
    return [folder / name for name in (*checksums, *shell)]


def _parts_of_texts(bits: BinaryRows, file: Path, folder: Path) -> dict[str, Path]:
    """The encoder of a collection of texts, and its texts, as files; nothing for other rows."""
    if not (file / ENCODER).is_file() or "text" not in bits.current.columns.kinds:
        return {}
    encoder = TextEncoder.load(file / ENCODER, verify=True)
    encoder.coder_ = None  # questions are floats
    encoder.save(folder / ENCODER)
    columns = bits.get(rows=np.arange(len(bits)))
    none = [None] * len(bits)
    found = zip(*(columns.get(name, none) for name in _TEXT_COLUMNS), strict=True)
    rows = [["" if each is None else str(each) for each in row] for row in found]
    about = {"least": noise_threshold(bits, encoder), "rows": rows}
    (folder / "texts.json").write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
    return {"encoder": folder / ENCODER, "texts": folder / "texts.json"}


def _shell(title: str, facts: dict[str, str | int]) -> dict[str, bytes]:
    shell = {name: path.read_bytes() for name, path in _site().items()}
    for name in shell:
        if name.endswith((".js", ".css")):
            shell[name] = _COMMENTS.sub(b"", shell[name])
    if title != "embits":
        named = f">{html.escape(title)}<".encode()
        shell["index.html"] = shell["index.html"].replace(b">embits<", named)
        about = json.loads(shell[_INSTALLED]) | {"name": title, "short_name": title}
        shell[_INSTALLED] = json.dumps(about).encode()
    content = repr([*sorted(shell.items()), *sorted(facts.items())])
    version = hashlib.sha256(content.encode()).hexdigest()[:12]
    names = ["./", MANIFEST, *sorted(shell.keys() - _FOR_PROGRAMS - {"sw.js"})]
    page = json.dumps({"version": version, "files": names})
    shell["sw.js"] = shell["sw.js"].replace(_NO_VERSION, f"const PAGE = {page};".encode())
    shell[MANIFEST] = json.dumps(facts | {"version": version}).encode()
    return shell


def _site() -> dict[str, Path]:
    paths = (path for path in _SITE.rglob("*") if path.is_file() and path.name[0] != ".")
    return {path.relative_to(_SITE).as_posix(): path for path in paths}


def _data_of(folder: Path) -> set[str]:
    """The names of the data of the page in a folder, if there is one."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            facts = parse_json(file.read(1 << 16))
        names = {str(facts.get(key)) for key in ("file", "encoder", "texts")}
    except (OSError, ValueError, AttributeError):
        return set()
    return {name for name in names if _DATA.fullmatch(name) and not (folder / name).is_symlink()}


def _copy(source: Path, target: Path, checksum: str) -> None:
    found = hashlib.sha256()
    with source.open("rb") as original, atomic_write(target) as copy:
        while block := original.read(1 << 20):
            found.update(block)
            copy.write(block)
        if found.hexdigest() != checksum:
            raise InputError(f"{source}: changed while it was copied; try again")


def serve(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the page in `folder` on 127.0.0.1; port 0 takes a free one.

    Only the files of the page are served, and only to this machine's own names. The caller runs
    and closes the server.
    """
    names = {*_site(), MANIFEST, *_data_of(folder)}
    handler = partial(_Handler, names, directory=folder.resolve())
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    extensions_map = mimetypes.MimeTypes().types_map[True]  # whatever this system's registry says

    def __init__(self, names: set[str], *args: Any, directory: Path) -> None:
        self.names = names
        super().__init__(*args, directory=str(directory))

    def send_head(self) -> Any:
        """Open a file of the page and send its headers, or an error."""
        if not _OWN_NAMES.fullmatch(self.headers.get("Host", "")):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)  # another site's name for this machine
            return None
        name = unquote(self.path.partition("?")[0]).removeprefix("/") or "index.html"
        path = Path(self.directory, name)
        if name not in self.names or path.resolve() != path or not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        del self.headers["If-Modified-Since"]  # another page may have been written this second
        return super().send_head()

    def end_headers(self) -> None:
        """Add what a careful server says."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Be quiet."""
