"""`embits neighbors`, `similarity` and `analogy`: questions about words or ids."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from embits.binary_vectors import BinaryVectors
from embits.cli import options
from embits.cli.output import print_json, show, table
from embits.collection import load
from embits.word_methods import WordMetric


@click.command()
@options.file_argument
@options.words_argument
@options.k_option("-k", "--topn", default=10, help="Number of neighbors.")
@options.metric_option("hamming", needs="codes")
@options.filter_options
@options.json_option
def neighbors(
    file: Path, words: tuple[str, ...], k: int, metric: WordMetric, as_json: bool, **filters: Any
) -> None:
    """Print the words closest to each WORD, a word or id of FILE.

    Upper and lower case do not matter if FILE has the word only in lower case. The numbers are the
    share of equal bits, from 0 to 1; with --metric decoded, estimated cosines.

    \b
    embits neighbors glove.safetensors queen
    embits neighbors glove.safetensors queen jupiter -k 5 --json
    embits neighbors glove.safetensors queen --where nouns.txt
    """
    bits = load(file)
    allowed = options.parsed(bits, filters)
    queries: list[dict[str, Any]] = []
    for word in words:
        start = time.perf_counter()
        found = bits.most_similar(_existing(bits, word), topn=k, metric=metric, **allowed)
        ms = round(1e3 * (time.perf_counter() - start), 4)
        queries.append({"word": word, "ms": ms, "neighbors": _as_dicts(found)})
    if as_json:
        print_json({"file": str(file), "k": k, "queries": queries})
    else:
        for each in queries:
            click.echo(f"{each['word']}  ({each['ms']:.2f} ms)")
            _show(each["neighbors"])


@click.command()
@options.file_argument
@options.word_argument("a")
@options.word_argument("b")
@options.json_option
def similarity(file: Path, a: str, b: str, as_json: bool) -> None:
    """Print the similarity of A and B, words or ids of FILE.

    It is the share of equal bits, from 0 to 1 (the Sokal-Michener similarity).

    \b
    embits similarity glove.safetensors car automobile
    """
    bits = load(file)
    value = round(bits.similarity(_existing(bits, a), _existing(bits, b)), 6)
    show({"a": a, "b": b, "similarity": value}, f"{value:.3f}", as_json)


@click.command()
@options.file_argument
@options.word_argument("a")
@options.word_argument("b")
@options.word_argument("c")
@options.k_option("-k", "--topn", default=5, help="Number of answers.")
@options.metric_option("decoded", needs="codes")
@options.json_option
def analogy(file: Path, a: str, b: str, c: str, k: int, metric: WordMetric, as_json: bool) -> None:
    """A is to B as C is to what?

    Prints the words closest to B - A + C, computed with the vectors rebuilt from the codes. With
    --metric hamming, the codes themselves are combined: (B AND NOT A) OR C.

    \b
    embits analogy glove.safetensors man king woman
    """
    bits = load(file)
    a_, *positive = (_existing(bits, word) for word in (a, b, c))
    answers = _as_dicts(bits.most_similar(positive, [a_], topn=k, metric=metric))
    if as_json:
        print_json({"a": a, "b": b, "c": c, "answers": answers})
    else:
        click.echo(f"{a} : {b} = {c} : ?")
        _show(answers)


def _existing(bits: BinaryVectors, word: str) -> str:
    """The word as given or, if the file has only that, in lower case."""
    return word if word in bits or word.lower() not in bits else word.lower()


def _as_dicts(found: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "similarity": round(value, 6)} for word, value in found]


def _show(answers: list[dict[str, Any]]) -> None:
    table([(each["word"], f"{each['similarity']:.3f}") for each in answers] or [("none",)])
