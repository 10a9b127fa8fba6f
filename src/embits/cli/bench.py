"""`embits bench`: the paper's top-K table on this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors, load
from embits.cli.common import (
    FILE,
    json_option,
    megabytes,
    print_json,
    printable,
    progress_bar,
    table,
)
from embits.cli.completing import BITS_FILE, FLOATS_FILE
from embits.errors import InputError
from embits.evaluation.tasks.top_k_table import (
    TOP,
    Contender,
    bit_contenders,
    float_contenders,
    measure,
)
from embits.jobs import binarize
from embits.readers import read_vectors
from embits.search import simd


@click.command()
@click.argument("files", type=BITS_FILE, nargs=-1, required=True, metavar="FILE...")
@click.option("--raw", type=FLOATS_FILE, help="The float vectors, to time them too.")
@click.option("--words", "words_file", type=FILE, help="Words of --raw, if it is a matrix.")
@click.option("--bits", default="64,128,256,512", help="Widths of the table.")
@click.option("--threads", type=click.IntRange(min=1), default=1, help="Threads of a search.")
@json_option
def command(
    files: tuple[Path, ...],
    raw: Path | None,
    words_file: Path | None,
    bits: str,
    threads: int,
    as_json: bool,
) -> None:
    """Time searching and loading: the paper's Table 3.

    Top 1, 10 and 50, with other programs beside embits. Each FILE gives the column of its width.
    Widths without a file are timed on codes of random hyperplanes over the same words (the time
    does not depend on the method). FAISS is timed where it is installed. NumPy's product takes as
    many threads as its BLAS is set to.

    \b
    embits bench glove.safetensors --raw glove.6B.300d.txt
    """
    opened = {path: load(path) for path in files}
    floats = read_vectors(raw, words=words_file).matrix if raw else None
    first = next(iter(opened.values()))
    if floats is None:
        floats = first.decode()
    contenders: list[Contender] = []
    with tempfile.TemporaryDirectory() as folder, progress_bar("timing", quiet=as_json):
        for path, binary in _columns(opened, _widths(bits), floats, Path(folder)):
            contenders += bit_contenders(path, binary, threads)
        unit = unit_rows(floats)
        contenders += float_contenders(raw, unit, threads)
        measure(contenders, len(first))
    facts = {"words": len(first), "dims": first.dims, "threads": threads, "simd": simd(),
             "times": [_as_dict(c) for c in contenders]}  # fmt: skip
    if as_json:
        print_json(facts)
        return
    what = f"of {raw.name}" if raw else "rebuilt from the bits"
    click.echo(f"{len(first):,} words; threads: {threads}; instruction set: {simd()}")
    click.echo(printable(f"Median milliseconds of one query; the column of floats is {what}"))
    _show(contenders, unit.nbytes)


def _widths(text: str) -> list[int]:
    try:
        widths = [int(width) for width in text.split(",")]
    except ValueError:
        widths = []
    if not widths or min(widths) < 1:
        raise click.BadParameter(f"{text!r} is not a list such as 64,128", param_hint="--bits")
    return widths


def _columns(
    opened: dict[Path, BinaryVectors], widths: list[int], floats: Any, folder: Path
) -> list[tuple[Path, BinaryVectors]]:
    columns = {bits.n_bits: (path, bits) for path, bits in opened.items()}
    n = len(floats)
    if any(len(bits) != n for bits in opened.values()):
        raise InputError("the files do not hold the same number of words; name one at a time")
    for width in widths:
        if width not in columns:
            path = folder / f"{width}.safetensors"
            binarize(floats, width, "lsh").save(path)
            columns[width] = path, load(path)
    return [columns[width] for width in sorted(columns)]


def _as_dict(contender: Contender) -> dict[str, Any]:
    times = {f"top_{k}_ms": round(ms, 4) for k, ms in contender.top_ms.items()}
    loading = None if contender.load_ms is None else round(contender.load_ms, 3)
    return {"name": contender.name, "bits": contender.bits, **times, "load_top_10_ms": loading}


def _show(contenders: list[Contender], float_bytes: int) -> None:
    widths = list(dict.fromkeys(c.bits for c in contenders))
    names = list(dict.fromkeys(c.name for c in contenders))
    at = {(c.name, c.bits): c for c in contenders}
    rows = [("", *("floats" if width is None else f"{width}-bit" for width in widths))]
    for k in TOP:
        for name in names:
            cells = (_shown(at.get((name, width)), k) for width in widths)
            rows.append((f"Top {k:<3} {name}", *cells))
    loads = {c.bits: f"{c.load_ms:.2f}" for c in contenders if c.load_ms is not None}
    rows.append(("Loading + top 10", *(loads.get(width, "") for width in widths)))
    table(rows, indent="")
    click.echo(f"memory of the floats: {megabytes(float_bytes)}")


def _shown(contender: Contender | None, k: int) -> str:
    return "" if contender is None else f"{contender.top_ms[k]:.3f}"
