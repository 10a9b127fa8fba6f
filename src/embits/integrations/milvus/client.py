"""Clients of Milvus: a server, or Milvus Lite on a file."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from embits.errors import DatabaseError, InputError, MissingExtraError

TIMEOUT_S = 10.0  # to connect
_LITE_NAME = re.compile(r"[A-Za-z0-9._-]{1,33}\.db")
_SQLITE = b"SQLite format 3\0"


def pymilvus() -> Any:
    """Return the package.

    Raises:
        MissingExtraError: pymilvus is not installed, or setuptools, which it needs.
    """
    try:
        import pymilvus
    except ImportError:
        raise MissingExtraError("Milvus", "milvus") from None
    return pymilvus


def connect(target: str | os.PathLike[str]) -> Any:
    """Open a client: `pymilvus.MilvusClient`.

    Args:
        target: The address of a server, http://user:password@host:19530/database, or a file of
            Milvus Lite, whose name ends in `.db`; it is made if there is none.

    Raises:
        InputError: The target is neither, or is a file of another program.
        DatabaseError: The server cannot be reached, or the file is open in another process.
        MissingExtraError: pymilvus or Milvus Lite is not installed.
    """
    package = pymilvus()
    place = without_password(target)
    if is_server(target):
        address = urlsplit(str(target))
        user, password = unquote(address.username or ""), unquote(address.password or "")
        options = {"user": user, "password": password, "token": os.environ.get("MILVUS_TOKEN", "")}
        if address.path.strip("/"):
            options["db_name"] = address.path.strip("/")
        uri = f"{address.scheme}://{address.netloc.rpartition('@')[2]}"
    else:
        _check_file(Path(target))
        _check_lite()
        uri, options = str(Path(target)), {}
    with one_line_errors(place):
        return package.MilvusClient(uri, timeout=TIMEOUT_S, **options)


def is_server(target: str | os.PathLike[str]) -> bool:
    """Whether a target is an address and not a file."""
    return "://" in str(target)


def without_password(target: str | os.PathLike[str]) -> str:
    """The target without user and password, for messages.

    Raises:
        InputError: The address is not valid; the message does not repeat it.

    Example:
        >>> without_password("http://me:secret@localhost:19530/app")
        'http://localhost:19530/app'
    """
    if not is_server(target):
        return str(target)
    with contextlib.suppress(ValueError):  # of a port that is not a number
        parts = urlsplit(str(target))
        if parts.hostname and parts.port != 0 and "@" not in parts.path:
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    raise InputError(
        "the address of the server is not valid; expected http://user:password@host:19530, with "
        "% @ / : in a password escaped (%25 %40 %2F %3A)"
    )


@contextlib.contextmanager
def opened(source: Any) -> Iterator[Any]:
    """Yield a client; one that was opened here is closed at the end.

    Milvus Lite is a process that locks its file. One that was started here is stopped again.
    """
    if not isinstance(source, str | os.PathLike):
        with one_line_errors("Milvus"):
            yield source
        return
    stop = contextlib.nullcontext() if is_server(source) else _lite_process(Path(source))
    with one_line_errors(without_password(source)), stop:
        known = {alias for alias, _ in pymilvus().connections.list_connections()}
        client = connect(source)
        # pymilvus may give clients of one address one connection: closing it would close theirs.
        shared = getattr(client, "_using", None) in known
        with contextlib.nullcontext() if shared else contextlib.closing(client):
            yield client


@contextlib.contextmanager
def _lite_process(path: Path) -> Iterator[None]:
    """Stop the process of a file at the end, unless it ran before."""
    _check_lite()
    from milvus_lite.server_manager import server_manager_instance as manager

    name = str(path.absolute().resolve())
    running = name in manager._servers
    try:
        yield
    finally:
        if not running and name in manager._servers:
            manager.release_server(name)


@contextlib.contextmanager
def one_line_errors(place: str) -> Iterator[None]:
    """Turn errors of pymilvus into one line that names the place; its log is silent meanwhile."""
    package = pymilvus()
    import grpc  # a dependency of pymilvus

    try:
        with _silent_logs():
            yield
    except (package.MilvusException, grpc.RpcError) as error:
        found = " ".join(str(getattr(error, "message", "") or error).split())[:300]
        if "Open local milvus failed" in found:
            found = "Milvus Lite cannot open it; another process may have it open"
        raise DatabaseError(f"{place}: {found}") from None


@contextlib.contextmanager
def _silent_logs() -> Iterator[None]:
    """Keep pymilvus and Milvus Lite from logging the errors that they also raise."""
    pymilvus()  # its import sets the levels of these loggers
    loggers = [logging.getLogger(name) for name in ("pymilvus", "pymilvus.milvus_client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    logging.root.addFilter(_is_not_lite)  # Milvus Lite logs to the root
    try:
        yield
    finally:
        logging.root.removeFilter(_is_not_lite)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _is_not_lite(record: logging.LogRecord) -> bool:
    return "milvus_lite" not in record.pathname


def check_name(collection: Any) -> str:
    """Return the name of a collection.

    Raises:
        InputError: Milvus does not allow it.
    """
    if not isinstance(collection, str) or not re.fullmatch(r"[A-Za-z_]\w{0,254}", collection, re.A):
        raise InputError(
            f"the collection is {collection!r}, expected letters, digits and '_', at most 255"
        )
    return collection


def _check_file(path: Path) -> None:
    """Check that Milvus Lite may open a file: a new one, or one that it wrote."""
    if not _LITE_NAME.fullmatch(path.name):
        raise InputError(
            f"{path} is neither an address such as http://localhost:19530 nor a file of Milvus "
            "Lite, whose name has at most 36 ASCII letters, digits, '.', '-' and '_', and ends "
            "in .db"
        )
    if path.is_dir() or not path.resolve().parent.is_dir():
        found = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise InputError(f"{path} {found}, expected a file of Milvus Lite")
    if path.exists() and path.stat().st_size and not _is_milvus(path):
        raise InputError(
            f"{path} exists and is not a file of Milvus Lite; choose another file, or move it away"
        )


def _is_milvus(path: Path) -> bool:
    """Whether a file is an SQLite database with the table of collections of Milvus Lite."""
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return False
    import sqlite3

    with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as db:
        try:
            select = "select 1 from sqlite_master where name = 'collection_meta'"
            return db.execute(select).fetchone() is not None
        except sqlite3.Error:
            return False


def _check_lite() -> None:
    try:
        import milvus_lite  # noqa: F401
    except ImportError:
        raise MissingExtraError("a file of Milvus Lite", "milvus") from None
