"""`embits info`: what a file is."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from embits import _core
from embits.binary_vectors import BinaryVectors, load
from embits.cli.common import json_option, megabytes, print_json, printable
from embits.cli.completing import BITS_FILE
from embits.words.vocabulary import RowNumbers

_COLUMNS = 80


@click.command()
@click.argument("file", type=BITS_FILE, required=False)
@click.option("--cpu", is_flag=True, help="Say which instruction set the search uses.")
@json_option
def command(file: Path | None, cpu: bool, as_json: bool) -> None:
    """Say what FILE holds.

    \b
    embits info glove.safetensors
    embits info --cpu
    """
    if file is None and not cpu:
        raise click.UsageError("name a FILE, or ask for --cpu")
    facts = describe(file, load(file)) if file else {}
    if cpu:
        facts["simd"] = _core.simd()
    if as_json:
        print_json(facts)
        return
    _show(facts)


def describe(path: Path, bits: BinaryVectors) -> dict[str, Any]:
    """The facts of `info --json`."""
    size = size_on_disk(path)
    float_bytes = len(bits) * bits.dims * 4
    return {
        "words": len(bits),
        "bits": bits.n_bits,
        "dims": bits.dims,
        "method": bits.coder.method,
        "bytes": size,
        "bytes_per_word": round(size / len(bits), 2) if len(bits) else 0.0,
        "float_bytes": float_bytes,
        "ratio": round(float_bytes / size, 2),
        "params": bits.coder.get_params(),
        "subwords": bits.subwords is not None,
    }


def size_on_disk(path: Path) -> int:
    """Bytes of a file, or of the files in a folder."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _show(facts: dict[str, Any]) -> None:
    """Names to the left, and what they are beside them, long lines folded."""
    width = max(map(len, facts)) + 2
    for name, value in facts.items():
        lines = textwrap.wrap(
            printable(_shown(name, value)), _COLUMNS - width, break_on_hyphens=False
        )
        click.echo(f"{name.replace('_', ' '):<{width}}" + f"\n{'':<{width}}".join(lines))


def entries(bits: BinaryVectors) -> str:
    """What its rows are, in the plural."""
    return "rows" if isinstance(bits.words, RowNumbers) else "words"


def _shown(name: str, value: Any) -> str:
    if name in ("bytes", "float_bytes"):
        return f"{value:,} ({megabytes(value)})"
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
