"""`embits export`: out to other tools."""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.common import (
    file_argument,
    json_option,
    named_values,
    print_json,
    printable,
    progress_bar,
)
from embits.integrations import EXPORTERS, export


@click.command()
@file_argument
@click.option("--to", type=click.Choice(list(EXPORTERS)), required=True, help="The other tool.")
@click.option("-o", "--output", "target", required=True, metavar="TARGET", help="Where to write.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=named_values,
    help="An option of the export; may be repeated.",
)
@json_option
def command(file: Path, to: str, target: str, options: dict[str, object], as_json: bool) -> None:
    """Write the codes of FILE where another tool reads them.

    \b
    embits export glove.safetensors --to npy -o codes.npy
    embits export glove.safetensors --to faiss -o codes.faiss --option kind=hnsw
    embits export glove.safetensors --to word2vec -o floats.bin
    embits export glove.safetensors --to sqlite -o glove.db
    embits export glove.safetensors --to pgvector -o postgresql:///db --option table=words
    """
    bits = load(file)
    with progress_bar("exporting", quiet=as_json) as progress:
        facts = export(bits, to, target, progress=progress, **options)
    facts = {"to": to, "target": target, "rows": len(bits), "bits": bits.n_bits} | facts
    if as_json:
        print_json(facts)
        return
    rest = [f"{name.replace('_', ' ')} {value}" for name, value in list(facts.items())[4:]]
    line = f"{len(bits):,} × {bits.n_bits} bits to {facts['target']}"
    click.echo(printable(line + (f" ({', '.join(rest)})" if rest else "")))
