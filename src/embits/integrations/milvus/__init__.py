"""Codes in Milvus: a collection of binary vectors, searched by Hamming distance.

The fields are `id` (the row number, primary key), `word` (left out if the rows have no ids) and
`code`, a binary vector in the bit order of embits, first bit highest. Milvus' widths are multiples
of 8: other codes are padded with zeros, which do not change distances. The collection's description
describes the codes as JSON.
"""

from __future__ import annotations

from embits.integrations.milvus.client import connect
from embits.integrations.milvus.queries import nearest, read
from embits.integrations.milvus.writing import export

__all__ = ["connect", "export", "nearest", "read"]
