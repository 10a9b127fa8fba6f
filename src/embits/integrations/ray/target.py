"""Atomic writing of a folder of codes, local or in an object store."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

from ray.data import Datasink
from ray.data.block import BlockAccessor

from embits._version import __version__
from embits.coders import Coder
from embits.coders.identity import coder_checksum
from embits.collection.manifest import CODER, MANIFEST, Manifest, Piece, manifest_json
from embits.errors import ClusterError, InputError
from embits.file.contents import write_coder
from embits.file.parquet_codes import CODE, locate
from embits.integrations.ray.pieces import COLUMNS, PieceReader, Run


@dataclass(frozen=True)
class Part:
    """A file that a worker wrote: its number in row order, its rows, and the bad rows left out."""

    number: int
    file: str
    rows: int
    bad: int


class PartWriter:
    """Writes tables of codes to a file with a unique name.

    A worker that is killed leaves a file that no manifest lists; the retry writes another.
    """

    def __init__(self, folder: str, facts: dict[str, Any]) -> None:
        self.folder = folder
        self.facts = facts

    def write(self, tables: Iterable[Any], number: int) -> Part:
        """Write tables in row order, without rows that have no code. Runs in a worker."""
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        files, folder = locate(self.folder)
        name = f"{number:08d}-{uuid4().hex}.parquet"
        rows = bad = 0
        writer = None
        with contextlib.ExitStack() as opened:
            for table in tables:
                if table.num_columns == 0:
                    continue  # Ray's empty table
                left_out = table.column(CODE).null_count
                if left_out:
                    table = table.filter(pc.is_valid(table.column(CODE)))
                bad += left_out
                rows += table.num_rows
                if writer is None:
                    schema = table.schema.with_metadata({"embits": json.dumps(self.facts)})
                    path = f"{folder}/{name}"
                    writer = opened.enter_context(
                        pq.ParquetWriter(path, schema, filesystem=files, write_page_checksum=True)
                    )
                writer.write_table(table.cast(schema))
        if writer is not None:
            _flush_to_disk(files, f"{folder}/{name}")
        return Part(number, name, rows, bad)


def write_piece(coded: PieceReader, writer: PartWriter, piece: list[Run]) -> Part:
    """Read a piece, encode it and write its codes. Runs in a worker."""
    columns: dict[str, Any] = {key: [run[key] for run in piece] for key in COLUMNS}
    return writer.write(coded(columns), piece[0]["piece"])


class CodeSink(Datasink):  # type: ignore[misc]
    """Writes the codes of each task of a dataset, and collects the parts."""

    def __init__(self, writer: PartWriter) -> None:
        self.writer = writer
        self.parts: list[Part] = []

    def write(self, blocks: Iterable[Any], ctx: Any) -> Part:
        """Write one task's blocks to one file. Runs in a worker."""
        tables = (BlockAccessor.for_block(block).to_arrow() for block in blocks)
        return self.writer.write(tables, ctx.task_idx)

    def on_write_complete(self, write_result: Any) -> None:
        """Collect the parts of all tasks, each once. Runs on the driver."""
        self.parts = write_result.write_returns


