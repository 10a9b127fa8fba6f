"""`embits search --ray`: a batch search on a Ray cluster, from Parquet to Parquet."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click

from embits.cli.options import Command, force_option, output_option
from embits.cli.output import megabytes, print_json, printable
from embits.cli.progress import progress_bar
from embits.cli.ray_options import ADDRESS, LOCAL, Cluster, cluster_options


def search_on_ray(
    cluster: Cluster,
    file: Path | str,
    queries: Path | str,
    output: Path | str,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Search with the workers of a cluster, and print what was written."""
    with cluster.running() as integration, progress_bar("searching", quiet=as_json) as progress:
        facts = integration.search(
            file,
            queries,
            column=cluster.column,
            ids=cluster.ids,
            target=output,
            overwrite=cluster.overwrite,
            workers=cluster.workers,
            progress=progress,
            **options,
        )
    if as_json:
        print_json(facts)
        return
    line = f"{facts['rows']:,} results of {facts['queries']:,} queries in {facts['target']}"
    click.echo(printable(f"{line}: {megabytes(facts['bytes'])}"))


def search_ray_options(command: Command) -> Command:
    """The options of a search on Ray; it gets them as `cluster`, which is None without --ray."""

    @functools.wraps(command)
    def wrapped(
        ray: bool,
        ray_address: str | None,
        column: str | None,
        ids: str | None,
        workers: int | None,
        force: bool,
        **others: Any,
    ) -> Any:
        output = others["output"]
        if not ray and (ray_address or column or ids or workers or output):
            raise click.UsageError("-o, --ray-address, --column, --ids and --workers need --ray")
        if not ray and isinstance(others["queries"], str):
            raise click.UsageError(f"{others['queries']} is not a local path: add --ray")
        if not ray:
            return command(cluster=None, **others)
        if output is None:
            raise click.UsageError("--ray needs -o, the Parquet file to write")
        if any(others[name] for name in ("tsv", "oversample", "floats", "words_file")):
            options = "--tsv, --oversample, --floats and --words"
            raise click.UsageError(f"{options} cannot be used with --ray")
        cluster = Cluster(ray_address or LOCAL, column, ids, None, workers, force)
        return command(cluster=cluster, **others)

    options = cluster_options(
        "Run on Ray: reads queries from Parquet, writes Parquet.",
        "With --ray: column that names the queries.",
    )
    output = output_option(ADDRESS, help="With --ray: Parquet file to write.", required=False)
    return output(force_option("--overwrite")(options(wrapped)))  # type: ignore[return-value]
