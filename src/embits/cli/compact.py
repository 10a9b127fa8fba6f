"""`embits compact`: merge the files of a collection."""

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
from embits.cli.options import json_option


@click.command()
@collection_argument
@timeout_option
@json_option
def command(collection: Path, timeout: float, as_json: bool) -> None:
    """Merge the pieces of COLLECTION into one file, without removed rows.

    The order of the rows and all search results stay the same. Readers that have the collection
    open are not affected.

    \b
    embits compact news
    """
    opened = existing_collection(collection, timeout)
    opened.compact()
    show_change(collection_facts(collection, opened, {}), as_json)
