"""`embits neighbors`: the closest words."""

from __future__ import annotations

import time
from pathlib import Path

import click

from embits.binary_vectors.words import Metric
from embits.cli.id_files import read_filter
from embits.cli.numbers import WholeNumber
from embits.cli.options import (
    exclude_option,
    file_argument,
    json_option,
    metric_option,
    where_option,
    words_argument,
)
from embits.cli.output import neighbor_dicts, neighbor_table, print_json
from embits.collection import load


@click.command()
@file_argument
@words_argument
@click.option("-k", "--topn", "k", type=WholeNumber(min=1), default=10, help="Number of neighbors.")
@metric_option("hamming")
@where_option
@exclude_option
@json_option
def command(
    file: Path,
    words: tuple[str, ...],
    k: int,
    metric: Metric,
    where: Path | None,
    exclude: Path | None,
    as_json: bool,
) -> None:
    """Print the words or ids closest to each WORD, which is a word or an id of FILE.

    Closeness is the share of bits that are equal, from 0 to 1, or, with --metric decoded, an
    estimate of the cosine.

    \b
    embits neighbors glove.safetensors queen
    embits neighbors glove.safetensors queen jupiter -k 5 --json
    embits neighbors glove.safetensors queen --where nouns.txt
    """
    bits = load(file)
    allowed = bits.select(read_filter(where), read_filter(exclude)) if where or exclude else None
    answers = []
    for word in words:
        start = time.perf_counter()
        neighbors = bits.most_similar(word, topn=k, metric=metric, where=allowed)
        answers.append((word, 1e3 * (time.perf_counter() - start), neighbors))
    if as_json:
        queries = [
            {"word": word, "ms": round(ms, 4), "neighbors": neighbor_dicts(neighbors)}
            for word, ms, neighbors in answers
        ]
        print_json({"file": str(file), "k": k, "queries": queries})
        return
    for word, ms, neighbors in answers:
        click.echo(f"{word}  ({ms:.2f} ms)")
        neighbor_table(neighbors)
