"""Codes in LanceDB: a table in a local folder or an object store, searched by Hamming distance.

The columns are `id` (the row number), `word` (left out if the rows have no ids) and `code`, a list
of bytes of a fixed size in the order of embits, first bit highest. The metadata of the table's
schema describes the codes.
"""

from __future__ import annotations

from embits.integrations.lancedb.database import connect
from embits.integrations.lancedb.queries import nearest, read
from embits.integrations.lancedb.writing import export

__all__ = ["connect", "export", "nearest", "read"]
