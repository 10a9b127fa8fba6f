"""The engines that codes are exported to, behind one face, for tests of what all of them do."""

import contextlib
import importlib
from pathlib import Path

import pytest

PACKAGES = {"duckdb": "duckdb", "lancedb": "lancedb", "milvus": "milvus_lite",
            "pgvector": "psycopg", "sqlite": "sqlite_vec"}  # fmt: skip
FILES = {"duckdb": "ünd #1.duckdb", "parquet": "[ünd] 'n' *1?.parquet", "lancedb": "ünd 1",
         "milvus": "codes.db", "sqlite": "ünd #1?.db"}  # fmt: skip
ENGINES = [*FILES, "pgvector"]


class Engine:
    """An engine with one place of its own to write to: a file or folder, or a server's address.

    Attributes:
        name: One of `ENGINES`.
        to: The name of the exporter.
        target: What is exported to.
        table: What the engine calls a table, or None if it has just one.
        exact: The options of an exact search.
    """

    def __init__(self, name, folder, address=None):
        self.name = name
        self.to = "duckdb" if name == "parquet" else name
        pytest.importorskip(PACKAGES[self.to], reason=f"embits[{self.to}] is not installed")
        self.module = importlib.import_module(f"embits.integrations.{self.to}")
        self.target = Path(folder) / FILES[name] if address is None else address
        self.table = {"milvus": "collection", "parquet": None, "sqlite": None}.get(name, "table")
        self.exact = {"exact": True} if name == "pgvector" else {}
        self.kept = contextlib.ExitStack()
        self.client = None

    def export(self, bits, **options):
        return self.module.export(bits, str(self.target), **options)

    def nearest(self, *arguments, **options):
        return self.module.nearest(self.source(), *arguments, **self.exact, **options)

    def read(self, coder, **options):
        return self.module.read(self.source(), coder, **options)

    def remove(self, row):
        """Remove a row with the engine's own functions."""
        if self.to == "milvus":
            self.source().delete("embits", ids=[row])
        elif self.to == "lancedb":
            self.connect().open_table("embits").delete(f"id = {row}")
        elif self.to == "pgvector":
            self.source().execute("delete from embits where id = %s", [row])
        elif self.to == "sqlite":
            with contextlib.closing(self.module.connect(self.target, writable=True)) as connection:
                connection.execute("delete from codes where id = ?", [row])
        else:
            with importlib.import_module("duckdb").connect(str(self.target)) as connection:
                connection.execute("delete from embits where id = ?", [row])

    def source(self):
        """The target, or an open client: of a server, or of Milvus Lite, which starts slowly."""
        if self.client is None and self.name == "pgvector":
            import psycopg

            self.client = self.kept.enter_context(psycopg.connect(self.target, autocommit=True))
        if self.client is None and self.name == "milvus" and self.target.exists():
            from milvus_lite.server_manager import server_manager_instance

            self.kept.callback(server_manager_instance.release_server, str(self.target))
            self.client = self.kept.enter_context(contextlib.closing(self.connect()))
        return self.client or self.target

    def connect(self):
        return self.module.connect(self.target)

    def close(self):
        self.kept.close()
