"""Files at addresses (https://, s3://, gs://, hf://, memory://), which fsspec fetches.

A file is copied to a private temporary folder, which is removed when nothing uses the copy.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import urlsplit

from embits import errors
from embits._lazy import LazyProperty
from embits.errors import EmbitsError, InputError, MissingExtraError, ReadError, first_line

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# Stores that may hold collections; at other addresses there are only files.
_STORES = ("s3", "gs", "gcs", "hdfs", "file", "abfs", "abfss", "viewfs")
_EXTRAS = {"http": "remote", "https": "remote", "hf": "hub"}
_SILENCE = 20.0  # seconds for which a server may send nothing


def is_address(path: Any) -> TypeGuard[str]:
    """Whether this is an address, such as s3://bucket/codes, and not a path.

    >>> is_address("https://example.org/x.npy"), is_address("x.npy"), is_address("gensim:x")
    (True, False, False)
    """
    return isinstance(path, str) and _ADDRESS.match(path) is not None


def names_file(address: str) -> bool:
    """Whether there is a file of codes at this address; if not, it is that of a collection."""
    parts = urlsplit(address)
    return parts.scheme.lower() not in _STORES or parts.path.endswith(".safetensors")


def refuse_output(path: Any) -> None:
    """Refuse an address as the file to write."""
    if is_address(path):
        raise InputError(f"{shown(path)} is an address: write a local file, and upload it")


def shown(address: str) -> str:
    """An address as messages show it: without passwords, signatures and tokens.

    >>> shown("https://user:secret@example.org/x.npy?signature=1")
    'https://example.org/x.npy'
    """
    return re.sub(r"//[^/@]*@", "//", re.split(r"[?#]", address, maxsplit=1)[0])


class Fetched:
    """A private copy of a file.

    ReadError: It cannot be fetched, or is cut short; MissingFileError if it is not there.
    """

    def __init__(self, address: str) -> None:
        self.name = shown(address)
        files, inner = _file_system(address)
        folder = Path(tempfile.mkdtemp(prefix="embits-"))  # which only this user may read
        self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        name = re.sub(r"[^\w.-]", "_", urlsplit(self.name).path.rpartition("/")[2]).lstrip(".")
        self.path = folder / (name[-100:] or "file")
        try:
            with _one_line(self.name):
                self._fetch(files, inner)
        except BaseException:  # Ctrl-C too
            self._remove()
            raise

    @LazyProperty
    def checksum(self) -> str:
        """Of the copy: it tells whether it is the same file as one before."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors that are raised meanwhile name the address, not the copy."""
        try:
            yield
        except EmbitsError as error:
            if error.path == str(self.path):
                error.path = self.name
            raise

    def _fetch(self, files: Any, inner: str) -> None:
        info: dict[str, Any] = {}
        if not self.name.lower().startswith("http"):  # which compares the sizes itself
            with suppress(Exception):  # it may be refused: `get_file` has the better error
                info = files.info(inner)
        if info.get("type") == "directory":
            raise ReadError(f"{self.name}: found a folder, expected a file")
        files.get_file(inner, str(self.path))
        size, found = info.get("size"), self.path.stat().st_size
        if size is not None and found != size:
            raise ReadError(f"{self.name}: cut short: {found:,} bytes, expected {size:,}")


def size_at(address: str) -> int:
    """Bytes of a file, or of the files in a folder."""
    files, inner = _file_system(address)
    with _one_line(shown(address)):
        info = files.info(inner)
        return int(files.du(inner) if info.get("type") == "directory" else info.get("size") or 0)


def _file_system(address: str) -> tuple[Any, str]:
    scheme, name = urlsplit(address).scheme.lower(), shown(address)
    options: dict[str, Any] = {}
    try:
        from fsspec.core import url_to_fs

        if scheme in ("http", "https"):
            from aiohttp import ClientTimeout

            # aiohttp's own limit is five minutes for a whole download, however fast it goes.
            timeout = ClientTimeout(total=None, sock_connect=_SILENCE, sock_read=_SILENCE)
            options["client_kwargs"] = {"timeout": timeout}
        with _one_line(name):
            files, inner = url_to_fs(address, **options)
    except ImportError as error:
        hint = "" if error.name or scheme in _EXTRAS else f"a package: {first_line(error)}"
        raise MissingExtraError(name, _EXTRAS.get(scheme, "remote"), hint) from None
    return files, inner


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    try:
        yield
    except (EmbitsError, ImportError):
        raise
    except FileNotFoundError:
        raise errors.MissingFileError(name) from None
    except TimeoutError:
        raise ReadError(f"{name}: cannot be read: the server sends nothing: try later") from None
    except Exception as error:  # noqa: BLE001 - each package raises errors of its own
        status = getattr(error, "status", None)  # of aiohttp, whose text has the whole address
        told = f"HTTP {status} {getattr(error, 'message', '')}".rstrip()
        found = told if isinstance(status, int) else first_line(error)
        raise ReadError(f"{name}: cannot be read: {found}") from None
