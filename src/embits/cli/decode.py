"""`embits decode`: rebuild float vectors from codes."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.options import (
    file_argument,
    force_option,
    json_option,
    output_option,
    words_of_file,
)
from embits.cli.output import megabytes, print_json
from embits.collection import load
from embits.file.overwrite import check_target
from embits.vectors import WordVectors
from embits.writers import write_vectors


@click.command()
@file_argument
@output_option()
@force_option()
@click.option(
    "--word",
    "--words",
    "words",
    multiple=True,
    metavar="WORD",
    shell_complete=words_of_file,
    help="Decode only this word or id. May be repeated.",
)
@json_option
def command(file: Path, output: Path, force: bool, words: tuple[str, ...], as_json: bool) -> None:
    """Rebuild float vectors from the bits of FILE.

    The suffix of the output sets the format. .txt and .vec are word2vec text (add .gz to
    compress) and .bin is word2vec binary. .npz and .parquet hold the words and the matrix. .npy
    and .safetensors hold the matrix; the words go into a .words file with the same name.

    \b
    embits decode glove.safetensors -o glove.vec
    embits decode glove.safetensors -o few.txt --word queen --word king
    """
    check_target(output, [file], force)
    if output.suffix.lower() in (".npy", ".safetensors"):
        check_target(output.with_suffix(".words"), [file], force)
    bits = load(file)
    vectors = (
        WordVectors(list(words), bits.decode(list(words)))
        if words
        else WordVectors(bits.words, bits.decode())
    )
    write_vectors(output, vectors, overwrite=True)  # checked above
    size = output.stat().st_size
    if as_json:
        print_json(
            {"file": str(output), "words": len(vectors), "dims": vectors.dims, "bytes": size}
        )
    else:
        click.echo(f"{len(vectors):,} × {vectors.dims} floats in {output}: {megabytes(size)}")
