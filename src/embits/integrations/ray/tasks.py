"""Plain Ray tasks, a few at a time, the errors of workers, and the Parquet files they write.

Ray Data would leave workers idle between tasks, and for the first second or two.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow.parquet as pq
import ray
from ray.exceptions import RayError, RayTaskError

from embits.errors import ClusterError, EmbitsError

Calls: TypeAlias = Iterable[tuple[Any, ...]]  # arguments of each

_STOP_SECONDS = 30  # how long to wait for running tasks
_QUEUED_PER_CPU = 4  # tasks; a cluster that grows on demand must see waiting tasks

shared = lru_cache(maxsize=1)(ray.get)  # a coder that `ray.put` shared: once in each worker


def run_tasks(
    function: Callable[..., Any], calls: Calls, workers: int | None
) -> Generator[tuple[int, Any]]:
    """Call a function in workers; gives the number of each task and its result, as they finish.

    A task whose worker was lost is repeated. Its arguments are taken when a worker is free.
    """
    task = ray.remote(num_cpus=1, max_retries=-1)(function)
    most = workers or _QUEUED_PER_CPU * n_processors(None)
    running: dict[Any, int] = {}
    waiting = enumerate(calls)
    try:
        while True:
            for number, call in islice(waiting, most - len(running)):
                running[task.remote(*call)] = number
            if not running:
                return
            (done,), _ = ray.wait(list(running))
            yield running.pop(done), ray.get(done)
    except BaseException:
        # The tasks are few and short, and would go on writing to a folder that is removed.
        # Canceling them can abort this process (Ray 2.60, task_manager.cc), so wait for them.
        if running:
            ray.wait(list(running), num_returns=len(running), timeout=_STOP_SECONDS)
        raise


def gathered(
    function: Callable[..., Any], calls: Calls, workers: int | None, report: Any = None
) -> list[Any]:
    """What workers return for each call, in order; `report` is told how many calls are done."""
    results: dict[int, Any] = {}
    with contextlib.closing(run_tasks(function, calls, workers)) as found:
        for number, result in found:
            results[number] = result
            if report is not None:
                report(len(results))
    return [results[number] for number in range(len(results))]


def n_processors(workers: int | None) -> int:
    """Concurrent tasks of a job: `workers`, or the processors of the cluster."""
    if not ray.is_initialized():
        ray.init()
    return workers or max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Raise the error that a worker raised, and Ray's own errors as ClusterError."""
    try:
        yield
    except RayError as error:
        cause: Any = error
        while isinstance(cause, RayTaskError):
            cause = cause.cause
        if isinstance(cause, EmbitsError):
            raise cause from None
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ClusterError(f"the Ray job failed: {lines[-1].strip()}") from error


def write_parquet(files: Any, path: str, tables: Iterable[Any], metadata: Any = None) -> int:
    """Write tables to a new file, none without a table, and return the number of rows."""
    rows, tables = 0, iter(tables)
    if (first := next(tables, None)) is None:
        return 0
    schema, options = first.schema.with_metadata(metadata), {"write_page_checksum": True}
    with (
        new_file(files, path) as temporary,
        pq.ParquetWriter(temporary, schema, filesystem=files, **options) as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table.cast(schema))
            rows += table.num_rows
    return rows


@contextlib.contextmanager
def new_file(files: Any, path: str) -> Iterator[str]:
    """A name to write to. The file becomes `path` when it is complete and on the disk."""
    folder, _, name = path.rpartition("/")
    temporary = f"{folder}/.{name}.{uuid4().hex[:12]}.tmp"
    try:
        yield temporary
        if files.type_name == "local":
            with Path(temporary).open("rb") as file:
                os.fsync(file.fileno())
        files.move(temporary, path)
    except BaseException:  # also Ctrl-C: leave nothing half-written
        with contextlib.suppress(OSError):
            files.delete_file(temporary)
        raise
