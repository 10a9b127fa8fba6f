"""Collections: folders of codes that rows are added to and removed from.

Each module is a step: `manifest` (which files there are), `pieces` (the files), `snapshot` (a
state, mapped), `lock` (one writer), `working` (folders for files in preparation), `changes`
(atomic), `rows` (what is added), `collection` (what users hold) and `opening`.
"""

from embits.collection.collection import Collection
from embits.collection.opening import load, open_collection

__all__ = ["Collection", "load", "open_collection"]
