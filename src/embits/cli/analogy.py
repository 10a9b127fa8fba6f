"""`embits analogy`: a is to b as c is to what?"""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.common import file_argument, json_option, print_json, table
from embits.cli.completing import words_of_file
from embits.cli.neighbors import as_dicts


@click.command()
@file_argument
@click.argument("a", shell_complete=words_of_file)
@click.argument("b", shell_complete=words_of_file)
@click.argument("c", shell_complete=words_of_file)
@click.option("-k", type=click.IntRange(min=1), default=5, help="How many.")
@json_option
def command(file: Path, a: str, b: str, c: str, k: int, as_json: bool) -> None:
    """A is to B as C is to what?

    The closest words to (B AND NOT A) OR C.

    \b
    embits analogy glove.safetensors man king woman
    """
    answers = load(file).most_similar(positive=[b, c], negative=[a], topn=k)
    if as_json:
        print_json({"a": a, "b": b, "c": c, "answers": as_dicts(answers)})
    else:
        click.echo(f"{a} : {b} = {c} : ?")
        table([(word, f"{similarity:.3f}") for word, similarity in answers] or [("none",)])
