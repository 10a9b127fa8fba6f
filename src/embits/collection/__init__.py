"""Collections: folders of codes that rows are added to and removed from."""

from typing import TYPE_CHECKING

from embits._lazy import lazy_names
from embits.collection.opening import load, load_coder, open_collection

if TYPE_CHECKING:
    from embits.collection.collection import Collection

__all__ = ["Collection", "load", "load_coder", "open_collection"]

# A program that opens a file does not need it: it is imported at the first use of its name.
__getattr__ = lazy_names(__name__, {"Collection": "embits.collection.collection"})
