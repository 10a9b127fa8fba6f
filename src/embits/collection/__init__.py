"""Collections: folders of codes that rows are added to and removed from.

Each module is a step: `manifest` (which files there are), `pieces` (the files), `snapshot` (a
state, mapped), `lock` (one writer), `working` (folders for files in preparation), `changes`
(atomic), `rows` (what is added), `collection` (what users hold), `opening`, and `loading` (files
too).
"""

from typing import TYPE_CHECKING

from embits._lazy import lazy_names
from embits.collection.loading import load

if TYPE_CHECKING:
    from embits.collection.collection import Collection
    from embits.collection.opening import open_collection

__all__ = ["Collection", "load", "open_collection"]

# A program that opens a file needs neither: they are imported at the first use of their name.
__getattr__ = lazy_names(
    __name__,
    {
        "Collection": "embits.collection.collection",
        "open_collection": "embits.collection.opening",
    },
)
