"""`--ray`: encode and binarize on a Ray cluster, from Parquet to a folder of codes."""

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
from embits.coders import Coder
from embits.errors import ClusterError, MissingExtraError

LOCAL = "local"


class Address(click.Path):
    """A path, or the address of an object store, which stays a string."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if "://" in str(value) else Path(value)


ADDRESS = Address()
OUTPUT_HELP = "File to write; with --ray, the folder."


@dataclass(frozen=True)
class Cluster:
    """The values of `--ray` and its options."""

    address: str
    column: str | None
    ids: str | None
    keep: list[str] | None
    workers: int | None
    overwrite: bool

    @contextlib.contextmanager
    def running(self) -> Iterator[Any]:
        """Connect to the cluster and give `embits.integrations.ray`; Ray's log is not shown.

        Raises:
            MissingExtraError: Ray is not installed.
            ClusterError: There is no cluster at the address, or none can be started.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage statistics are sent
        warnings.filterwarnings("ignore", category=FutureWarning, module="ray")
        warnings.filterwarnings("ignore", category=ResourceWarning)
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("--ray", "ray") from error
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if self.address == LOCAL:
            options |= {"num_cpus": self.workers, "include_dashboard": False}
        try:
            ray.init(self.address, **options)
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
        self, vectors: Path | str, coder: Callable[[Any], Coder], output: Path | str,
        *, on_bad: str, as_json: bool,
    ) -> None:  # fmt: skip
        """Encode with the coder that `coder(integration)` returns, and print what was written."""
        with self.running() as integration, progress_bar("encoding", quiet=as_json) as progress:
            facts = integration.encode(
                vectors,
                coder(integration),
                output,
                column=self.column,
                ids=self.ids,
                keep=self.keep,
                on_bad=on_bad,
                workers=self.workers,
                overwrite=self.overwrite,
                progress=progress,
            )
        if as_json:
            print_json(facts)
            return
        line = (
            f"{facts['rows']:,} rows × {facts['bits']} bits in {facts['target']}: "
            f"{megabytes(facts['bytes'])} in {facts['parts']} parts"
        )
        click.echo(printable(line))
        if facts["skipped"]:
            click.echo(f"embits: note: {facts['skipped']:,} bad rows skipped", err=True)


def ray_options(command: Command) -> Command:
    """The options of a verb that can run on Ray; it gets them as `cluster`, None without --ray."""

    @functools.wraps(command)
    def wrapped(
        ray: bool,
        ray_address: str | None,
        column: str | None,
        ids: str | None,
        keep: str | None,
        workers: int | None,
        **others: Any,
    ) -> Any:
        if not ray and (ray_address or column or ids or keep is not None or workers):
            raise click.UsageError(
                "--ray-address, --column, --ids, --keep and --workers need --ray"
            )
        if not ray and isinstance(others["output"], str):
            raise click.UsageError(f"{others['output']} is not a local path: add --ray")
        if ray and any(others.get(name) for name in ("limit", "words", "repeats")):
            raise click.UsageError("--limit, --words and --repeats cannot be used with --ray")
        names = None if keep is None else [name for name in keep.split(",") if name]
        address = ray_address or LOCAL
        cluster = Cluster(address, column, ids, names, workers, others["force"]) if ray else None
        return command(cluster=cluster, **others)

    keep = click.option(
        "--keep", metavar="A,B", help="With --ray: columns to keep [default: all others]."
    )
    force = force_option(
        "--overwrite",
        help="Replace an existing file that does not hold codes; with --ray, the folder.",
    )
    options = cluster_options(
        "Run on Ray: reads Parquet, writes a folder of codes.", "With --ray: column of the ids."
    )
    return options(keep(force(wrapped)))  # type: ignore[return-value]


def cluster_options(ray_help: str, ids_help: str) -> Callable[[Command], Command]:
    """The options that all verbs on Ray share."""

    def decorated(command: Command) -> Command:
        for option in (
            click.option(
                "--workers", type=WholeNumber(min=1), metavar="N",
                help="With --ray: parallel tasks.",
            ),
            click.option("--ids", metavar="NAME", help=ids_help),
            click.option("--column", metavar="NAME", help="With --ray: column of the vectors."),
            click.option(
                "--ray-address", metavar="ADDRESS",
                help="Address of a running cluster, or auto [default: start one for this job].",
            ),
            click.option("--ray", is_flag=True, help=ray_help),
        ):  # fmt: skip
            command = option(command)
        return command

    return decorated
