"""`embits verify`: check every byte of a file."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.file_facts import counted_rows
from embits.cli.options import file_argument, json_option
from embits.cli.output import one_line, print_json
from embits.collection import load
from embits.errors import EmbitsError


@click.command()
@file_argument
@json_option
def command(file: Path, as_json: bool) -> None:
    """Read every byte of FILE and check it against its checksums.

    \b
    embits verify glove.safetensors
    """
    try:
        bits = load(file, verify=True)
    except (EmbitsError, OSError) as error:
        if as_json:
            print_json({"file": str(file), "ok": False, "error": one_line(error)})
        raise
    if as_json:
        print_json({"file": str(file), "words": len(bits), "bits": bits.n_bits, "ok": True})
    else:
        click.echo(f"{file}: intact ({counted_rows(bits)} × {bits.n_bits} bits)")
