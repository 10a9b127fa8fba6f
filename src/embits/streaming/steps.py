"""The steps of a job on a file read in blocks: fit a coder, encode all rows, write a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.coders import Coder, draw_rows
from embits.errors import EmbitsError, InputError, ReadWarning, TrainingError
from embits.file import store
from embits.file.contents import read_coder, to_contents, write_coder
from embits.file.header import WRITER
from embits.readers.blocks import Blocks
from embits.streaming.checkpoint import Checkpoint, Stage
from embits.streaming.input import Input
from embits.streaming.passes import (
    Scan,
    copy_sample,
    encode_file,
    open_sample,
    read_vocabulary,
)

StepProgress: TypeAlias = Callable[[str, int, int], None]  # the step's name, done, total


class Steps:
    """A caller's progress callback, and the name of the step that is under way."""

    def __init__(self, progress: StepProgress | None) -> None:
        self._progress = progress
        self.name = "checking"

    def __call__(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(self.name, done, total)

    def start(self, name: str) -> Steps:
        """Begin another step; the object itself is its callback."""
        self.name = name
        self(0, 1)  # the total is not known yet
        return self


@contextmanager
def checkpoint_beside(target: Path, source: Input, job: dict[str, Any]) -> Iterator[Checkpoint]:
    """The folder of a job: removed when it ends or its input is wrong, kept when it is stopped."""
    target = target.resolve()
    job = job | {"input": source.identity(), "numpy": np.__version__, "writer": WRITER}
    checkpoint = Checkpoint(target.with_name(f".{target.name}.partial"), job)
    hint = f"progress is kept in {checkpoint.folder}: run the same command again to resume"
    try:
        yield checkpoint
        if source.identity() != job["input"]:
            raise InputError(f"{source.path}: it has changed while it was read")
        checkpoint.remove()
    except EmbitsError:
        checkpoint.remove()
        raise
    except KeyboardInterrupt:
        checkpoint.close()
        raise KeyboardInterrupt(f"interrupted; {hint}") from None
    except BaseException:
        checkpoint.close()
        warnings.warn(hint, ReadWarning, stacklevel=4)
        raise


def fit_once(
    checkpoint: Checkpoint,
    blocks: Blocks,
    scan: Scan,
    coder: Coder,
    sample: int | None,
    steps: Steps,
) -> Coder:
    """The coder, fitted now, or before the job was stopped."""
    path = checkpoint.folder / "coder"
    with Stage(checkpoint, "fit", ()) as stage:
        if stage.done:
            return read_coder(path, verify=True)
        fit(checkpoint, blocks, scan, coder, sample, steps)
        write_coder(path, coder)
        stage.save(None, done=True)
        checkpoint.record("sample", {"done": True, "lengths": {}})
        (checkpoint.folder / "floats").unlink()
    return coder


def fit(
    checkpoint: Checkpoint,
    blocks: Blocks,
    scan: Scan,
    coder: Coder,
    sample: int | None,
    steps: Steps,
) -> None:
    """Fit the coder on the rows that it looks at, and on no others."""
    drawn = draw_rows(scan.n_rows, sample, coder)
    n = scan.n_rows if drawn is None else len(drawn)
    looked_at = _checked(coder.rows_for_fit(n, blocks.dims), n, coder)
    wanted = drawn if looked_at is None or drawn is None else drawn[looked_at]
    steps.start("sampling")
    floats = copy_sample(checkpoint, blocks, scan, looked_at if drawn is None else wanted)
    steps.start("fitting")
    coder.fit(open_sample(floats, n, blocks.dims, looked_at), progress=steps)


def _checked(rows: Any, n: int, coder: Coder) -> NDArray[np.int64] | None:
    """What `rows_for_fit` returned, if it is what its contract says."""
    if rows is None:
        return None
    rows = np.asarray(rows)
    ascending = rows.ndim == 1 and rows.dtype.kind in "iu" and bool((np.diff(rows) > 0).all())
    if not ascending or (len(rows) and not 0 <= rows[0] <= rows[-1] < n):
        raise TrainingError(
            f"rows_for_fit of {type(coder).__name__} must return row numbers from 0 to {n - 1}, "
            "ascending and each once, or None"
        )
    checked: NDArray[np.int64] = rows.astype(np.int64)
    return checked


def write_file(
    checkpoint: Checkpoint, blocks: Blocks, target: Path, scan: Scan, coder: Coder, steps: Steps
) -> None:
    """Encode all rows, and write the file."""
    steps.start("encoding")
    codes = encode_file(checkpoint, blocks, scan, coder)
    nothing = np.empty((0, coder.n_bytes_), np.uint8)
    contents = to_contents(read_vocabulary(checkpoint, scan.n_rows), nothing, coder, None)
    store.write(target, contents, store.CodesOnDisk(codes, (scan.n_rows, coder.n_bytes_)))
