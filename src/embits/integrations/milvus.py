"""Codes in Milvus: a collection of binary vectors, searched by Hamming distance.

The fields are `id` (the row number, primary key), `word` (left out if the rows have no ids) and
`code`, a binary vector, first bit highest, padded with zeros to bytes. The collection's description
describes the codes as JSON. `nearest` takes the name of the `collection`, a k of at most 16,383,
and a filter expression of Milvus as `where`.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress, packed_width
from embits.binary_vectors import BinaryRows
from embits.errors import InputError
from embits.file.overwrite import check_target
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Rows

__all__ = ["connect", "export", "nearest", "read"]

TIMEOUT_S = 10.0  # to connect
MAX_BITS = 262_144  # of a binary vector
MAX_ID_BYTES = 65_535  # of a VARCHAR
MAX_K = 16_384  # Milvus' limit
RETRIES = 3  # pymilvus' own 75 take minutes, also for a filter that cannot be parsed
_BLOCK_ROWS = 1000  # the time that pymilvus takes grows with the square
_READ_ROWS = 4096
_LITE_NAME = re.compile(r"[A-Za-z0-9._-]{1,33}\.db")
_PLAIN = re.compile(r"[^\x00-\x1f\"'\\%_]*")  # characters that mean themselves in an expression


def export(
    bits: BinaryRows, target: str, *, progress: Progress | None = None,
    collection: str = "embits", overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a collection with the exact index BIN_FLAT: see `integrations.export`.

    `target` is the address of a server, http://host:19530, or a file of Milvus Lite (`.db`). A
    collection that is replaced is dropped first: Milvus Lite cannot rename a collection.
    """
    bits = tables.to_export(bits)
    tables.check_limits(bits, "Milvus", MAX_BITS, MAX_ID_BYTES)
    with tables.nothing_new_if_it_fails(Path(target)), _opened(target) as client:
        old = _description(client, collection)
        if tables.check_ours(f"the collection {collection}", old, overwrite):
            client.drop_collection(collection)
        try:
            _write(client, collection, bits, progress)
        except BaseException:
            client.drop_collection(collection)
            raise
    return {"collection": collection}


def connect(target: str | os.PathLike[str]) -> Any:
    """Open a client, a `pymilvus.MilvusClient`, of a server or a file of Milvus Lite.

    A server has an address, http://host:19530/database, and its token, or user:password, is in the
    environment variable MILVUS_TOKEN. A file's name ends in `.db`; it is made if there is none.

    Raises:
        InputError: The target is neither, or is a file of another program.
        DatabaseError: The server cannot be reached, or the file is open in another process.
    """
    options = {"token": os.environ.get("MILVUS_TOKEN", "")} if _is_server(target) else {}
    if not options:
        _check_file(Path(target))
        _lite_servers()
    with tables.one_line_errors(target, *_errors()):
        return _pymilvus().MilvusClient(str(target), timeout=TIMEOUT_S, **options)


class _Codes(tables.Table):
    unordered, max_k = math.inf, MAX_K - 1

    def __init__(self, client: Any, name: str) -> None:
        self.client, self.name = client, name
        super().__init__(f"the collection {name}", _description(client, name))

    @classmethod
    @contextlib.contextmanager
    def opened(cls, source: Any, collection: str = "embits") -> Iterator[_Codes]:
        if isinstance(source, str | os.PathLike) and not _is_server(source):
            Path(source).open("rb").close()  # Milvus Lite would make a new file
        with _opened(source) as client:
            yield cls(client, collection)

    def rows(self, field: str | None = None, value: str | int = 0) -> Rows:
        condition = "id >= -9223372036854775807"
        if isinstance(value, str):
            # How expressions escape characters differs between Milvus and Milvus Lite. A word with
            # such characters is searched by what comes before them.
            plain = str(_PLAIN.match(value)[0])  # type: ignore[index]
            condition = f'word like "{plain}%"' if plain else condition
            condition = f'word == "{value}"' if plain == value else condition
        elif field is not None:
            condition = f"id == {value}"
        pages = self.client.query_iterator(
            self.name, filter=condition, output_fields=[*self.fields, "code"], batch_size=_READ_ROWS
        )
        with contextlib.closing(pages):
            each = itertools.chain.from_iterable(iter(pages.next, []))
            rows = [row for row in each if field is None or row[field] == value]
        rows.sort(key=lambda row: row["id"])
        codes = np.frombuffer(b"".join(row["code"][0] for row in rows), np.uint8)
        ids = [row["word"] for row in rows] if self.description.words else None
        numbers = np.array([row["id"] for row in rows], np.int64)
        return Rows(numbers, codes.reshape(-1, packed_width(self.description.bits)), ids)

    def search(self, code: Codes, k: int, where: str | None, params: Sequence[Any]) -> Any:
        rows = self.client.search(
            self.name, data=[code.tobytes()], limit=min(k, MAX_K), filter=where or "",
            output_fields=self.fields, retry_times=RETRIES,
        )[0]  # fmt: skip
        return [[*(row["entity"][name] for name in self.fields), row["distance"]] for row in rows]


