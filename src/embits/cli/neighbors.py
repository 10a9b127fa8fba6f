"""`embits neighbors`: the closest words."""

from __future__ import annotations

import time
from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.options import file_argument, json_option, words_argument
from embits.cli.output import neighbor_dicts, neighbor_table, print_json


@click.command()
@file_argument
@words_argument
@click.option("-k", type=click.IntRange(min=1), default=10, help="Number of neighbors.")
@json_option
def command(file: Path, words: tuple[str, ...], k: int, as_json: bool) -> None:
    """Print the words closest to each WORD.

    Closeness is the share of bits that are equal, from 0 to 1.

    \b
    embits neighbors glove.safetensors queen
    embits neighbors glove.safetensors queen jupiter -k 5 --json
    """
    bits = load(file)
    answers = []
    for word in words:
        start = time.perf_counter()
        neighbors = bits.most_similar(word, topn=k)
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
