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
    tick = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, *rest = map(int, Path("/proc/stat").read_text().split()[1:9])
    parents, taken = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            process = int(entry.parent.name)
            # Its own time, and that of children that have ended.
            parents[process], taken[process] = int(fields[1]), sum(map(int, fields[11:15]))
    own = 0
    for process, ticks in taken.items():
        above = process
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        own += ticks if above else 0
    return (user + nice + system + sum(rest)) / tick, own / tick


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
