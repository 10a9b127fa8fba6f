"""Codes in Milvus: a collection of binary vectors, searched by Hamming distance.

The fields are `id` (the row number, primary key), `word` (left out if the rows have no ids) and
`code`, a binary vector, first bit highest, padded with zeros to bytes. The collection's description
describes the codes as JSON.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sqlite3
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embits.arrays import Progress, packed_width
from embits.binary_vectors import BinaryVectors
from embits.checks import whole
from embits.coders import Coder
from embits.errors import InputError
from embits.file.overwrite import check_target
from embits.integrations import Facts, package
from embits.integrations import table as tables
from embits.integrations.table import Codes, Description, Neighbor, Place, Query

__all__ = ["connect", "export", "nearest", "read"]

TIMEOUT_S = 10.0  # to connect
MAX_BITS = 262_144  # of a binary vector
MAX_ID_BYTES = 65_535  # of a VARCHAR
MAX_K = 16_384  # Milvus' limit
RETRIES = 3  # pymilvus' own 75 take minutes, also for a filter that cannot be parsed
_BLOCK_ROWS = 1000  # the time that pymilvus takes grows with the square
_BLOCK_BYTES = 8 << 20  # a server takes messages of 64 MB
_READ_ROWS = 4096
_LITE_NAME = re.compile(r"[A-Za-z0-9._-]{1,33}\.db")
_PLAIN = re.compile(r"[^\x00-\x1f\"'\\%_]*")  # characters that mean themselves in an expression
_check_name = partial(
    tables.check_name, r"[A-Za-z_]\w{0,254}", "letters, digits and '_'", "the collection"
)


def export(
    bits: BinaryVectors, target: str, *, progress: Progress | None = None,
    collection: str = "embits", overwrite: bool = False,
) -> Facts:  # fmt: skip
    """Write codes to a collection with the exact index BIN_FLAT: see `integrations.export`.

    Args:
        target: The address of a server, http://host:19530, or a file of Milvus Lite (`.db`).
        collection: The collection's name: letters, digits and `_`.
        overwrite: Replace a collection that embits wrote. It is dropped first: Milvus Lite cannot
            rename a collection.
    """
    bits, name = tables.to_export(bits), _check_name(collection)
    if bits.n_bits > MAX_BITS:
        raise InputError(f"Milvus holds at most {MAX_BITS:,} bits, the codes have {bits.n_bits:,}")
    tables.check_ids(bits, MAX_ID_BYTES)
    with tables.nothing_new_if_it_fails(Path(target)), _opened(target) as client:
        if client.has_collection(name):
            tables.check_ours(f"the collection {name}", _description(client, name), overwrite)
            client.drop_collection(name)
        try:
            _write(client, name, bits, progress)
        except BaseException:
            client.drop_collection(name)
            raise
    return {"collection": name}


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
    with _one_line_errors(target):
        return _pymilvus().MilvusClient(str(target), timeout=TIMEOUT_S, **options)


def nearest(
    source: Place, query: Query, k: int = 10, *, collection: str = "embits",
    where: str | None = None, coder: Coder | None = None,
) -> list[Neighbor]:  # fmt: skip
    """Find the k nearest rows by Hamming distance: exact, ties in row order.

    Args:
        source: The address or file, or a client from `connect`, which is faster for many queries.
        query: See `table.Table.nearest`, also for `coder` and the errors.
        k: The number of neighbors, at most 16,383.
        collection: The collection that was exported to.
        where: A filter expression of Milvus on `id` and `word`, run unchanged.
    """
    whole("k", k, 0, MAX_K - 1)
    with _collection(source, collection) as codes:

        def search(code: Codes, size: int) -> list[Neighbor]:
            found = codes.client.search(
                codes.name, data=[code.tobytes()], limit=size, filter=where or "",
                output_fields=codes.fields, retry_times=RETRIES,
            )[0]  # fmt: skip
            return [codes.neighbor(each["entity"], each["distance"]) for each in found]

        return codes.nearest(query, k, coder, search, most=MAX_K)


def read(source: Place, coder: Coder, *, collection: str = "embits") -> BinaryVectors:
    """Read a whole collection back as BinaryVectors: see `table.Table.read`."""
    with _collection(source, collection) as codes:
        return codes.read(coder)


class _Codes(tables.Table):
    def __init__(self, client: Any, name: str) -> None:
        super().__init__(f"the collection {name}", _description(client, name))
        self.client, self.name = client, name

    def find(self, word: str) -> int | None:
        # How expressions escape characters differs between Milvus and Milvus Lite. A word with such
        # characters is searched by what comes before them.
        plain = _PLAIN.match(word)[0]  # type: ignore[index]
        wanted = f'word == "{word}"' if plain == word else f'word like "{plain}%"'
        rows = self._query(wanted if plain or not word else "id >= 0", ["word"])
        return next((each["id"] for each in rows if each["word"] == word), None)

    def code(self, row: int) -> Codes | None:
        found = self.client.get(self.name, ids=[row], output_fields=["code"])
        return self._codes(found)[0] if len(found) else None

    def rows(self) -> tables.Rows:
        found = list(self._query("id >= -9223372036854775807", [*self.fields, "code"]))
        words = [each["word"] for each in found] if self.description.words else None
        return [each["id"] for each in found], self._codes(found), words

    def _query(self, expression: str, fields: list[str]) -> Iterator[Any]:
        pages = self.client.query_iterator(
            self.name, filter=expression, output_fields=fields, batch_size=_READ_ROWS
        )
        with contextlib.closing(pages):
            while page := pages.next():
                yield from page

    def _codes(self, found: Any) -> Codes:
        blob = b"".join(each["code"][0] for each in found)
        return np.frombuffer(blob, np.uint8).reshape(-1, packed_width(self.description.bits))


@contextlib.contextmanager
def _collection(source: Any, name: str) -> Iterator[_Codes]:
    _check_name(name)
    if isinstance(source, str | os.PathLike) and not _is_server(source):
        Path(source).open("rb").close()  # Milvus Lite would make a new file
    with _opened(source) as client:
        if not client.has_collection(name):
            raise InputError(f"there is no collection {name}; export to milvus writes one")
        yield _Codes(client, name)


@contextlib.contextmanager
def _opened(source: Any) -> Iterator[Any]:
    if not isinstance(source, str | os.PathLike):
        with _one_line_errors("Milvus"):
            yield source
        return
    with _one_line_errors(source), contextlib.ExitStack() as stack:
        if not _is_server(source):
            servers, file = _lite_servers(), str(Path(source).absolute().resolve())
            if file not in servers._servers:  # a process that locks the file: it is stopped again
                stack.callback(lambda: file in servers._servers and servers.release_server(file))
        known = {alias for alias, _ in _pymilvus().connections.list_connections()}
        client = connect(source)
        # pymilvus may give clients of one address one connection: closing it would close theirs.
        if getattr(client, "_using", None) not in known:
            stack.enter_context(contextlib.closing(client))
        yield client


def _write(client: Any, name: str, bits: BinaryVectors, progress: Progress | None) -> None:
    types, description = _pymilvus().DataType, Description.of(bits, "BIN_FLAT")
    schema = client.create_schema(
        auto_id=False, enable_dynamic_field=False, description=description.to_json()
    )
    schema.add_field("id", types.INT64, is_primary=True)
    if description.words:
        schema.add_field("word", types.VARCHAR, max_length=MAX_ID_BYTES)
    schema.add_field("code", types.BINARY_VECTOR, dim=8 * bits.codes.shape[1])
    index = client.prepare_index_params()
    index.add_index("code", index_type="BIN_FLAT", metric_type="HAMMING")
    # Strong: a search sees every row that was inserted before it.
    client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong")
    for rows, codes, words in tables.row_blocks(bits, _BLOCK_ROWS, progress, _BLOCK_BYTES):
        ids = [{}] * len(rows) if words is None else [{"word": word} for word in words]
        block = zip(rows, codes, ids, strict=True)
        client.insert(name, [{"id": n, "code": code.tobytes(), **word} for n, code, word in block])


def _is_server(target: str | os.PathLike[str]) -> bool:
    """Whether the target is an address, which must not have a password: messages repeat it."""
    if "://" in str(target) and "@" in str(target):
        raise InputError("a user or password is in the address: put user:password in MILVUS_TOKEN")
    return "://" in str(target)


def _one_line_errors(place: Any) -> contextlib.AbstractContextManager[None]:
    grpc = package("grpc", "Milvus", "milvus")  # a dependency of pymilvus
    return tables.one_line_errors(place, _pymilvus().MilvusException, grpc.RpcError)


def _description(client: Any, name: str) -> Description | None:
    return Description.parse(client.describe_collection(name)["description"])


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


def _is_not_lite(record: logging.LogRecord) -> bool:
    return "milvus_lite" not in record.pathname


def _lite_servers() -> Any:
    managers = package("milvus_lite.server_manager", "a file of Milvus Lite", "milvus")
    return managers.server_manager_instance
