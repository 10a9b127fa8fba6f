"""The engines that codes are exported to, behind one face, for tests of what all of them do."""

import importlib
from pathlib import Path

import pytest


class Engine:
    """An engine with one place of its own to write to."""

    def __init__(self, name, folder):
        self.to = "duckdb" if name == "parquet" else name
        packages = {"duckdb": "duckdb", "lancedb": "lancedb", "milvus": "milvus_lite"}
        pytest.importorskip(packages[self.to], reason=f"embits[{self.to}] is not installed")
        self.module = importlib.import_module(f"embits.integrations.{self.to}")
        files = {"duckdb": "ünd #1.duckdb", "parquet": "[ünd] 'n' *1?.parquet",
                 "lancedb": "ünd 1", "milvus": "codes.db"}  # fmt: skip
        self.target = Path(folder) / files[name]
        self.table = {"milvus": "collection"}.get(self.to, "table")  # what engines call it
        self.client = None
        self.has_tables = name != "parquet"

    def export(self, bits, **options):
        return self.module.export(bits, str(self.target), **options)

    def nearest(self, *arguments, **options):
        return self.module.nearest(self._source(), *arguments, **options)

    def read(self, coder, **options):
        return self.module.read(self._source(), coder, **options)

    def _source(self):
        """The target; for Milvus Lite an open client, as its start takes half a second."""
        if self.to == "milvus" and self.client is None and self.target.exists():
            self.client = self.module.connect(self.target)
        return self.client or self.target

    def close(self):
        if self.client is not None:
            from milvus_lite.server_manager import server_manager_instance

            self.client.close()
            server_manager_instance.release_server(str(self.target))
