"""`--ray`: encode, binarize and search on a Ray cluster, from Parquet to Parquet."""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import click

from embits.cli.options import Command, WholeNumber, force_option
from embits.cli.output import megabytes, show
from embits.cli.progress import progress_bar
from embits.errors import ClusterError, MissingExtraError


class Address(click.Path):
    """A path or, with --ray, the address of an object store, which stays a string."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "://" not in str(value):
            return Path(value)
        if ctx is not None and not ctx.params.get("ray"):
            raise click.UsageError(f"{value} is not a local path: add --ray", ctx)
        return value


ADDRESS = Address()
OUTPUT_HELP = "File to write; with --ray, the folder."


ENCODED = "{rows:,} rows × {bits} bits in {target}: {size} in {parts} parts"
FOUND = "{rows:,} results of {queries:,} queries in {target}: {size}"


Cluster: TypeAlias = Callable[[Callable[..., dict[str, Any]], str, bool], None]


def _run(
    address: str | None,
    options: dict[str, Any],
    job: Callable[..., dict[str, Any]],
    line: str,
    as_json: bool,
) -> None:
    """Run `job(embits.integrations.ray, **options)` on a cluster, and print its facts."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
    warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
    warnings.filterwarnings("ignore", category=ResourceWarning)
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("--ray", "ray") from error
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is None:
        settings |= {"num_cpus": options["workers"], "include_dashboard": False}
    try:
        ray.init(address or "local", **settings)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ClusterError(f"no Ray cluster at {address!r}: {reason}") from None
    try:
        from embits.integrations import ray as integration

        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        ray.data.DataContext.get_current().enable_progress_bars = False
        with progress_bar("running", quiet=as_json) as progress:
            facts = job(integration, progress=progress, **options)
    finally:
        ray.shutdown()
    show(facts, line.format(size=megabytes(facts["bytes"]), **facts), as_json)
    if facts.get("skipped") and not as_json:
        click.echo(f"embits: note: {facts['skipped']:,} bad rows skipped", err=True)


def _options(
    refused: tuple[str, ...], own: dict[str, Any], force: str
) -> Callable[[Command], Command]:
    """Give a verb options that need --ray, and their values as `cluster`; None without --ray."""

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(ray: bool, ray_address: str | None, **others: Any) -> Any:
            given = {name: others.pop(name) for name in own}
            if not ray:
                if ray_address or any(value is not None for value in given.values()):
                    raise click.UsageError(f"--ray-address, --{', --'.join(own)} need --ray")
                return command(cluster=None, **others)
            if wrong := [name for name in refused if others.get(name)]:
                raise click.UsageError(f"--{wrong[0].split('_')[0]} cannot be used with --ray")
            given |= {name: others.pop(name) for name in _PASSED_ON if name in others}
            given |= {"ids": given["ids"] or None, "overwrite": others["force"]}
            return command(cluster=functools.partial(_run, ray_address, given), **others)

        for option in (force_option("--overwrite", help=force), *own.values(), *_SHARED):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorated


_PASSED_ON = ("column", "ids", "on_bad", "lengths")  # of the options of a verb
_SHARED = (
    click.option("--ray-address", metavar="NAME", help="A cluster, or auto [default: start one]."),
    click.option("--ray", is_flag=True, is_eager=True, help="Run on Ray, from Parquet to Parquet."),
)
_WORKERS = click.option("--workers", type=WholeNumber(1), help="With --ray: parallel tasks.")
_KEEP = click.option(
    "--keep", metavar="A,B", help="With --ray: columns to keep [default: all others].",
    callback=lambda _, __, names: names and [name for name in names.split(",") if name],
)  # fmt: skip
_COLUMN = click.option("--column", metavar="COLUMN", help="With --ray: column of the vectors.")
_IDS = click.option("--ids", metavar="COLUMN", help="With --ray: column that names the queries.")
ray_options = _options(
    ("limit", "words", "repeats"),
    {"keep": _KEEP, "workers": _WORKERS},
    "Replace a file that does not hold codes, or a folder.",
)
search_ray_options = _options(
    ("tsv", "oversample", "floats", "words_file"),
    {"column": _COLUMN, "ids": _IDS, "workers": _WORKERS},
    "Replace an existing file.",
)
