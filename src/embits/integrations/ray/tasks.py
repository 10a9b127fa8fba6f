"""Plain Ray tasks, a few at a time, whose results are given as they finish.

Ray Data starts one task at a time for the first second or two, and leaves a worker idle for one or
two tenths of a second between tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import ray

_STOP_SECONDS = 30  # how long to wait for running tasks
_QUEUED_PER_CPU = 4  # tasks; a cluster that grows on demand must see waiting tasks


def run_tasks(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], workers: int | None
) -> Generator[Any]:
    """Call a function in workers. A task whose worker was lost is repeated.

    Args:
        function: What each task calls.
        calls: The arguments of each task; they are taken as workers become free.
        workers: Concurrent tasks; None is one per processor.

    Yields:
        The result of each task, in the order in which they finish.
    """
    task = ray.remote(num_cpus=1, max_retries=-1)(function)
    most = workers or _QUEUED_PER_CPU * n_processors(None)
    running: list[Any] = []
    try:
        for call in calls:
            running.append(task.remote(*call))
            if len(running) >= most:
                yield _finish_one(running)
        while running:
            yield _finish_one(running)
    except BaseException:
        # The tasks are few and short, and would go on writing to a folder that is removed.
        # Canceling them can abort this process (Ray 2.60, task_manager.cc), so wait for them.
        if running:
            ray.wait(running, num_returns=len(running), timeout=_STOP_SECONDS)
        raise


def n_processors(workers: int | None) -> int:
    """Concurrent tasks of a job: `workers`, or the processors of the cluster."""
    if not ray.is_initialized():
        ray.init()
    return workers or max(1, int(ray.cluster_resources().get("CPU", 1)))


def _finish_one(running: list[Any]) -> Any:
    """Wait for one task, take it from the list, and return its result."""
    (done,), running[:] = ray.wait(running)
    return ray.get(done)
