"""`embits decode`: floats back."""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.common import file_argument, json_option, megabytes, output_option, print_json
from embits.cli.completing import words_of_file
from embits.vectors import WordVectors
from embits.writers import write_vectors


@click.command()
@file_argument
@output_option
@click.option(
    "--words",
    "words",
    multiple=True,
    shell_complete=words_of_file,
    help="Decode this word only; may be repeated.",
)
@json_option
def command(file: Path, output: Path, words: tuple[str, ...], as_json: bool) -> None:
    """Rebuild float vectors from the bits of FILE.

    The suffix of the output says the format: .txt and .vec are word2vec text (add .gz to
    compress), .bin word2vec binary; .npz and .parquet hold words and matrix; .npy and
    .safetensors the matrix, with a .words file beside.

    \b
    embits decode glove.safetensors -o glove.vec
    embits decode glove.safetensors -o few.txt --words queen --words king
    """
    bits = load(file)
    vectors = (
        WordVectors(list(words), bits.decode(list(words)))
        if words
        else WordVectors(bits.words, bits.decode())
    )
    write_vectors(output, vectors)
    size = output.stat().st_size
    if as_json:
        print_json(
            {"file": str(output), "words": len(vectors), "dims": vectors.dims, "bytes": size}
        )
    else:
        click.echo(f"{len(vectors):,} × {vectors.dims} floats in {output}: {megabytes(size)}")
