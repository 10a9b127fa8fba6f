"""`embits add`, `remove` and `compact`: the verbs that change a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from embits.cli import options
from embits.cli.output import counted, megabytes, show, size_on_disk, steps_progress
from embits.collection import Collection, load
from embits.collection.opening import opened_or_undone
from embits.errors import InputError
from embits.jobs import encode_to_collection

collection_argument = click.argument("collection", type=options.FILE)
timeout_option = click.option(
    "--timeout", type=options.DecimalNumber(min=0), default=0, metavar="SECONDS",
    help="How long to wait for another process that writes to the collection.",
)  # fmt: skip


@click.command()
@collection_argument
@click.argument("vectors", type=options.FILE)
@options.file_option("--coder", help="Make a new collection with the coder of this file.")
@click.option("--update", is_flag=True, help="Replace rows whose ids exist, and add the others.")
@options.reading_options
@options.lengths_option
@timeout_option
@options.json_option
def add(
    collection: Path,
    vectors: Path,
    coder: Path | None,
    update: bool,
    timeout: float,
    as_json: bool,
    **reading: Any,
) -> None:
    """Add VECTORS to COLLECTION, a folder that embits manages.

    Words become ids; vectors without words are numbered. VECTORS may be larger than memory, and may
    also be a file of codes made with the same coder. If a row cannot be added, none is.

    \b
    embits add news monday.parquet --coder coder.safetensors
    embits add news tuesday.parquet
    """
    title = f"add {vectors} to {collection}"
    with (
        opened_or_undone(collection, coder, timeout=timeout) as opened,
        steps_progress(title, quiet=as_json) as progress,
    ):
        before = len(opened)
        n = encode_to_collection(opened, vectors, update=update, progress=progress, **reading)
    added = len(opened) - before if update else n
    done = {"updated": n - added, "added": added} if update else {"added": n}
    _show_change(collection, opened, done, as_json)


@click.command()
@collection_argument
@click.argument("ids", nargs=-1, metavar="ID...")
@options.file_option("--ids", "ids_file", help="File with the ids, one per line.")
@timeout_option
@options.json_option
def remove(
    collection: Path, ids: tuple[str, ...], ids_file: Path | None, timeout: float, as_json: bool
) -> None:
    """Remove the rows with these IDs from COLLECTION.

    If an id is unknown, no row is removed. The codes stay on disk until `embits compact`.

    \b
    embits remove news doc-17 doc-18
    embits remove news --ids expired.txt
    """
    if not ids and ids_file is None:
        raise click.UsageError("give at least one ID, or --ids FILE")
    opened = _existing(collection, timeout)
    listed = options.read_ids(ids_file, len(opened)) if ids_file else ()  # a file may be empty
    wanted = [*ids, *listed]
    opened.remove(wanted)
    _show_change(collection, opened, {"removed": len(set(wanted))}, as_json)


@click.command()
@collection_argument
@timeout_option
@options.json_option
def compact(collection: Path, timeout: float, as_json: bool) -> None:
    """Merge the pieces of COLLECTION into one file, without removed rows.

    Rows keep their order, and searches their results. Programs that have the collection open are
    not affected.

    \b
    embits compact news
    """
    opened = _existing(collection, timeout)
    opened.compact()
    _show_change(collection, opened, {}, as_json)


def _existing(path: Path, timeout: float) -> Collection:
    opened = load(path)
    if not isinstance(opened, Collection):
        change = "only collections can be changed: `embits add` makes one from a file"
        raise InputError(f"{path} is a single file, and {change}")
    opened.timeout = timeout
    return opened


def _show_change(path: Path, collection: Collection, done: dict[str, int], as_json: bool) -> None:
    """Print what was done, and what the collection holds now; `path` is as the user gave it."""
    rows, pieces, size = len(collection), len(collection.manifest.pieces), size_on_disk(path)
    facts = {"collection": str(path), **done, "rows": rows, "pieces": pieces, "bytes": size}
    told = {name: count for name, count in done.items() if count} or dict([*done.items()][:1])
    change = ", ".join(f"{counted(count)} {name}" for name, count in told.items())
    holds = f"{counted(rows)} in {counted(pieces, 'piece')}, {megabytes(size)}"
    show(facts, f"{path}: {'; '.join(filter(None, [change, holds]))}", as_json)
