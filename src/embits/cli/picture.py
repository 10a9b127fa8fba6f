"""`embits picture`: which bits a word shares with its neighbors."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.options import (
    WholeNumber,
    file_argument,
    force_option,
    json_option,
    output_option,
    words_argument,
)
from embits.cli.output import print_json
from embits.collection import load
from embits.evaluation.figures import N_WORDS, bit_picture
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target


@click.command()
@file_argument
@words_argument
@output_option(help="File to write: .png, .svg or .pdf.")
@force_option()
@click.option(
    "-n",
    type=WholeNumber(min=1),
    default=N_WORDS,
    help="Number of closest and of furthest words.",
)
@json_option
def command(
    file: Path, words: tuple[str, ...], output: Path, force: bool, n: int, as_json: bool
) -> None:
    """Draw the bits of the words closest to each WORD.

    The furthest words are drawn below them, as in the paper's figure. Each row of pixels is a
    word and each column a bit: red is 1, white is 0. Vertical stripes are bits that neighbors
    share. Several words are drawn one below the other, in the order given.

    \b
    embits picture glove.safetensors queen -o queen.png
    embits picture glove.safetensors queen automobile jupiter man -o figure.pdf
    """
    check_target(output, [file], force)
    picture = bit_picture(load(file), words, n, output.suffix)
    with atomic_write(output) as target:
        target.write(picture)
    if as_json:
        print_json({"file": str(output), "words": list(words), "bytes": len(picture)})
    else:
        click.echo(f"{output}: the bits of {', '.join(words)}")
