"""Plans: how a search is answered. `BinaryVectors` checks the arguments once, `run` executes.

A plan scans the codes, all of them or those of near cells, by Hamming distance or by weights of the
bits. Its stages then order the best rows of each query again, by a finer score each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from embits.arrays import LazyRows
from embits.checks import choice, number, wanted_rows, whole
from embits.errors import InputError, warn_caller
from embits.search.cells import Probes
from embits.search.filters import Filters
from embits.search.metrics import METRICS, Metric, Prepared
from embits.search.rescoring import rescore_bits, rescore_decoded, rescore_floats
from embits.search.results import ScoreResult, SearchResult, WithinResult, WithinScoreResult
from embits.search.scan import prepared_top_k, prepared_within
from embits.search.stored import StoredCodes

if TYPE_CHECKING:
    from embits.coders import Coder
    from embits.search.gpu import DeviceIndex

FITTED_K = 10  # neighbors that a coder chooses the rows of its second look by
_ROWS_PER_NEIGHBOR = 4  # that are ordered by floats, unless a number is given
_BITS_PER_NEIGHBOR, _LEAST_BITS = 10, 100  # rows that a GPU finds by Hamming distance for a score

Vectors: TypeAlias = NDArray[Any] | LazyRows
Finer: TypeAlias = Literal["kept", "decoded", "bits"]


@dataclass(frozen=True, eq=False)
class Rescore:
    """`rescore=Rescore(n, by)`: order the n best rows of a scan again, by a finer score.

    Args:
        n: Rows of each query; None is 4 times k.
        by: "kept" takes the vectors that are kept beside the codes, "decoded" the vectors rebuilt
            from the codes, "bits" the score of the metric after a search by Hamming distance. Or
            the original vectors: a matrix row by row, the path of its `.npy` (mapped), or
            `WordVectors`, which are looked up by id and stay right when a collection changes.
            None is "kept" if vectors are kept, else "bits".

    Example:
        >>> import numpy as np, embits
        >>> X = np.random.default_rng(0).normal(size=(100, 16))
        >>> bits = embits.binarize(X, n_bits=64, method="lsh")
        >>> cosines, rows = bits.search(X[7], k=3, rescore=embits.Rescore(30, by=X))
        >>> int(rows[0]), round(float(cosines[0]), 3)
        (7, 1.0)
    """

    n: int | None = None
    by: Finer | Any = None

    def __post_init__(self) -> None:
        if self.n is not None:
            whole("rescore", self.n)
        if isinstance(self.by, str) and "." not in self.by:
            choice("by", self.by, ("kept", "decoded", "bits"))


class Stage(NamedTuple):
    """A step after the scan: orders `size` rows of each query by the bits, the decoded vectors, or
    other vectors, which are read by row."""

    size: int
    by: Literal["bits", "decoded"] | Vectors


class Machine(NamedTuple):
    """What a search runs on."""

    device: str = "cpu"
    threads: int | None = None


ONE_MACHINE = Machine()


class Searched(Protocol):
    """The snapshot that a plan is run on."""

    @property
    def coder(self) -> Coder: ...
    @property
    def codes(self) -> StoredCodes: ...
    @property
    def stored_lengths(self) -> NDArray[np.float32]: ...
    def on_device(self, device: str) -> DeviceIndex: ...


@dataclass(frozen=True, eq=False)
class Plan:
    """How to answer queries: checked, small, picklable.

    Attributes:
        metric: Compares queries with codes.
        k: Rows for each query.
        selection: The rows that may be found.
        recall: The share of the neighbors to find by reading cells, or the cells to read; None is
            all rows.
        stages: What orders the best rows again, in turn.
        bound: In place of k, the largest distance or the lowest score.
        max_results: Rows at which a search with a bound stops with an error.
    """

    metric: Metric
    k: int = 0
    selection: Filters = None
    recall: float | Probes | None = None
    stages: tuple[Stage, ...] = ()
    bound: float | None = None
    max_results: int | None = None

    @property
    def scan_metric(self) -> Metric:
        """The metric of the scan: Hamming distance if its rows are ordered by their bits."""
        by_bits = bool(self.stages) and isinstance(self.stages[0].by, str)
        return METRICS["hamming"] if by_bits and self.stages[0].by == "bits" else self.metric

    def rows_after(self, done: int) -> int:
        """Rows of each query that the scan (0) or so many stages return."""
        return max([self.k, *(stage.size for stage in self.stages[done:])])


def run(
    snapshot: Searched, plan: Plan, queries: NDArray[Any], machine: Machine = ONE_MACHINE
) -> SearchResult:
    """Answer queries, floats or codes of shape (q, ...) or one. The plan was checked."""
    result = scan(snapshot, plan, plan.scan_metric.prepare(snapshot.coder, queries), machine)
    rows_read = result.rows_read
    for done, stage in enumerate(plan.stages, start=1):
        k = plan.rows_after(done)
        result = _ordered(snapshot, plan.metric, stage.by, queries, result.rows, k)
    result.rows_read = rows_read
    return result


def scan(
    snapshot: Searched, plan: Plan, prepared: Prepared, machine: Machine = ONE_MACHINE
) -> SearchResult:
    """The best rows of the scan of a plan, for queries that its metric prepared."""
    k = plan.rows_after(0)
    if machine.device != "cpu":
        if plan.recall is not None:
            raise InputError("a GPU reads all rows: leave recall out")
        index = snapshot.on_device(machine.device)
        return index.top_k(prepared.queries, k, where=plan.selection)
    lengths = snapshot.stored_lengths if plan.scan_metric.needs_lengths else None
    return prepared_top_k(
        snapshot.codes, prepared, k, machine.threads,
        where=plan.selection, recall=plan.recall, lengths=lengths,
    )  # fmt: skip


def run_within(
    snapshot: Searched, plan: Plan, queries: NDArray[Any], machine: Machine = ONE_MACHINE
) -> WithinResult | WithinScoreResult:
    """All rows up to the bound of a plan, for several queries."""
    lengths = snapshot.stored_lengths if plan.metric.needs_lengths else None
    prepared, bound = plan.metric.prepare(snapshot.coder, queries), cast("float", plan.bound)
    return prepared_within(
        snapshot.codes, prepared, bound, machine.threads,
        where=plan.selection, max_results=plan.max_results, lengths=lengths,
    )  # fmt: skip


def _ordered(
    snapshot: Searched, metric: Metric, by: Any, queries: NDArray[Any], shortlist: Any, k: int
) -> SearchResult:
    if not isinstance(by, str):
        return rescore_floats(by, queries, shortlist, k, dot=metric.needs_lengths)
    coder, codes = snapshot.coder, snapshot.codes
    if by == "decoded":
        return rescore_decoded(coder, codes, metric, queries, shortlist, k)
    weights, offsets = metric.prepare(coder, queries)
    best = rescore_bits(codes, weights, shortlist, k)
    return ScoreResult(best.scores + offsets, best.rows)


def metric_for(metric: Any, queries: NDArray[Any]) -> Metric:
    """The metric of a name; None compares codes by Hamming distance, and floats as floats."""
    if metric is None:
        return METRICS["hamming" if queries.dtype == np.uint8 else "asymmetric"]
    return METRICS[choice("metric", metric, list(METRICS))]


def wanted_recall(recall: Any) -> float | Probes | None:
    """`recall` of a search, checked."""
    if recall is None or isinstance(recall, Probes):
        return recall
    return number("recall", recall, 0, 1)


def second_look_size(coder: Coder, metric: Metric, k: int) -> int:
    """Rows of each query that are ordered by their decoded vectors, as the coder was fitted."""
    size = math.ceil(coder.second_look * max(k / FITTED_K, 1)) if metric.is_cosine else 0
    return max(size, k) if size else 0


def plan_stages(
    coder: Coder,
    metric: Metric,
    k: int,
    n: int,
    rescore: int | Rescore | Iterable[Rescore] | None,
    vectors_by: Callable[[Any], Vectors | None],
    *,
    on_gpu: bool = False,
) -> tuple[Stage, ...]:
    """The stages of a search for k of n rows.

    `vectors_by` gives the vectors of `Rescore.by`, and for "kept" those that are kept, or None.
    """
    if rescore is None or isinstance(rescore, Rescore):
        wanted = [rescore] if isinstance(rescore, Rescore) else []
    elif isinstance(rescore, tuple | list) and all(isinstance(each, Rescore) for each in rescore):
        wanted = list(rescore)
    else:
        wanted = [Rescore(whole("rescore", rescore))]
        if rescore == 0:
            return ()
    stages = {}
    if look := min(second_look_size(coder, metric, k), n):
        stages["decoded"] = Stage(look, "decoded")
    if on_gpu and not metric.is_distance:
        if metric.needs_lengths:
            raise InputError(f"a GPU does not search by metric={metric.name!r}")
        size = max(_BITS_PER_NEIGHBOR * k, _LEAST_BITS)
        stages["bits"] = Stage(min(size, n), "bits")
    for each in wanted:
        stage = _stage(metric, k, n, each, vectors_by)
        stages[stage.by if isinstance(stage.by, str) else "vectors"] = stage
    in_turn = [stages[by] for by in ("bits", "decoded", "vectors") if by in stages]
    return tuple(stage for stage in in_turn if stage.size)


def _stage(
    metric: Metric, k: int, n: int, rescore: Rescore, vectors_by: Callable[[Any], Vectors | None]
) -> Stage:
    by, size = rescore.by, _ROWS_PER_NEIGHBOR * k if rescore.n is None else rescore.n
    size = min(max(k, size), n) if size else 0
    is_name = isinstance(by, str) and by in ("decoded", "bits")
    vectors = None if is_name else vectors_by("kept" if by is None else by)
    if vectors is not None:
        return Stage(size, vectors)
    if isinstance(by, str) and by == "kept":
        raise InputError("no vectors are kept beside the codes: rescore by other vectors")
    if size and not metric.is_cosine:
        needs = 'float queries, metric="decoded", kept vectors, or Rescore(n, by=vectors)'
        raise InputError(f"rescore needs a finer score than metric={metric.name!r}: {needs}")
    return Stage(size, "decoded" if by == "decoded" else "bits")


# -- keywords of earlier versions ------------------------------------------------------------------

_OLD = {
    "oversample": "rescore=N",
    "floats": "rescore=Rescore(n, by=floats)",
    "second_look": 'rescore=Rescore(n, by="decoded")',
    "probes": "recall=Probes(n)",
    "threads": "bits.on(threads=...)",
    "device": "bits.on(device=...)",
    "exclude": "where=bits.select(exclude=...)",
    "rows": "where=bits.select(rows=...)",
}
_F = TypeVar("_F", bound=Callable[..., Any])


def forwards_old_keywords(search: _F) -> _F:
    """Let a `search` take the keywords that it had until 0.3, with a warning; until 0.6."""

    @wraps(search)
    def call(self: Any, queries: Any, k: Any = 10, **options: Any) -> Any:
        old = {name: options.pop(name) for name in _OLD if name in options}
        if not old:
            return search(self, queries, k, **options)
        if old.get("oversample") is not None:
            options["rescore"] = _shortlist_size(self, k, options, old.pop("oversample"))
            old["oversample"] = None
        hints = {**_OLD, "oversample": f"here rescore={options.get('rescore')}"}
        hint = "; ".join(f"{name}: {hints[name]}" for name in old)
        warn_caller(f"search has new keywords in place of old ones: {hint}", DeprecationWarning)
        bits = self.on(old.get("device", "cpu"), old.get("threads"))
        return search(bits, queries, k, **_forwarded(bits, queries, k, options, old))

    return cast("_F", call)


def _shortlist_size(bits: Any, k: Any, options: dict[str, Any], oversample: Any) -> int:
    if options.get("rescore") is not None:
        raise InputError("rescore and oversample are given: rescore alone is enough")
    times, n = number("oversample", oversample, least=1), len(bits)
    return min(math.ceil(wanted_rows(k, n) * min(times, n)), n)


def _forwarded(
    bits: Any, queries: Any, k: Any, options: dict[str, Any], old: dict[str, Any]
) -> dict[str, Any]:
    """The keywords of `search` that stand for `options` and some of an earlier version."""
    rescore, stages = options.pop("rescore", None), list[Rescore]()
    if old.get("second_look") is not None:
        stages.append(Rescore(whole("second_look", old["second_look"]), "decoded"))
    if rescore is not None or old.get("floats") is not None:
        stages.append(Rescore(rescore, old.get("floats")))
    if old.get("probes") is not None:
        if options.get("recall") is not None:
            raise InputError("recall and probes are given, expected one of them")
        options["recall"] = Probes(old["probes"])
    if old.get("exclude") is not None or old.get("rows") is not None:
        where = options.get("where"), old.get("exclude"), old.get("rows")
        options["where"] = bits.selections(queries, *where)
    return {**options, "rescore": stages or None}
