"""Codes in folders of Parquet files, as `embits.integrations.ray.encode` writes them.

`embits.load` opens such a folder. These functions also take another column of ids or of codes.
"""

from embits.collection.parquet import read_codes, read_column

__all__ = ["read_codes", "read_column"]
