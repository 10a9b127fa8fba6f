"""Collections: folders of codes that rows are added to and removed from.

Each module is a step: `manifest` (which files there are), `pieces` (the files, opened; a snapshot
of all), `parquet` (pieces that a job on several workers wrote), `changes` (atomic, by one writer),
`collection` (what users hold) and `opening` (files too).
"""

from typing import TYPE_CHECKING

from embits._lazy import lazy_names
from embits.collection.opening import load, load_coder, open_collection

if TYPE_CHECKING:
    from embits.collection.collection import Collection

__all__ = ["Collection", "load", "load_coder", "open_collection"]

# A program that opens a file does not need it: it is imported at the first use of its name.
__getattr__ = lazy_names(__name__, {"Collection": "embits.collection.collection"})
