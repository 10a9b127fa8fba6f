"""`--ray`: encode, binarize and search on a Ray cluster, from Parquet to Parquet."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from embits.cli.options import Command, WholeNumber, force_option
from embits.cli.output import megabytes, print_json, printable
from embits.cli.progress import progress_bar
from embits.errors import ClusterError, MissingExtraError


class Address(click.Path):
    """A path, or the address of an object store, which stays a string."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if "://" in str(value) else Path(value)


ADDRESS = Address()
OUTPUT_HELP = "File to write; with --ray, the folder."


@dataclass(frozen=True)
class Cluster:
    """The address of a cluster, and the options of a job that verbs share."""

    address: str | None
    options: dict[str, Any]

    @contextlib.contextmanager
    def running(self) -> Iterator[Any]:
        """Connect to the cluster and give `embits.integrations.ray`; Ray's log is not shown."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
        warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("--ray", "ray") from error
        settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if self.address is None:
            settings |= {"num_cpus": self.options["workers"], "include_dashboard": False}
        try:
            ray.init(self.address or "local", **settings)
        except (ConnectionError, RuntimeError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ClusterError(f"no Ray cluster at {self.address!r}: {reason}") from None
        try:
            from embits.integrations import ray as integration

            logging.getLogger("ray.data").setLevel(logging.CRITICAL)
            ray.data.DataContext.get_current().enable_progress_bars = False
            yield integration
        finally:
            ray.shutdown()

    def encode(
        self, vectors: Any, coder: Callable[[Any], Any], output: Any, as_json: bool, **options: Any
    ) -> None:
        """Encode with the coder that `coder(integration)` returns, and print what was written."""
        with self.running() as ray, progress_bar("encoding", quiet=as_json) as progress:
            options |= {"progress": progress} | self.options
            facts = ray.encode(vectors, coder(ray), output, **options)
        _show(facts, "{rows:,} rows × {bits} bits in {target}: {size} in {parts} parts", as_json)

    def search(self, file: Any, queries: Any, output: Any, as_json: bool, **options: Any) -> None:
        """Search a collection, and print what was written."""
        with self.running() as ray, progress_bar("searching", quiet=as_json) as progress:
            options |= {"target": output, "progress": progress} | self.options
            facts = ray.search(file, queries, **options)
        _show(facts, "{rows:,} results of {queries:,} queries in {target}: {size}", as_json)


def _show(facts: dict[str, Any], line: str, as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    click.echo(printable(line.format(size=megabytes(facts["bytes"]), **facts)))
    if facts.get("skipped"):
        click.echo(f"embits: note: {facts['skipped']:,} bad rows skipped", err=True)


def _options(
    address: str, refused: tuple[str, ...], *options: Callable[[Any], Any]
) -> Callable[[Command], Command]:
    """Give a verb options, and what they say as `cluster`, which is None without --ray.

    The argument `address` may be in an object store with --ray only; those of `refused` not at all.
    """

    def decorated(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(ray: bool, ray_address: str | None, **others: Any) -> Any:
            shared = () if ray or address == "queries" else ("column", "ids")
            names = [name for name in _NAMES if name in others and name not in shared]
            given: dict[str, Any] = {name: others.pop(name) for name in names}
            if not ray and (ray_address or any(each is not None for each in given.values())):
                raise click.UsageError(f"--ray-address, --{', --'.join(names)} need --ray")
            if not ray and isinstance(others[address], str):
                raise click.UsageError(f"{others[address]} is not a local path: add --ray")
            if ray and (wrong := [name for name in refused if others.get(name)]):
                raise click.UsageError(f"--{wrong[0].split('_')[0]} cannot be used with --ray")
            if given.get("keep") is not None:
                given["keep"] = [name for name in given["keep"].split(",") if name]
            given |= {"ids": given.get("ids") or None, "overwrite": others["force"]}
            return command(cluster=Cluster(ray_address, given) if ray else None, **others)

        for each in (*options, *_SHARED):
            wrapped = each(wrapped)
        return wrapped  # type: ignore[return-value]

    return decorated


_NAMES = ("column", "ids", "keep", "workers")
_option = functools.partial(click.option, metavar="NAME")
_SHARED = (
    _option("--workers", type=WholeNumber(1), metavar="N", help="With --ray: parallel tasks."),
    _option("--ray-address", help="A running cluster, or auto [default: start one for this job]."),
    click.option("--ray", is_flag=True, help="Run on Ray: reads Parquet, and writes Parquet."),
)
ray_options = _options(
    "output",
    ("limit", "words", "repeats"),
    force_option("--overwrite", help="Replace a file that does not hold codes, or a folder."),
    _option("--keep", metavar="A,B", help="With --ray: columns to keep [default: all others]."),
)
search_ray_options = _options(
    "queries",
    ("tsv", "oversample", "floats", "words_file"),
    force_option("--overwrite"),
    _option("--column", help="With --ray: column of the vectors."),
    _option("--ids", help="With --ray: column that names the queries."),
)
