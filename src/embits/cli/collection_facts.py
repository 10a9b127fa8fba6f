"""What the verbs that change a collection share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from embits.cli.numbers import DecimalNumber
from embits.cli.options import FILE
from embits.cli.output import megabytes, print_json, printable
from embits.collection import Collection
from embits.errors import InputError

collection_argument = click.argument("collection", type=FILE)

timeout_option = click.option(
    "--timeout",
    type=DecimalNumber(min=0),
    default=0,
    metavar="SECONDS",
    help="How long to wait while another process writes to the collection.",
)


def existing_collection(path: Path, timeout: float) -> Collection:
    """Open a collection to change it.

    Args:
        path: The folder.
        timeout: Seconds to wait for another process that writes.

    Raises:
        InputError: It is a single file, which is not changed.
        FormatError: There is no collection, or it is damaged.
    """
    from embits.collection import load

    opened = load(path)
    if not isinstance(opened, Collection):
        raise InputError(
            f"{path} is a single file, and only collections can be changed: `embits add` makes one "
            "from a file"
        )
    opened.timeout = timeout
    return opened


def collection_facts(path: Path, collection: Collection, done: dict[str, Any]) -> dict[str, Any]:
    """What was done, and what the collection holds now; `path` is as the user gave it."""
    files = collection.manifest.files()
    size = sum((collection.path / name).stat().st_size for name in files)
    return {
        "collection": str(path),
        **done,
        "rows": len(collection),
        "pieces": len(collection.manifest.pieces),
        "bytes": size,
    }


def show_change(facts: dict[str, Any], as_json: bool) -> None:
    """Print what was done."""
    if as_json:
        print_json(facts)
        return
    changes = [name for name in ("updated", "added", "removed") if name in facts]
    changes = [name for name in changes if facts[name]] or changes[:1]
    done = ", ".join(f"{_counted(facts[name], 'row')} {name}" for name in changes)
    done += "; " if done else ""
    rows, pieces = _counted(facts["rows"], "row"), _counted(facts["pieces"], "piece")
    click.echo(
        printable(f"{facts['collection']}: {done}{rows} in {pieces}, {megabytes(facts['bytes'])}")
    )


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
