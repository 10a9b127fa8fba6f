"""Integrations with other tools: one module each, named after the tool, imported on first use.

An exporter is a function `export(bits, target, *, progress=None, option=default, …,
overwrite=False)`, which writes codes as the `export` here does. An entry in `EXPORTERS` makes it
available as `embits export --to NAME`; the function's options become `--param NAME=VALUE`.
Whatever reads codes back returns BinaryVectors.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from embits.arrays import Progress
from embits.errors import InputError, from_extra

if TYPE_CHECKING:
    from embits.binary_vectors import BinaryRows

Facts: TypeAlias = dict[str, Any]

EXPORTERS = {
    "duckdb": "duckdb.export",
    "elasticsearch": "engines.export_elasticsearch",
    "faiss": "faiss.export",
    "lancedb": "lancedb.export",
    "milvus": "milvus.export",
    "npy": "files.export_npy",
    "opensearch": "engines.export_opensearch",
    "paper": "files.export_paper",
    "pgvector": "pgvector.export",
    "sqlite": "sqlite.export",
    "vespa": "engines.export_vespa",
    "word2vec": "files.export_word2vec",
}


def export(
    bits: BinaryRows, to: str, target: str, *, progress: Progress | None = None,
    overwrite: bool = False, **options: Any,
) -> Facts:  # fmt: skip
    """Write codes for another tool, and return what the command line prints.

    Args:
        bits: What to write.
        to: The exporter, a key of `EXPORTERS`.
        target: A file, which is written atomically, or the address of a database.
        progress: Called with (done, total) as rows are written.
        overwrite: Replace an existing file; in a database, only a table that embits wrote.
        options: The exporter's own options.

    Raises:
        InputError: There is no such exporter, it has no such option or another value for it, it
            cannot hold the codes, or the target may not be replaced.
        DatabaseError: The database cannot be reached, is in use, or reports an error.
        MissingExtraError: The other tool's package is not installed.
    """
    if to not in EXPORTERS:
        raise InputError(f"there is no export to {to!r}; the exports are {', '.join(EXPORTERS)}")
    module, _, name = EXPORTERS[to].partition(".")
    exporter: Callable[..., Facts] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    takes = list(inspect.signature(exporter).parameters.values())[3:]  # after progress
    known = [each.name for each in takes if each.name != "overwrite"]
    is_open = any(each.kind is each.VAR_KEYWORD for each in takes)  # the exporter checks them
    if (unknown := sorted(set(options) - set(known))) and not is_open:
        has = f"takes {', '.join(known)}" if known else "takes no options"
        raise InputError(f"export to {to!r} {has}, not {', '.join(unknown)}")
    return exporter(bits.merged(), target, progress=progress, overwrite=overwrite, **options)


def package(name: str, purpose: str, extra: str) -> Any:
    """Import a package, or say which extra installs it."""
    with from_extra(purpose, extra):
        return importlib.import_module(name)
