"""`embits encode`: encode new vectors with the coder of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embits.cli.file_facts import counted_rows, describe
from embits.cli.options import (
    check_writable,
    file_argument,
    json_option,
    output_option,
    reading_options,
)
from embits.cli.output import megabytes, print_json
from embits.cli.progress import steps_progress
from embits.cli.ray_options import ADDRESS, OUTPUT_HELP, Cluster, ray_options
from embits.collection import load_coder
from embits.jobs import encode_to_file

if TYPE_CHECKING:
    from embits.readers.source import Repeats


@click.command()
@file_argument
@click.argument("vectors", type=ADDRESS)
@output_option(ADDRESS, help=OUTPUT_HELP)
@reading_options
@ray_options
@json_option
def command(
    file: Path,
    vectors: Path,
    output: Path,
    force: bool,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    repeats: Repeats | None,
    as_json: bool,
    cluster: Cluster | None,
) -> None:
    """Encode the VECTORS of another file with the coder of FILE.

    VECTORS may be larger than memory. A job on a file over 64 MB can be resumed: run the same
    command again after it was stopped.

    \b
    embits encode glove.safetensors new-words.txt -o new-words.safetensors
    embits encode coder.safetensors s3://bucket/vectors -o s3://bucket/codes --ray
    """
    if cluster is not None:
        coder = load_coder(file)
        cluster.encode(vectors, lambda _: coder, output, skip_bad=skip_bad, as_json=as_json)
        return
    check_writable(output)
    title = f"encode {vectors} to {output} with the coder of {file}"
    with steps_progress(title, quiet=as_json) as progress:
        binary = encode_to_file(
            file,
            vectors,
            output,
            limit=limit,
            words=words_file,
            on_bad="skip" if skip_bad else "raise",
            repeats=repeats,
            overwrite=force,
            progress=progress,
        )
    facts = describe(output, binary)
    if as_json:
        print_json(facts)
    else:
        click.echo(
            f"{counted_rows(binary)} × {facts['bits']} bits in {output}: "
            f"{megabytes(facts['bytes'])}"
        )
