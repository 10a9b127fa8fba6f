"""Progress on standard error: bars and a status line on a terminal, a few log lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from embits.arrays import Progress
from embits.cli.output import printable

if TYPE_CHECKING:
    from embits.jobs.stream import StepProgress

LOG_AFTER = 2.0  # seconds


@contextlib.contextmanager
def progress_bar(title: str, *, quiet: bool = False) -> Iterator[Progress | None]:
    """A progress bar as a callback (done, total); None when stderr is not a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description:<9}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def steps_progress(title: str, *, quiet: bool = False) -> Iterator[StepProgress | None]:
    """The progress of a job of several named steps, as a callback (step, done, total).

    On a terminal each step has a bar. Elsewhere, such as in a log file, a job that takes longer
    than `LOG_AFTER` seconds prints its title, and a line for each step.
    """
    bars: dict[str, Progress | None] = {}
    begin, held = time.monotonic(), [title]

    def report(step: str, done: int, total: int) -> None:
        seconds = time.monotonic() - begin
        if step not in bars:
            opened.close()  # the bar of the previous step
            bars[step] = opened.enter_context(progress_bar(step))
            held.append(f"{step} (after {seconds:.0f} s)")
        if (bar := bars[step]) is not None:
            bar(done, total)
        elif seconds >= LOG_AFTER:
            for line in held:
                print(f"embits: {printable(line)}", file=sys.stderr, flush=True)
            held.clear()

    with contextlib.ExitStack() as opened:
        yield None if quiet else report


@contextlib.contextmanager
def status_line(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A status line on a terminal, as the callback that sets its text."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text.replace("[", "\\["))
