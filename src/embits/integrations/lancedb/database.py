"""LanceDB's databases: opening them, and recognizing our tables."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.bits import packed_width
from embits.errors import DatabaseError, EmbitsError, InputError, MissingExtraError
from embits.integrations.descriptions import Description, check_ours
from embits.integrations.tables import Rows

KEY = "embits"  # of the description in the schema's metadata
MAX_PARTITIONS = 1 << 16


def connect(
    target: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None
) -> Any:
    """Open a database: a folder, which is made if there is none, or an address.

    Raises:
        InputError: The folder's parent does not exist, or the target is a file.
        DatabaseError: The database cannot be opened.
        MissingExtraError: LanceDB is not installed.
    """
    package = lancedb()
    if "://" not in str(target):
        path = Path(target)
        if path.is_file() or not path.resolve().parent.is_dir():
            found = "is a file" if path.is_file() else "is in a folder that does not exist"
            raise InputError(f"{path} {found}, expected a folder for the database")
    with one_line_errors(target):
        return package.connect(str(target), storage_options=dict(storage_options or {}))


class CodeTable:
    """A table that `export` wrote.

    Attributes:
        table: LanceDB's table.
        description: What the codes are.
        place: The table, for messages.
        columns: The columns other than the code.
    """

    def __init__(self, table: Any, found: Description, place: str) -> None:
        self.table = table
        self.description = found
        self.place = place
        self.columns = ["id", "word"] if found.words else ["id"]

    def find(self, words: list[str]) -> dict[str, int]:
        """The row numbers of those words that are there."""
        wanted = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
        if not wanted:
            return {}
        found = self.table.search().where(f"word in ({wanted})").select(self.columns).to_arrow()
        return dict(zip(found["word"].to_pylist(), found["id"].to_pylist(), strict=True))

    def code(self, row: int) -> NDArray[np.uint8] | None:
        """The packed code of a row."""
        found = self.table.search().where(f"id = {row}").select(["code"]).limit(1).to_arrow()
        return _codes(found, self.description.bits)[0] if len(found) else None

    def rows(self) -> Rows:
        """All rows, in the order of their numbers."""
        table = self.table.to_arrow()
        words = table["word"].to_pylist() if self.description.words else None
        return Rows.in_order(table["id"].to_numpy(), _codes(table, self.description.bits), words)


def _codes(table: Any, n_bits: int) -> NDArray[np.uint8]:
    chunks = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in table["code"].chunks]
    flat = np.concatenate([np.empty(0, np.uint8), *chunks])
    return flat.reshape(-1, packed_width(n_bits))


def open_table(database: Any, name: str) -> CodeTable | None:
    """Return a table that `export` wrote, or None if there is none of this name."""
    try:
        table = database.open_table(name)
    except (ValueError, FileNotFoundError) as error:
        if "not found" not in str(error):
            raise
        return None
    place = f"the table {name}"
    found = Description.parse((table.schema.metadata or {}).get(KEY.encode()))
    return CodeTable(table, check_ours(found, place), place)


def check_name(table: Any) -> None:
    """Check a table's name.

    Raises:
        InputError: LanceDB does not allow it.
    """
    if not isinstance(table, str) or not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", table):
        raise InputError(f"the table is {table!r}, expected letters, digits, '_', '-' and '.'")


@contextlib.contextmanager
def one_line_errors(place: Any) -> Iterator[None]:
    """Turn LanceDB's errors, which are built-in ones, into one line that names the place."""
    try:
        yield
    except EmbitsError:
        raise
    except (RuntimeError, ValueError) as error:
        raise DatabaseError(f"{place}: {' '.join(str(error).split())[:300]}") from None


def lancedb() -> Any:
    """Return the package.

    Raises:
        MissingExtraError: LanceDB is not installed.
    """
    # LanceDB logs a warning for every new table.
    os.environ.setdefault("LANCEDB_LOG", "error")
    try:
        import lancedb
        import lancedb.index
    except ImportError:
        raise MissingExtraError("LanceDB", "lancedb") from None
    return lancedb
