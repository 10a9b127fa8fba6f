"""Fit, encode and search on several machines with Ray.

`encode` writes a collection of Parquet files that `embits.load` opens without Ray, with the rows in
their order. `search`, `within` and `pairs_within` give the answers of one machine.
"""

from embits.errors import MissingExtraError

try:
    import ray.data  # noqa: F401 - missing Ray is reported here, not in the modules below
except ImportError as missing:
    raise MissingExtraError("a job on several machines", "ray") from missing

from embits.integrations.ray.encoding import encode, fit
from embits.integrations.ray.searching import pairs_within, search, within

__all__ = ["encode", "fit", "pairs_within", "search", "within"]
