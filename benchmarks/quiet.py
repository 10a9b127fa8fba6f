"""Time of a piece of work, and what other programs took of the processors meanwhile."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def processor_seconds() -> tuple[float, float]:
    """Seconds of processor time that all programs have taken, and those of this one and its own."""
    if not Path("/proc/stat").exists():
        return 0.0, 0.0
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
    everything = user + nice + system + sum(rest)
    return everything / os.sysconf("SC_CLK_TCK"), seconds_of(os.getpid())


def seconds_of(root: int) -> float:
    """Seconds of processor time that a process and those it started have taken."""
    parents, taken = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            process = int(entry.parent.name)
            # Its own time, and that of children that have ended.
            parents[process], taken[process] = int(fields[1]), sum(map(int, fields[11:15]))
    total = 0
    for process, ticks in taken.items():
        above = process
        while above not in (0, root):
            above = parents.get(above, 0)
        total += ticks if above else 0
    return total / os.sysconf("SC_CLK_TCK")


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds of a piece of work, the share of the processors that others took, and its result."""
    everything, own = processor_seconds()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    everything, own = (
        after - before for after, before in zip(processor_seconds(), (everything, own), strict=True)
    )
    return seconds, (everything - own) / (seconds * (os.cpu_count() or 1)), result
