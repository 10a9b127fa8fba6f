"""`embits export`: write codes for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.file_facts import counted_rows
from embits.cli.options import (
    check_not_input,
    file_argument,
    force_option,
    json_option,
    output_option,
    params_option,
)
from embits.cli.output import megabytes, print_json, printable
from embits.cli.progress import progress_bar
from embits.collection import load
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
    if "://" not in output:
        check_not_input(Path(output), file)
    bits = load(file)
    with progress_bar("exporting", quiet=as_json) as progress:
        facts = export(bits, to, output, progress=progress, overwrite=force, **params)
    facts = {"to": to, "target": output, "rows": len(bits), "bits": bits.n_bits} | facts
    if as_json:
        print_json(facts)
        return
    rest = [_shown(name, value) for name, value in list(facts.items())[4:]]
    line = f"{counted_rows(bits)} × {bits.n_bits} bits in {facts['target']}"
    click.echo(printable(line + (f" ({', '.join(rest)})" if rest else "")))


def _shown(name: str, value: object) -> str:
    if name == "bytes" and isinstance(value, int):
        return megabytes(value)
    return f"{name.replace('_', ' ')} {value}"
