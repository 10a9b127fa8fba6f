"""`embits duplicates`: groups of rows whose codes are nearly equal."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from embits.cli.options import (
    WholeNumber,
    file_argument,
    force_option,
    json_option,
    output_option,
)
from embits.cli.output import counted, print_json, printable
from embits.cli.progress import progress_bar
from embits.collection import load
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target

if TYPE_CHECKING:
    from embits.binary_vectors import BinaryVectors
    from embits.search import GroupsResult

_BLOCK = 10_000  # groups whose ids are looked up at a time


@click.command()
@file_argument
@click.option(
    "--within",
    "distance",
    type=WholeNumber(min=0),
    required=True,
    metavar="BITS",
    help="Largest number of bits in which two duplicates differ.",
)
@output_option(required=False, help="File to write the groups to, instead of printing them.")
@force_option()
@json_option
def command(file: Path, distance: int, output: Path | None, force: bool, as_json: bool) -> None:
    """Print groups of rows of FILE whose codes are nearly equal.

    Two rows that differ in at most BITS bits are in one group, and so are rows that are connected
    through others. Each row is printed with the number of bits in which it differs from the first
    row of its group, which may be more than BITS.

    \b
    embits duplicates glove.safetensors --within 8
    embits duplicates pages.safetensors --within 3 --json -o duplicates.json
    """
    if output is not None:
        check_target(output, [file], force)
    bits = load(file)
    with progress_bar("comparing", quiet=as_json) as progress:
        groups = bits.duplicates(distance, progress=progress)
    n_groups = len(groups.offsets) - 1
    facts = {"file": str(file), "within": distance, "rows": len(bits)}
    counts = {"groups": n_groups, "duplicates": len(groups.rows) - n_groups}
    with _target(output) as target:
        for text in _json(bits, groups, facts) if as_json else _lines(bits, groups):
            target.write(text)
    if as_json and output is not None:
        print_json(facts | counts | {"output": str(output)})
    elif not as_json:
        found = f"{counted(counts['duplicates'], 'duplicate')} in {counted(n_groups, 'group')}"
        rows = f"{counted(len(bits))} within {distance} of {bits.n_bits} bits"
        click.echo(f"{found} of {rows}" + (f", in {output}" if output else ""))


@contextlib.contextmanager
def _target(output: Path | None) -> Iterator[Any]:
    if output is None:
        yield sys.stdout
        return
    with atomic_write(output) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
        yield text
        text.detach()  # flushes; the file is closed once it is on the disk


def _each(bits: BinaryVectors, groups: GroupsResult) -> Iterator[dict[str, list[Any]]]:
    """The groups as JSON objects."""
    offsets = groups.offsets
    for first in range(0, len(offsets) - 1, _BLOCK):
        bounds = offsets[first : first + _BLOCK + 1]
        rows = groups.rows[bounds[0] : bounds[-1]]
        ids, numbers = bits.ids(rows).tolist(), rows.tolist()
        distances = groups.distances[bounds[0] : bounds[-1]].tolist()
        for begin, end in pairwise((bounds - bounds[0]).tolist()):
            part = slice(begin, end)
            yield {"ids": ids[part], "rows": numbers[part], "distances": distances[part]}


def _json(bits: BinaryVectors, groups: GroupsResult, facts: dict[str, Any]) -> Iterator[str]:
    """One JSON object, a group on each line."""
    yield json.dumps(facts, ensure_ascii=False)[:-1] + ', "groups": ['
    between = "\n"
    for group in _each(bits, groups):
        yield between + json.dumps(group, ensure_ascii=False)
        between = ",\n"
    yield f'\n], "duplicates": {len(groups.rows) - len(groups.offsets) + 1}}}\n'


def _lines(bits: BinaryVectors, groups: GroupsResult) -> Iterator[str]:
    """A line for each row, with a blank line after each group."""
    for group in _each(bits, groups):
        for id, distance in zip(group["ids"], group["distances"], strict=True):
            yield f"{distance:>5}  {printable(str(id))}\n"
        yield "\n"
