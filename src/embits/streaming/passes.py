"""The passes over a file of vectors: scan its words, copy the rows to fit on, encode all rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import BLOCK_ROWS
from embits.coders import Coder
from embits.coders.lazy import LazyRows
from embits.errors import ReadError, TrainingError
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary
from embits.readers.blocks import Blocks, Findings, Position
from embits.streaming.checkpoint import Checkpoint, Stage, append

Rows: TypeAlias = NDArray[np.int64]
_NONE: Rows = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Scan:
    """Which rows of a file are kept.

    Attributes:
        n_rows: How many.
        dropped: Of the good rows, those that repeat a word and are left out, ascending.
    """

    n_rows: int
    dropped: Rows = field(default_factory=lambda: _NONE)


# -- which rows there are --------------------------------------------------------------------------


def scan_words(checkpoint: Checkpoint, blocks: Blocks) -> Scan:
    """Read a file once for its words, its bad rows and its repeats.

    Nothing is read if the rows have no words and their number is known.
    """
    if not blocks.named and blocks.n_rows is not None:
        return Scan(blocks.n_rows)
    with Stage(checkpoint, "scan", ("words", "ends", "places")) as stage:
        if not stage.done:
            _collect(stage, blocks)
    _index_words(checkpoint, blocks)
    facts = checkpoint.stage("index")["facts"]
    _findings(checkpoint.stage("scan")["facts"]).warn(blocks.source)
    if facts["repeats"]:
        blocks.report_repeats(*facts["repeats"])
    dropped = np.load(checkpoint.folder / "dropped.npy", allow_pickle=False)
    return Scan(facts["n_rows"], dropped)


def _collect(stage: Stage, blocks: Blocks) -> None:
    end = Position(*stage.mark) if stage.mark else blocks.start()
    if stage.facts:
        blocks.findings = _findings(stage.facts)
    text, ends, places = (stage.files[name] for name in ("words", "ends", "places"))
    for block in blocks.read(end, words=blocks.named):
        words = block.words
        if not blocks.named:  # ids, if bad rows are left out: the rows after them move up
            words = list(map(str, block.places.tolist()))
        if words is not None:
            encoded = [word.encode() for word in words]
            sizes = np.fromiter(map(len, encoded), np.uint64, len(encoded))
            append(ends, np.uint64(text.tell()) + np.cumsum(sizes, dtype=np.uint64))
            text.write(b"".join(encoded))
            append(places, block.places)
        end = block.end
        stage.save_now_and_then(end, asdict(blocks.findings))
    stage.save(end, asdict(blocks.findings), done=True)


def _index_words(checkpoint: Checkpoint, blocks: Blocks) -> None:
    """Find the repeats, and write the index of the other words into the folder."""
    with Stage(checkpoint, "index", ("vocabulary.npz", "dropped.npy")) as stage:
        if stage.done:
            return
        folder = checkpoint.folder
        n_rows = Position(*checkpoint.stage("scan")["mark"]).rows
        repeated: list[int] = []
        facts: dict[str, Any] = {"n_rows": n_rows, "repeats": None}
        if blocks.named or checkpoint.stage("scan")["facts"]["n_bad"]:
            text = np.fromfile(folder / "words", np.uint8)
            ends = np.fromfile(folder / "ends", np.uint64)
            words, repeated = Vocabulary.from_run(text, ends)
            if repeated:
                place = np.fromfile(folder / "places", np.int64, 1, offset=8 * repeated[0])[0]
                where, word = f"{blocks.unit} {place}", words[repeated[0]]
                facts = {
                    "n_rows": n_rows - len(repeated),
                    "repeats": (len(repeated), where, word),
                }
                words, _ = Vocabulary.from_run(*_without(text, ends, repeated))
            file = stage.files["vocabulary.npz"]
            np.savez(file, text=words.text, ends=words.ends, order=words.order)
        np.save(stage.files["dropped.npy"], np.array(repeated, np.int64))
        stage.save(None, facts, done=True)


def _without(
    text: NDArray[np.uint8], ends: NDArray[np.uint64], rows: list[int]
) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
    sizes = np.diff(ends, prepend=np.uint64(0))
    kept = np.ones(len(ends), bool)
    kept[rows] = False
    return text[np.repeat(kept, sizes.astype(np.int64))], np.cumsum(sizes[kept], dtype=np.uint64)


def _findings(facts: dict[str, object]) -> Findings:
    found = Findings(**facts)  # type: ignore[arg-type]
    found.bad, found.escaped = (*found.bad,), (*found.escaped,)  # JSON has lists for tuples
    return found


def read_vocabulary(checkpoint: Checkpoint, n_rows: int) -> Vocabulary | RowNumbers:
    """The words of the rows kept, or their numbers."""
    path = checkpoint.folder / "vocabulary.npz"
    if not path.exists() or path.stat().st_size == 0:
        return RowNumbers(n_rows)
    with np.load(path, allow_pickle=False) as arrays:
        return Vocabulary(arrays["text"], arrays["ends"], arrays["order"])


# -- rows to fit on --------------------------------------------------------------------------------


def copy_sample(checkpoint: Checkpoint, blocks: Blocks, scan: Scan, wanted: Rows | None) -> Path:
    """Copy the floats of the wanted rows (None: all) into a file, in their order."""
    with Stage(checkpoint, "sample", ("floats",)) as stage:
        if not stage.done:
            end = Position(*stage.mark) if stage.mark else blocks.start()
            for part in _kept(blocks, scan, end):
                chosen = part.matrix
                if wanted is not None:
                    first, stop = np.searchsorted(
                        wanted, (part.first, part.first + len(part.matrix))
                    )
                    chosen = chosen[wanted[first:stop] - part.first]
                append(stage.files["floats"], chosen)
                end = part.end
                stage.save_now_and_then(end)
            stage.save(end, done=True)
    return checkpoint.folder / "floats"


def open_sample(path: Path, n_rows: int, dims: int, held: Rows | None) -> LazyRows:
    """A matrix of which a file of floats holds the `held` rows (None: all), one after another."""

    def take(rows: Rows) -> NDArray[np.float32]:
        at = rows if held is None else _places(held, rows)
        out = np.empty((len(rows), dims), np.float32)
        breaks = np.flatnonzero(np.diff(at) != 1) + 1
        starts, stops = np.r_[0, breaks], np.r_[breaks, len(at)]
        with path.open("rb", buffering=0) as file:
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
                if start == stop:
                    continue
                file.seek(4 * dims * int(at[start]))
                if file.readinto(out[start:stop].data.cast("B")) != 4 * dims * (stop - start):
                    raise ReadError(f"{path}: cut short while it was read")
        return out

    return LazyRows(take, n_rows, dims)


def _places(held: Rows, rows: Rows) -> Rows:
    """Where rows lie in a file that holds the `held` rows, ascending.

    Raises:
        TrainingError: A row is not among them.
    """
    places = np.searchsorted(held, rows)
    there = places < len(held)
    there[there] = held[places[there]] == rows[there]
    if not there.all():
        raise TrainingError(
            f"the coder's fit reads row {rows[~there][0]}, which its rows_for_fit leaves out"
        )
    return places


# -- codes of all rows -----------------------------------------------------------------------------


def encode_file(checkpoint: Checkpoint, blocks: Blocks, scan: Scan, coder: Coder) -> Path:
    """Write the codes of all rows that are kept into a file, in their order.

    Rows are encoded in the blocks of `Coder.encode`: a matrix product may round differently in
    another block.
    """
    path = checkpoint.folder / "codes"
    with Stage(checkpoint, "encode", ("codes",)) as stage:
        if not stage.done:
            position, skip = stage.mark or (blocks.start(), 0)
            file = stage.files["codes"]
            for rows, mark in _in_chunks(blocks, scan, Position(*position), skip):
                append(file, coder.encode(rows))
                stage.save_now_and_then(mark)
            if file.tell() != scan.n_rows * coder.n_bytes_:
                raise ReadError(f"{blocks.source.path}: it has changed while it was read")
            stage.save(None, done=True)
    return path


def _in_chunks(
    blocks: Blocks, scan: Scan, start: Position, skip: int
) -> Iterator[tuple[NDArray[np.float32], tuple[Position, int]]]:
    """Kept rows from the `skip`-th after `start` on, BLOCK_ROWS at a time.

    With each chunk comes where to resume after it: a start, and how many rows to skip from there.
    """
    chunk = np.empty((BLOCK_ROWS, blocks.dims), np.float32)
    filled = 0
    end = start
    for part in _kept(blocks, scan, start):
        end = part.end
        used = min(skip, len(part.matrix))
        skip -= used
        while used < len(part.matrix):
            size = min(BLOCK_ROWS - filled, len(part.matrix) - used)
            chunk[filled : filled + size] = part.matrix[used : used + size]
            filled, used = filled + size, used + size
            if filled == BLOCK_ROWS:
                yield chunk, (part.start, used)
                filled = 0
    if filled:
        yield chunk[:filled], (end, 0)


class _Part(NamedTuple):
    """The kept rows of a block, and the number of the first among all that are kept."""

    start: Position
    end: Position
    first: int
    matrix: NDArray[np.float32]


def _kept(blocks: Blocks, scan: Scan, start: Position) -> Iterator[_Part]:
    for block in blocks.read(start):
        first = block.start.rows
        before, after = np.searchsorted(scan.dropped, (first, block.end.rows)).tolist()
        matrix = block.matrix
        if after > before:
            matrix = np.delete(matrix, scan.dropped[before:after] - first, axis=0)
        yield _Part(block.start, block.end, first - before, matrix)
