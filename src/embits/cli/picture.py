"""`embits picture`: which bits a word shares with its neighbors."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli import options
from embits.cli.output import show
from embits.collection import load
from embits.evaluation.figures import N_WORDS, bit_picture
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target


@click.command()
@options.file_argument
@options.words_argument
@options.output_option(help="File to write: .png, .svg or .pdf.")
@options.force_option()
@options.k_option("-n", default=N_WORDS, help="Number of closest and of furthest words.")
@options.json_option
def command(
    file: Path, words: tuple[str, ...], output: Path, force: bool, k: int, as_json: bool
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
    picture = bit_picture(load(file), words, k, output.suffix)
    with atomic_write(output) as target:
        target.write(picture)
    facts = {"file": str(output), "words": list(words), "bytes": len(picture)}
    show(facts, f"{output}: the bits of {', '.join(words)}", as_json)
