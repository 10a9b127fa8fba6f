"""`embits export`: write codes for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from embits.cli.options import (
    file_argument,
    force_option,
    json_option,
    output_option,
    params_option,
)
from embits.cli.output import counted, megabytes, print_json, printable
from embits.cli.progress import progress_bar
from embits.collection import load
from embits.errors import InputError
from embits.file.overwrite import is_same_file
from embits.integrations import EXPORTERS, export


@click.command()
@file_argument
@click.option("--to", type=click.Choice(list(EXPORTERS)), required=True, help="Format or tool.")
@output_option(click.STRING, metavar="TARGET", help="File, folder or database address to write to.")
@force_option()
@params_option("Parameter of the export.")
@json_option
def command(
    file: Path, to: str, output: str, force: bool, params: dict[str, object], as_json: bool
) -> None:
    """Write the codes of FILE in the format of another tool.

    \b
    embits export glove.safetensors --to npy -o codes.npy
    embits export glove.safetensors --to faiss -o codes.faiss --param kind=hnsw
    embits export glove.safetensors --to word2vec -o floats.bin
    embits export glove.safetensors --to sqlite -o glove.db
    embits export glove.safetensors --to duckdb -o glove.duckdb
    embits export glove.safetensors --to pgvector -o postgresql:///db --param table=words
    """
    if is_same_file(output, file):
        raise InputError(f"{output} is an input of this job: choose another output")
    bits = load(file)
    with progress_bar("exporting", quiet=as_json) as progress:
        made = export(bits, to, output, progress=progress, overwrite=force, **params)
    facts: dict[str, Any] = {
        "to": to,
        "target": output,
        "rows": len(bits),
        "bits": bits.n_bits,
    } | made
    if as_json:
        print_json(facts)
        return
    rest = [
        megabytes(value) if name == "bytes" else f"{name.replace('_', ' ')} {value}"
        for name, value in list(facts.items())[4:]
    ]
    line = f"{counted(len(bits))} × {bits.n_bits} bits in {facts['target']}"
    click.echo(printable(line + (f" ({', '.join(rest)})" if rest else "")))
