"""Exact search over packed codes: top-k, all rows within a distance, near pairs."""

from typing import TYPE_CHECKING

from embits._lazy import lazy_names
from embits.search.filters import Selection, select
from embits.search.metrics import METRICS, Metric
from embits.search.results import (
    CosineResult,
    DistanceResult,
    GroupsResult,
    PairsResult,
    ScoreResult,
    SearchResult,
    WithinResult,
    WithinScoreResult,
)
from embits.search.scan import Kernel, asymmetric_top_k, kernel, simd, top_k, within

if TYPE_CHECKING:
    from embits.search.gpu import DeviceIndex
    from embits.search.multi_index import MultiIndex
    from embits.search.pairs import duplicates, iter_pairs_within, pairs_within

__all__ = [
    "METRICS", "CosineResult", "DeviceIndex", "DistanceResult", "GroupsResult",
    "Kernel", "Metric", "MultiIndex", "PairsResult", "ScoreResult", "SearchResult", "Selection",
    "WithinResult", "WithinScoreResult", "asymmetric_top_k", "duplicates", "iter_pairs_within",
    "kernel", "pairs_within", "select", "simd", "top_k", "within",
]  # fmt: skip

# Most programs use none of these: their modules are imported at the first use of a name.
_PAIRS = dict.fromkeys(("duplicates", "iter_pairs_within", "pairs_within"), "embits.search.pairs")
_INDEXES = {"DeviceIndex": "embits.search.gpu", "MultiIndex": "embits.search.multi_index"}
__getattr__ = lazy_names(__name__, _PAIRS | _INDEXES)


def __dir__() -> list[str]:
    return sorted(__all__)
