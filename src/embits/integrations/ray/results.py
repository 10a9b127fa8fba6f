"""Results in a Parquet file, local or in an object store, which appears when it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from embits.errors import InputError
from embits.file.overwrite import OVERWRITE
from embits.file.parquet_codes import is_address, locate
from embits.integrations import Facts


class ResultFile:
    """A Parquet file that is written table by table.

    Raises:
        InputError: It exists, and `overwrite` is false; or it is a folder.
    """

    def __init__(self, target: str | os.PathLike[str], *, overwrite: bool) -> None:
        from pyarrow import fs

        self.target = os.fspath(target)
        self._files, self._path = locate(target)
        kind = self._files.get_file_info(self._path).type
        if kind == fs.FileType.Directory:
            raise InputError(f"{target} is a folder, expected a Parquet file to write")
        if kind == fs.FileType.File and not overwrite:
            raise InputError(f"{target} exists: choose another output, or {OVERWRITE}")
        if not is_address(self.target) and not Path(self._path).parent.is_dir():
            raise InputError(f"{target}: there is no folder {Path(self._path).parent}")
        self._writer: Any = None
        self._rows = 0

    @contextlib.contextmanager
    def written(self) -> Iterator[ResultFile]:
        """Write to a temporary file, which is renamed at the end and removed after an error."""
        folder, _, name = self._path.rpartition("/")
        self._temporary = f"{folder}/.{name}.{uuid4().hex[:12]}.tmp"
        try:
            yield self
            self._close()
            self._files.move(self._temporary, self._path)
        except BaseException:  # also Ctrl-C: leave nothing half-written
            self._close()
            with contextlib.suppress(OSError):
                self._files.delete_file(self._temporary)
            raise

    def write(self, columns: dict[str, Any]) -> None:
        """Add rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table(columns)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._temporary, table.schema, filesystem=self._files)
        self._writer.write_table(table.cast(self._writer.schema))
        self._rows += table.num_rows

    def facts(self) -> Facts:
        """What was written: target, rows and bytes."""
        size = self._files.get_file_info(self._path).size
        return {"target": self.target, "rows": self._rows, "bytes": size}

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None
