"""`embits bench`: time searches, as in the paper's Table 3."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors
from embits.cli import options
from embits.cli.output import counted, megabytes, print_json, printable, table
from embits.cli.progress import progress_bar
from embits.collection import load
from embits.errors import InputError
from embits.evaluation.tasks.speed import TOP, Contender, bit_contenders, float_contenders, measure
from embits.jobs import binarize
from embits.readers import read_vectors
from embits.search import kernel, simd


@click.command()
@options.files_argument
@options.file_option("--raw", help="Float vectors to time as well.")
@options.file_option("--words", "words_file", help="Words of --raw, if that is a matrix.")
@options.widths_option(default="64,128,256,512", help="Widths of the table.")
@click.option("--threads", type=options.WholeNumber(min=1), default=1, help="Threads per search.")
@options.json_option
def command(
    files: tuple[Path, ...],
    raw: Path | None,
    words_file: Path | None,
    bits: list[int],
    threads: int,
    as_json: bool,
) -> None:
    """Time searching and loading, as in the paper's Table 3.

    Times top-1, top-10 and top-50 searches of embits, NumPy and, if it is installed, FAISS. Each
    FILE fills the column of its number of bits. For the other columns, the same words are encoded
    with random hyperplanes; search time does not depend on the method. NumPy's matrix product uses
    as many threads as its BLAS is configured for.

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
        for path, binary in _columns(opened, bits, floats, Path(folder)):
            contenders += bit_contenders(path, binary, threads)
        unit = unit_rows(floats)
        contenders += float_contenders(raw, unit, threads)
        measure(contenders, len(first))
    if as_json:
        facts = {"words": len(first), "dims": first.dims, "threads": threads, "simd": simd()}
        times = [_as_dict(contender) for contender in contenders]
        print_json(facts | {"path": kernel().path, "times": times})
        return
    what = f"from {raw.name}" if raw else "rebuilt from the bits"
    click.echo(
        f"{counted(len(first))}; threads: {threads} (NumPy (BLAS) has its own number); "
        f"instruction set: {simd()}, path: {kernel().path}"
    )
    click.echo(printable(f"Median milliseconds of one query; floats {what}"))
    _show(contenders, unit.nbytes)


def _columns(
    opened: dict[Path, BinaryVectors], widths: list[int], floats: Any, folder: Path
) -> list[tuple[Path, BinaryVectors]]:
    columns = {bits.n_bits: (path, bits) for path, bits in opened.items()}
    n = len(floats)
    if any(len(bits) != n for bits in opened.values()):
        raise InputError("the files have different numbers of rows; time them one at a time")
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
            found = [at.get((name, width)) for width in widths]
            rows.append((f"Top {k:<3} {name}", *(f"{c.top_ms[k]:.3f}" if c else "" for c in found)))
    loads = {c.bits: f"{c.load_ms:.2f}" for c in contenders if c.load_ms is not None}
    rows.append(("Loading + top 10", *(loads.get(width, "") for width in widths)))
    table(rows, indent="")
    click.echo(f"memory of the floats: {megabytes(float_bytes)}")
