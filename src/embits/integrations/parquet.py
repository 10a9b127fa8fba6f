"""Codes in folders of Parquet files, as `embits.integrations.ray.encode` writes them.

`embits.load` opens such a folder. The functions here also choose the column of ids, and read
the other columns.
"""

from embits.collection.parquet import read_codes, read_column

__all__ = ["read_codes", "read_column"]
