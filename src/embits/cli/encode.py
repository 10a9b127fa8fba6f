"""`embits encode`: codes of unseen vectors, by the coder of a file."""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import BinaryVectors, load
from embits.cli.common import (
    file_argument,
    json_option,
    megabytes,
    output_option,
    print_json,
    read,
    reading_options,
)
from embits.cli.completing import FLOATS_FILE
from embits.cli.info import describe
from embits.errors import InputError


@click.command()
@file_argument
@click.argument("vectors", type=FLOATS_FILE)
@output_option
@reading_options
@json_option
def command(
    file: Path,
    vectors: Path,
    output: Path,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    as_json: bool,
) -> None:
    """Code the VECTORS of another file with the coder kept in FILE.

    \b
    embits encode glove.safetensors new-words.txt -o new-words.safetensors
    """
    coder = load(file).coder
    floats = read(vectors, limit, words_file, skip_bad, quiet=as_json)
    if floats.dims != coder.n_features_in_:
        raise InputError(
            f"{vectors}: vectors of {floats.dims} dimensions, but the coder in {file} takes "
            f"{coder.n_features_in_}"
        )
    binary = BinaryVectors.encoded(floats, coder)
    binary.save(output)
    facts = describe(output, binary)
    if as_json:
        print_json(facts)
    else:
        click.echo(
            f"{facts['words']:,} words × {facts['bits']} bits in {output}: "
            f"{megabytes(facts['bytes'])}"
        )
