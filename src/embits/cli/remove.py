"""`embits remove`: remove rows from a collection."""

from __future__ import annotations

from pathlib import Path

import click

from embits.cli.collection_facts import (
    collection_argument,
    collection_facts,
    existing_collection,
    show_change,
    timeout_option,
)
from embits.cli.id_files import read_ids
from embits.cli.options import FILE, json_option


@click.command()
@collection_argument
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option(
    "--ids", "ids_file", type=FILE, metavar="FILE", help="File with the ids, one per line."
)
@timeout_option
@json_option
def command(
    collection: Path,
    ids: tuple[str, ...],
    ids_file: Path | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Remove the rows with these IDs from COLLECTION.

    If an id is unknown, no row is removed. The codes of removed rows stay in the files until
    `embits compact`.

    \b
    embits remove news doc-17 doc-18
    embits remove news --ids expired.txt
    """
    if not ids and ids_file is None:
        raise click.UsageError("give at least one ID, or --ids FILE")
    wanted = [*ids, *(read_ids(ids_file) if ids_file else ())]  # a file may be empty
    opened = existing_collection(collection, timeout)
    opened.remove(wanted)
    show_change(collection_facts(collection, opened, {"removed": len(set(wanted))}), as_json)
