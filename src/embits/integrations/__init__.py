"""Integrations with other tools: one module each, named after the tool, imported on first use.

An exporter is a module with a function
`export(bits, target, *, progress=None, option=default, …)`. It writes the codes of a
BinaryVectors to `target` and returns what the command line prints. It never replaces a file
unless its option `overwrite` is true. An entry in `EXPORTERS` makes
it available as `embits export --to NAME`; the function's options become `--param NAME=VALUE`.

Whatever reads codes back returns BinaryVectors.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, TypeAlias

from embits.arrays import Progress
from embits.errors import InputError

if TYPE_CHECKING:
    from embits.binary_vectors import BinaryVectors

Facts: TypeAlias = dict[str, Any]

EXPORTERS = {
    "duckdb": "embits.integrations.duckdb",
    "faiss": "embits.integrations.faiss",
    "lancedb": "embits.integrations.lancedb",
    "milvus": "embits.integrations.milvus",
    "npy": "embits.integrations.npy",
    "paper": "embits.integrations.paper",
    "pgvector": "embits.integrations.pgvector",
    "sqlite": "embits.integrations.sqlite",
    "word2vec": "embits.integrations.word2vec",
}


def export(
    bits: BinaryVectors,
    to: str,
    target: str,
    *,
    progress: Progress | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Facts:
    """Write codes for another tool.

    Args:
        bits: What to write.
        to: The exporter, a key of `EXPORTERS`.
        target: A file, or the address of a database.
        progress: Called with (done, total) as rows are written.
        overwrite: Replace existing files. Databases have no such option: what embits did not
            write there is never replaced.
        options: The exporter's own options.

    Raises:
        InputError: There is no such exporter, it has no such option, or the target may not be
            replaced.
        MissingExtraError: The other tool's package is not installed.
    """
    if to not in EXPORTERS:
        raise InputError(f"there is no export to {to!r}; the exports are {', '.join(EXPORTERS)}")
    exporter = importlib.import_module(EXPORTERS[to]).export
    known = list(inspect.signature(exporter).parameters)[3:]  # after bits, target, progress
    if "overwrite" in known:
        known.remove("overwrite")
        options["overwrite"] = overwrite
    elif overwrite:
        raise InputError(f"export to {to!r} replaces only what embits wrote: it has no overwrite")
    if unknown := sorted(set(options) - {*known, "overwrite"}):
        has = f"takes {', '.join(known)}" if known else "takes no options"
        raise InputError(f"export to {to!r} {has}, not {', '.join(unknown)}")
    facts: Facts = exporter(bits.merged(), target, progress=progress, **options)
    return facts
