"""`embits add`: add vectors to a collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from embits.cli.collection_facts import (
    collection_argument,
    collection_facts,
    show_change,
    timeout_option,
)
from embits.cli.options import FILE, json_option, reading_options
from embits.cli.progress import steps_progress
from embits.collection.opening import opened_or_undone
from embits.jobs import encode_to_collection

if TYPE_CHECKING:
    from embits.readers.source import Repeats


@click.command()
@collection_argument
@click.argument("vectors", type=FILE)
@click.option(
    "--coder",
    type=FILE,
    metavar="FILE",
    help="Make a new collection with the coder of this file.",
)
@click.option(
    "--update",
    is_flag=True,
    help="Replace the rows of ids that are there already; other ids are added.",
)
@reading_options
@timeout_option
@json_option
def command(
    collection: Path,
    vectors: Path,
    coder: Path | None,
    update: bool,
    limit: int | None,
    words_file: Path | None,
    skip_bad: bool,
    repeats: Repeats | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Add VECTORS to COLLECTION, a folder that embits manages.

    The words of the vectors are their ids; vectors without words are numbered. VECTORS may also be
    a file of codes of the same coder, and may be larger than memory. All rows are added, or none.

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
        n = encode_to_collection(
            opened,
            vectors,
            limit=limit,
            words=words_file,
            on_bad="skip" if skip_bad else "raise",
            repeats=repeats,
            update=update,
            progress=progress,
        )
    added = len(opened) - before if update else n
    done = {"updated": n - added, "added": added} if update else {"added": n}
    show_change(collection_facts(collection, opened, done), as_json)
