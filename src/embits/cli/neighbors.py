"""`embits neighbors`: the closest words."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from embits.binary_vectors import load
from embits.cli.common import file_argument, json_option, print_json, table, words_argument


@click.command()
@file_argument
@words_argument
@click.option("-k", type=click.IntRange(min=1), default=10, help="How many.")
@json_option
def command(file: Path, words: tuple[str, ...], k: int, as_json: bool) -> None:
    """The closest words to each WORD, by bits that agree.

    The K words of FILE with the largest share of bits that agree.

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
            {"word": word, "ms": round(ms, 4), "neighbors": as_dicts(neighbors)}
            for word, ms, neighbors in answers
        ]
        print_json({"file": str(file), "k": k, "queries": queries})
        return
    for word, ms, neighbors in answers:
        click.echo(f"{word}  ({ms:.2f} ms)")
        table([(other, f"{similarity:.3f}") for other, similarity in neighbors] or [("none",)])


def as_dicts(neighbors: list[tuple[str, float]]) -> list[dict[str, Any]]:
    """Neighbors as the JSON shapes have them."""
    return [{"word": word, "similarity": round(similarity, 6)} for word, similarity in neighbors]
