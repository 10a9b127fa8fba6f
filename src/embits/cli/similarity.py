"""`embits similarity`: the similarity of two words."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.options import file_argument, json_option
from embits.cli.output import print_json
from embits.cli.suggestions import words_of_file
from embits.collection import load


@click.command()
@file_argument
@click.argument("a", shell_complete=words_of_file)
@click.argument("b", shell_complete=words_of_file)
@json_option
def command(file: Path, a: str, b: str, as_json: bool) -> None:
    """Print the similarity of the words or ids A and B.

    It is the share of bits that are equal, from 0 to 1 (Sokal-Michener similarity).

    \b
    embits similarity glove.safetensors car automobile
    """
    similarity = round(load(file).similarity(a, b), 6)
    if as_json:
        print_json({"a": a, "b": b, "similarity": similarity})
    else:
        click.echo(f"{similarity:.3f}")