nearest, read = _Codes.nearest, _Codes.read


@contextlib.contextmanager
def _opened(source: Any) -> Iterator[Any]:
    connections, is_place = _pymilvus().connections, isinstance(source, str | os.PathLike)
    known = {alias for alias, _ in connections.list_connections()}
    with (
        tables.one_line_errors(source if is_place else "Milvus", *_errors()),
        contextlib.ExitStack() as stack,
    ):
        if is_place and not _is_server(source):
            servers, file = _lite_servers(), str(Path(source).absolute().resolve())
            if file not in servers._servers:  # a process that locks the file: it is stopped again
                stack.callback(lambda: file in servers._servers and servers.release_server(file))
        client = connect(source) if is_place else source
        # pymilvus may give clients of one address one connection: closing it would close theirs.
        if is_place and getattr(client, "_using", None) not in known:
            stack.enter_context(contextlib.closing(client))
        yield client


def _description(client: Any, name: str) -> str | None:
    """What describes a collection; None if there is none."""
    expected = "letters, digits and '_'"
    tables.check_name(r"[A-Za-z_]\w{0,254}", expected, "the collection", name)
    has_it = client.has_collection(name)
    return client.describe_collection(name)["description"] if has_it else None


def _write(client: Any, name: str, bits: BinaryRows, progress: Progress | None) -> None:
    types, description = _pymilvus().DataType, tables.Description.of(bits, "BIN_FLAT")
    schema = client.create_schema(description=description.to_json())
    schema.add_field("id", types.INT64, is_primary=True)
    if description.words:
        schema.add_field("word", types.VARCHAR, max_length=MAX_ID_BYTES)
    schema.add_field("code", types.BINARY_VECTOR, dim=8 * bits.codes.shape[1])
    index = client.prepare_index_params()
    index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
    # Strong: a search sees every row that was inserted before it.
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")
    for rows, codes, words in tables.row_blocks(bits, progress, _BLOCK_ROWS):
        block = [{"id": row, "code": code.tobytes()} for row, code in zip(rows, codes, strict=True)]
        for row, word in zip(block, words or [], strict=False):
            row["word"] = word
        client.insert(name, block)


def _is_server(target: str | os.PathLike[str]) -> bool:
    """Whether the target is an address, which must not have a password: messages repeat it."""
    if "://" in str(target) and "@" in str(target):
        raise InputError("a user or password is in the address: put user:password in MILVUS_TOKEN")
    return "://" in str(target)


def _check_file(path: Path) -> None:
    if not _LITE_NAME.fullmatch(path.name):
        raise InputError(
            f"{path} is no address, http://localhost:19530, and no file of Milvus Lite: its name "
            "has at most 36 ASCII letters, digits, '.', '-' and '_', and ends in .db"
        )
    check_target(path, overwrite=True)
    if path.exists() and path.stat().st_size:
        select = "select 1 from sqlite_master where name = 'collection_meta'"
        address, found = f"{path.resolve().as_uri()}?mode=ro", None
        opened = contextlib.closing(sqlite3.connect(address, uri=True))
        with opened as database, contextlib.suppress(sqlite3.Error):
            found = database.execute(select).fetchone()
        if not found:
            raise InputError(f"{path} is not a file of Milvus Lite; choose another file")


def _pymilvus() -> Any:
    """The package; it and Milvus Lite, which logs to the root, do not log what they raise."""
    pymilvus = package("pymilvus", "Milvus", "milvus")
    for name in ("pymilvus", "pymilvus.milvus_client"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.root.addFilter(_is_not_lite)
    warnings.filterwarnings("ignore", "pkg_resources")  # which Milvus Lite imports
    return pymilvus


def _errors() -> tuple[type[Exception], ...]:
    grpc = package("grpc", "Milvus", "milvus")  # a dependency of pymilvus
    return _pymilvus().MilvusException, grpc.RpcError


def _is_not_lite(record: logging.LogRecord) -> bool:
    return "milvus_lite" not in record.pathname


def _lite_servers() -> Any:
    managers = package("milvus_lite.server_manager", "a file of Milvus Lite", "milvus")
    return managers.server_manager_instance
