"""`embits verify`: every byte checked."""

from __future__ import annotations

from pathlib import Path

import click

from embits.binary_vectors import load
from embits.cli.common import file_argument, json_option, print_json


@click.command()
@file_argument
@json_option
def command(file: Path, as_json: bool) -> None:
    """Read every byte of FILE and check it against its checksums.

    \b
    embits verify glove.safetensors
    """
    bits = load(file, verify=True)
    if as_json:
        print_json({"file": str(file), "words": len(bits), "bits": bits.n_bits, "ok": True})
    else:
        click.echo(f"{file}: whole ({len(bits):,} words × {bits.n_bits} bits)")
