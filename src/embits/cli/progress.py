"""Progress on standard error: bars and a status line on a terminal, nothing elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from embits.arrays import Progress


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
def steps_bar(*, quiet: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
    """A progress bar for each named step of a job, as a callback (step, done, total)."""
    with contextlib.ExitStack() as opened:
        shown: dict[str, Progress | None] = {}

        def report(step: str, done: int, total: int) -> None:
            if step not in shown:
                opened.close()  # the bar of the previous step
                shown[step] = opened.enter_context(progress_bar(step))
            if (bar := shown[step]) is not None:
                bar(done, total)

        yield None if quiet or not sys.stderr.isatty() else report


@contextlib.contextmanager
def status_line(*, quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """A status line on a terminal, as the callback that sets its text."""
    if quiet or not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(text.replace("[", "\\["))
