"""Plain Ray tasks, a few at a time, the errors of workers, and files of results.

Ray Data starts one task at a time for the first second or two, and leaves a worker idle for one or
two tenths of a second between tasks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import lru_cache
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import ray
from pyarrow import fs
from ray.exceptions import RayError, RayTaskError

from embits.errors import ClusterError, EmbitsError, InputError
from embits.file.overwrite import OVERWRITE, check_target
from embits.file.parquet_codes import is_address, locate
from embits.integrations import Facts

_STOP_SECONDS = 30  # how long to wait for running tasks
_QUEUED_PER_CPU = 4  # tasks; a cluster that grows on demand must see waiting tasks

shared = lru_cache(maxsize=1)(ray.get)  # a coder that `ray.put` shared: once in each worker


def run_tasks(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], workers: int | None
) -> Generator[tuple[int, Any]]:
    """Call a function in workers. A task whose worker was lost is repeated.

    Gives the number of each task and its result, as they finish. The arguments of a task are taken
    when a worker is free.
    """
    task = ray.remote(num_cpus=1, max_retries=-1)(function)
    most = workers or _QUEUED_PER_CPU * n_processors(None)
    running: dict[Any, int] = {}

    def finish_one() -> tuple[int, Any]:
        (done,), _ = ray.wait(list(running))
        return running.pop(done), ray.get(done)

    try:
        for number, call in enumerate(calls):
            running[task.remote(*call)] = number
            if len(running) >= most:
                yield finish_one()
        while running:
            yield finish_one()
    except BaseException:
        # The tasks are few and short, and would go on writing to a folder that is removed.
        # Canceling them can abort this process (Ray 2.60, task_manager.cc), so wait for them.
        if running:
            ray.wait(list(running), num_returns=len(running), timeout=_STOP_SECONDS)
        raise


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


class ResultFile:
    """A Parquet file to write, local or in an object store; it appears when it is complete."""

    def __init__(self, target: str | os.PathLike[str], overwrite: bool) -> None:
        self._target = os.fspath(target)
        self._files, self._path = locate(target)
        if not is_address(target):
            check_target(target, overwrite=overwrite)
        elif self._files.get_file_info(self._path).type != fs.FileType.NotFound and not overwrite:
            raise InputError(f"{target} exists: choose another output, or {OVERWRITE}")

    def write(self, tables: Iterable[dict[str, Any]]) -> Facts:
        """Write tables, at least one; returns target, rows and bytes."""
        folder, _, name = self._path.rpartition("/")
        temporary = f"{folder}/.{name}.{uuid4().hex[:12]}.tmp"
        rows, writer = 0, None
        try:
            with contextlib.ExitStack() as opened:
                for table in map(pa.table, tables):
                    if writer is None:
                        writer = pq.ParquetWriter(temporary, table.schema, filesystem=self._files)
                        opened.enter_context(writer)
                    writer.write_table(table.cast(writer.schema))
                    rows += table.num_rows
            self._files.move(temporary, self._path)
        except BaseException:  # also Ctrl-C: leave nothing half-written
            with contextlib.suppress(OSError):
                self._files.delete_file(temporary)
            raise
        size = self._files.get_file_info(self._path).size
        return {"target": self._target, "rows": rows, "bytes": size}
