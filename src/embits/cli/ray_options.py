"""`--ray`: encode and binarize with several workers, from Parquet to a folder of codes."""

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

from embits.cli.common import Command, megabytes, print_json, printable, progress_bar, writable
from embits.cli.completing import FLOATS, KnownPath
from embits.coders import Coder
from embits.errors import ClusterError, MissingExtraError

LOCAL = "local"


class Address(KnownPath):
    """A path; or a string as it is, where it is the address of an object store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if "://" in str(value) else Path(value)


ADDRESS, FLOATS_ADDRESS = Address(), Address(*FLOATS)


def _output(ctx: click.Context, _: click.Parameter, output: Path | str) -> Path | str:
    """A file that can be written, unless it is to be a folder."""
    return output if ctx.params["ray"] or isinstance(output, str) else writable(output)


output_option = click.option(
    "-o", "--output", type=ADDRESS, required=True, callback=_output,
    help="File to write; with --ray, the folder.",
)  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """What `--ray` and its options ask for."""

    address: str
    column: str | None
    ids: str | None
    keep: list[str] | None
    workers: int | None
    overwrite: bool

    @contextlib.contextmanager
    def running(self) -> Iterator[Any]:
        """`embits.integrations.ray`, while there is a cluster; what Ray has to say is not shown.

        Raises:
            MissingExtraError: Ray is not installed.
            ClusterError: There is no cluster at the address, or none can be started.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
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
        *, skip_bad: bool, as_json: bool,
    ) -> None:  # fmt: skip
        """Write the codes that `coder(integration)` gives, and say what was written."""
        with self.running() as integration, progress_bar("encoding", quiet=as_json) as progress:
            facts = integration.encode(
                vectors,
                coder(integration),
                output,
                column=self.column,
                ids=self.ids,
                keep=self.keep,
                on_bad="skip" if skip_bad else "raise",
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
            click.echo(f"embits: note: {facts['skipped']:,} bad rows left out", err=True)


def ray_options(command: Command) -> Command:
    """The options of a verb that may run on Ray; they come as `cluster`, None without `--ray`."""

    @functools.wraps(command)
    def wrapped(
        ray: bool,
        ray_address: str | None,
        column: str | None,
        ids: str | None,
        keep: str | None,
        workers: int | None,
        overwrite: bool,
        **others: Any,
    ) -> Any:
        if not ray and (ray_address or column or ids or keep is not None or workers or overwrite):
            raise click.UsageError(
                "--ray-address, --column, --ids, --keep, --workers and --overwrite go with --ray"
            )
        if ray and (others.get("limit") or others.get("words_file")):
            raise click.UsageError("--limit and --words do not go with --ray")
        names = None if keep is None else [name for name in keep.split(",") if name]
        address = ray_address or LOCAL
        cluster = Cluster(address, column, ids, names, workers, overwrite) if ray else None
        return command(cluster=cluster, **others)

    for option in (
        click.option("--overwrite", is_flag=True, help="With --ray: replace the folder."),
        click.option(
            "--workers", type=click.IntRange(min=1), metavar="N", help="With --ray: tasks at once."
        ),
        click.option(
            "--keep", metavar="A,B", help="With --ray: columns to keep [default: all others]."
        ),
        click.option("--ids", metavar="NAME", help="With --ray: the column of ids."),
        click.option("--column", metavar="NAME", help="With --ray: the column of vectors."),
        click.option(
            "--ray-address", metavar="ADDRESS",
            help="A running cluster, or auto [default: one on this machine, for this job].",
        ),
        click.option(
            "--ray", is_flag=True, is_eager=True,
            help="Many workers: Parquet in, a folder of codes out.",
        ),
    ):  # fmt: skip
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]
