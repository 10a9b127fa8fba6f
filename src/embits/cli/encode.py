"""`embits encode`: codes of unseen vectors, by the coder of a file."""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.common import (
    file_argument,
    json_option,
    megabytes,
    print_json,
    reading_options,
    steps_bar,
)
from embits.cli.info import describe, entries
from embits.cli.ray_options import FLOATS_ADDRESS, Cluster, output_option, ray_options
from embits.streaming import encode_to_file


@click.command()
@file_argument
@click.argument("vectors", type=FLOATS_ADDRESS)
@output_option
@reading_options
@ray_options
@json_option
def command(
    file: Path,
    vectors: Path,
    output: Path,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    as_json: bool,
    cluster: Cluster | None,
) -> None:
    """Code the VECTORS of another file with the coder kept in FILE.

    VECTORS over 64 MB may be larger than memory: stopped or killed, the same command goes on where
    it was.

    \b
    embits encode glove.safetensors new-words.txt -o new-words.safetensors
    embits encode coder.safetensors s3://bucket/vectors -o s3://bucket/codes --ray
    """
    if cluster is not None:
        coder = load(file).coder
        cluster.encode(vectors, lambda _: coder, output, skip_bad=skip_bad, as_json=as_json)
        return
    with steps_bar(quiet=as_json) as progress:
        binary = encode_to_file(
            file,
            vectors,
            output,
            limit=limit,
            words=words_file,
            on_bad="skip" if skip_bad else "raise",
            progress=progress,
        )
    facts = describe(output, binary)
    if as_json:
        print_json(facts)
    else:
        click.echo(
            f"{facts['words']:,} {entries(binary)} × {facts['bits']} bits in {output}: "
            f"{megabytes(facts['bytes'])}"
        )