class Target:
    """The folder to write. Parts are staged in a sibling folder, or in it in an object store.

    Raises:
        InputError: The folder is not empty, and `overwrite` is false.
    """

    def __init__(self, address: str | os.PathLike[str], *, overwrite: bool) -> None:
        from pyarrow import fs

        self.address = os.fspath(address)
        self.files, self.path = locate(address)
        self.is_local = isinstance(self.files, fs.LocalFileSystem)
        info = self.files.get_file_info(self.path)
        if info.type == fs.FileType.File:
            raise InputError(f"{address}: is a file, expected a folder to write")
        there = info.type == fs.FileType.Directory and self.files.get_file_info(
            fs.FileSelector(self.path)
        )
        if there and not overwrite:
            raise InputError(
                f"{address}: holds {len(there)} files already: name another folder, or overwrite it"
            )
        parent, _, name = self.path.rpartition("/")
        token = uuid4().hex[:12]
        self._staging_path = (
            f"{parent}/.{name}.{token}.tmp" if self.is_local else f"{self.path}/_staging-{token}"
        )
        self.files.create_dir(self._staging_path)

    @property
    def staging(self) -> str:
        """Return the address of the folder that workers write to."""
        if self.is_local:
            return self._staging_path
        address, mark, options = self.address.partition("?")  # such as endpoint_override=…
        return f"{address.rstrip('/')}/{self._staging_path.rpartition('/')[2]}{mark}{options}"

    def commit(self, parts: list[Part], coder: Coder, ids: str | None) -> list[str]:
        """Rename the parts in order, write the manifest last, and put the folder in place.

        Args:
            parts: What the workers wrote, in row order.
            coder: The coder of the codes.
            ids: The column of the ids.

        Raises:
            ClusterError: A worker's file is missing: the machines do not share the folder.
        """
        self._check(parts)
        names = [f"part-{number:05d}.parquet" for number in range(len(parts))]
        manifest = collection_manifest(coder, names, [part.rows for part in parts], ids)
        folder = self._staging_path if self.is_local else self.path
        if not self.is_local:
            self._remove_old()
        for name, part in zip(names, parts, strict=True):
            self.files.move(f"{self._staging_path}/{part.file}", f"{folder}/{name}")
        self._write(f"{folder}/{CODER}", _coder_file(coder))
        if self.is_local:
            self._remove_strays({*names, CODER})
        self._write(f"{folder}/{MANIFEST}", manifest_json(manifest))
        if self.is_local:
            self._rename()
        else:
            self.discard()
        return names

    def discard(self) -> None:
        """Remove the staging folder."""
        with contextlib.suppress(OSError):
            self.files.delete_dir(self._staging_path)

    def _check(self, parts: list[Part]) -> None:
        from pyarrow import fs

        selector = fs.FileSelector(self._staging_path, allow_not_found=True)
        there = {info.base_name for info in self.files.get_file_info(selector)}
        missing = [part for part in parts if part.file not in there]
        if missing:
            raise ClusterError(
                f"{self.address}: {len(missing)} of {len(parts)} parts are missing: workers on "
                "other machines must write to a shared folder or an object store"
            )

    def _remove_strays(self, wanted: set[str]) -> None:
        """Remove files of tasks that were killed and retried."""
        from pyarrow import fs

        for info in self.files.get_file_info(fs.FileSelector(self._staging_path)):
            if info.base_name not in wanted:
                self.files.delete_file(info.path)

    def _remove_old(self) -> None:
        """In an object store, remove the manifest first: the folder is then unfinished."""
        from pyarrow import fs

        selector = fs.FileSelector(self.path, allow_not_found=True)
        old = [i for i in self.files.get_file_info(selector) if i.type == fs.FileType.File]
        for info in sorted(old, key=lambda info: info.base_name != MANIFEST):
            self.files.delete_file(info.path)

    def _rename(self) -> None:
        target, staged = Path(self.path), Path(self._staging_path)
        old = staged.with_suffix(".old")
        if target.exists():
            target.rename(old)
        staged.rename(target)
        if old.exists():
            self.files.delete_dir(str(old))

    def _write(self, path: str, content: bytes) -> None:
        with self.files.open_output_stream(path) as stream:
            stream.write(content)
        _flush_to_disk(self.files, path)


def collection_manifest(
    coder: Coder, names: list[str], rows: list[int], ids: str | None
) -> Manifest:
    """Return the manifest of a collection of Parquet files."""
    firsts = [0, *accumulate(rows)]
    pieces = tuple(
        Piece(name, count, first=0 if ids else first, column=ids)
        for name, count, first in zip(names, rows, firsts, strict=False)
    )
    return Manifest(
        bits=coder.n_bits_,
        dims=coder.n_features_in_,
        method=coder.method,
        coder=coder_checksum(coder),
        next_number=0 if ids else firsts[-1],
        ids="given" if ids else "numbers",
        pieces=pieces,
    )


def code_facts(coder: Coder) -> dict[str, Any]:
    """Return the facts for the schema of every part."""
    return {
        "bits": coder.n_bits_,
        "dims": coder.n_features_in_,
        "method": coder.method,
        "writer": f"embits {__version__}",
    }


def _coder_file(coder: Coder) -> bytes:
    """Return an embits file with the coder and no codes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, CODER)
        write_coder(path, coder)
        return path.read_bytes()


def _flush_to_disk(files: Any, path: str) -> None:
    """Flush a local file before it is renamed; an object store needs no flush."""
    if files.type_name == "local":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
