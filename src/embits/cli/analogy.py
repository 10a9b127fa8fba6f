"""`embits analogy`: a is to b as c is to what?"""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors.words import Metric
from embits.cli.numbers import WholeNumber
from embits.cli.options import file_argument, json_option, metric_option
from embits.cli.output import neighbor_dicts, neighbor_table, print_json
from embits.cli.suggestions import words_of_file
from embits.collection import load


@click.command()
@file_argument
@click.argument("a", shell_complete=words_of_file)
@click.argument("b", shell_complete=words_of_file)
@click.argument("c", shell_complete=words_of_file)
@click.option("-k", "--topn", "k", type=WholeNumber(min=1), default=5, help="Number of answers.")
@metric_option("decoded")
@json_option
def command(file: Path, a: str, b: str, c: str, k: int, metric: Metric, as_json: bool) -> None:
    """A is to B as C is to what?

    Prints the words closest to B - A + C, computed with the vectors rebuilt from the codes. With
    --metric hamming, the codes themselves are combined: (B AND NOT A) OR C.

    \b
    embits analogy glove.safetensors man king woman
    """
    answers = load(file).most_similar(positive=[b, c], negative=[a], topn=k, metric=metric)
    if as_json:
        print_json({"a": a, "b": b, "c": c, "answers": neighbor_dicts(answers)})
    else:
        click.echo(f"{a} : {b} = {c} : ?")
        neighbor_table(answers)
