"""`embits info` and `verify`: what a file contains, and whether it is intact."""

from __future__ import annotations

import logging
import textwrap
from pathlib import Path

import click

from embits import _core
from embits.cli import options
from embits.cli.output import (
    Facts,
    counted,
    describe,
    megabytes,
    one_line,
    print_json,
    printable,
    show,
)
from embits.coders import METHODS
from embits.collection import load
from embits.errors import EmbitsError
from embits.file.store import open_file
from embits.remote import is_address

# People read of rows: a file does not tell words from ids of texts.
_NAMES = {"words": "rows", "bytes_per_word": "bytes per row"}


@click.command()
@click.argument("file", type=options.ADDRESS, required=False)
@click.option("--cpu", is_flag=True, help="Print the instruction set that searches use.")
@options.json_option
def info(file: Path | None, cpu: bool, as_json: bool) -> None:
    """Print what FILE contains, and how many bytes each part takes.

    \b
    embits info glove.safetensors
    embits info --cpu
    """
    if file is None and not cpu:
        raise click.UsageError("a FILE is missing (or give --cpu for the instruction set)")
    facts = {}
    if file is not None and (
        is_address(file) or file.is_dir() or (method := open_file(file).method) in METHODS
    ):
        facts = describe(file, load(file))
    elif file is not None:
        facts = describe(file, open_file(file))  # without the parts
        hint = "to use the file, import the module that registers the coder"
        logging.getLogger("embits").info("%r is no coder of embits: %s", method, hint)  # a note
    if cpu:
        facts["simd"] = _core.simd()
    if as_json:
        print_json(facts)
    else:
        _show(facts)


@click.command()
@options.file_argument
@options.json_option
def verify(file: Path, as_json: bool) -> None:
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
    facts = {"file": str(file), "words": len(bits), "bits": bits.n_bits, "ok": True}
    show(facts, f"{file}: intact ({counted(len(bits))} × {bits.n_bits} bits)", as_json)


def _show(facts: Facts) -> None:
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        if name == "parts":
            for part, size in value.items():
                if size:
                    label = "  ids" if part == "words" else f"  {part}"
                    share = size / sum(value.values())
                    click.echo(f"{label:<{width}}{size:,} ({100 * share:.0f} %)")
            continue
        if isinstance(value, dict):
            text = ", ".join(f"{key}={item}" for key, item in value.items())
        elif isinstance(value, bool):
            text = "yes" if value else "no"
        else:
            text = f"{value:,}" if isinstance(value, int) else str(value)
            text += f" ({megabytes(value)})" if name in ("bytes", "float_bytes") else ""
        lines = textwrap.wrap(printable(text), 80 - width, break_on_hyphens=False)
        label = _NAMES.get(name, name.replace("_", " "))
        click.echo(f"{label:<{width}}" + f"\n{'':<{width}}".join(lines))
