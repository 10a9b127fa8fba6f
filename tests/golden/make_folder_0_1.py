"""Make folders as a job on Ray of embits 0.1 wrote them, once: they are never made again.

    python tests/golden/make_folder_0_1.py

Writes folder-0.1 (with ids) and folder-0.1-rows. Parts and manifest follow the code of version 0.1;
they were not written by it. The coder is that of collection-v1.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
WORDS = ["the", "Zürich", "日本", "a b", "naïve", "<img src=x onerror=alert(1)>", "queen"]
CODES = bytes.fromhex("07112079de4014c4a05751204846109f33c09f33c0")
FACTS = {"bits": 20, "dims": 12, "method": "lsh", "writer": "embits 0.1.0"}


def make(folder: Path, ids: str | None) -> None:
    folder.mkdir()
    codes = np.frombuffer(CODES, np.uint8).reshape(-1, 3)
    parts = []
    for number, rows in enumerate((slice(0, 4), slice(4, 7))):
        column = pa.array([code.tobytes() for code in codes[rows]], pa.binary(3))
        table = pa.table({"word": WORDS[rows], "code": column})
        schema = table.schema.with_metadata({"embits": json.dumps(FACTS)})
        name = f"part-{number:05d}.parquet"
        with pq.ParquetWriter(folder / name, schema, write_page_checksum=True) as writer:
            writer.write_table(table.cast(schema))
        parts.append({"file": name, "rows": table.num_rows})
    facts = {**FACTS, "ids": ids, "rows": len(codes), "skipped": 0}
    manifest = {"format": "embits codes", "version": 1, **facts, "parts": parts}
    shutil.copy(HERE / "collection-v1" / "_coder.safetensors", folder)
    (folder / "_embits.json").write_bytes(json.dumps(manifest, indent=1).encode())


if __name__ == "__main__":
    make(HERE / "folder-0.1", "word")
    make(HERE / "folder-0.1-rows", None)
