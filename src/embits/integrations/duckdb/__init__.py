"""Codes in DuckDB: a table of a database file, or a Parquet file, searched in SQL.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and the code in
unsigned integers of 64 bits: `c0`, `c1`, …, the first bit highest, the last one padded with zeros.
DuckDB compares such columns two to three times as fast as its type BIT. The table's
comment, or the Parquet file's metadata, describes the codes.
"""

from __future__ import annotations

from embits.integrations.duckdb.queries import connect, distance, nearest, read
from embits.integrations.duckdb.writing import export

__all__ = ["connect", "distance", "export", "nearest", "read"]
