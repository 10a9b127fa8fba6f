"""`embits similarity`: how alike two words are."""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.common import file_argument, json_option, print_json
from embits.cli.completing import words_of_file


@click.command()
@file_argument
@click.argument("a", shell_complete=words_of_file)
@click.argument("b", shell_complete=words_of_file)
@json_option
def command(file: Path, a: str, b: str, as_json: bool) -> None:
    """The share of bits that agree between the words A and B.

    This is the similarity of Sokal and Michener, from 0 to 1.

    \b
    embits similarity glove.safetensors car automobile
    """
    similarity = round(load(file).similarity(a, b), 6)
    if as_json:
        print_json({"a": a, "b": b, "similarity": similarity})
    else:
        click.echo(f"{similarity:.3f}")
