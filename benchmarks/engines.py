"""DuckDB, LanceDB and Milvus Lite: export, exact search, filters, and the recall of an index.

A part of databases.py, which runs it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import embits
from embits.integrations import duckdb, export, lancedb, milvus
from embits.integrations.table import Neighbor

QUERIES = 60
NPROBES = (5, 20, 50, 100, 200)


def engines(bits: embits.BinaryVectors, _: str) -> Iterator[str]:
    yield f"## {len(bits):,} words of {bits.n_bits} bits in DuckDB, LanceDB and Milvus Lite"
    yield ""
    yield "| | export | ten nearest | of 1 % of the rows | times a search in this process | equal |"
    yield "|---|---:|---:|---:|---:|---:|"
    with tempfile.TemporaryDirectory() as folder:
        sources = [
            ("DuckDB, table", duckdb, "duckdb", Path(folder, "codes.duckdb"), duckdb.connect),
            ("DuckDB, Parquet", duckdb, "duckdb", Path(folder, "codes.parquet"), Path),
            ("LanceDB, no index", lancedb, "lancedb", Path(folder, "lance"), lancedb.connect),
            ("Milvus Lite, BIN_FLAT", milvus, "milvus", Path(folder, "codes.db"), milvus.connect),
        ]
        for name, module, to, path, connect in sources:
            yield _exact_line(bits, name, module, to, path, connect)
        yield ""
        yield from _column_types(bits, folder)
        yield from _index(bits, Path(folder, "indexed"))


def _rows(bits: embits.BinaryVectors) -> list[int]:
    return np.random.default_rng(0).choice(len(bits), QUERIES, replace=False).tolist()


def _median(ask: Callable[[int], object], rows: list[int]) -> float:
    times = []
    for row in rows:
        start = time.perf_counter()
        ask(row)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _exact_line(
    bits: embits.BinaryVectors, name: str, module: Any, to: str, path: Path, connect: Any
) -> str:
    start = time.perf_counter()
    export(bits, to, str(path))
    exported = time.perf_counter() - start
    source, rows = connect(path), _rows(bits)
    module.nearest(source, bits.codes[0])  # what was never read comes from the disk
    asked = _median(lambda row: module.nearest(source, bits.codes[row], 10), rows)
    few = f"id < {len(bits) // 100}"
    some = _median(lambda row: module.nearest(source, bits.codes[row], 10, where=few), rows)
    ours = _median(lambda row: bits.search(bits.codes[row], 10), rows)
    same = sum(_pairs(module.nearest(source, bits.codes[row], 10)) == exact(bits, row)
               for row in rows)  # fmt: skip
    if hasattr(source, "close"):
        source.close()
    return (
        f"| {name} | {exported:.1f} s | {1e3 * asked:.1f} ms | {1e3 * some:.1f} ms "
        f"| {asked / ours:.0f} | {same} of {len(rows)} |"
    )


def _pairs(found: list[Neighbor]) -> list[tuple[int, int]]:
    return [(each.row, each.distance) for each in found]


def exact(bits: embits.BinaryVectors, row: int) -> list[tuple[int, int]]:
    distances, rows = bits.search(bits.codes[row], 10)
    return list(zip(rows.tolist(), distances.tolist(), strict=True))


def _column_types(bits: embits.BinaryVectors, folder: str) -> Iterator[str]:
    """DuckDB's BIT beside the columns of 64-bit integers that the export writes."""
    import duckdb as package
    import pyarrow as pa

    width, n = bits.codes.shape[1], len(bits)
    flat = pa.py_buffer(np.ascontiguousarray(bits.codes))
    blobs = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), n, [None, flat])
    block = pa.table({"id": np.arange(n), "code": blobs.cast(pa.binary())})
    with package.connect(str(Path(folder, "codes.duckdb"))) as connection:
        connection.register("block", block)
        connection.execute("create table as_bits as select id, code::bit as code from block")
        select = (
            "select id, bit_count(xor(code, ?::blob::bit)) d from as_bits order by d, id limit 10"
        )
        as_bits = _median(
            lambda row: connection.execute(select, [bits.codes[row].tobytes()]).fetchall(),
            _rows(bits),
        )
        as_integers = _median(
            lambda row: duckdb.nearest(connection, bits.codes[row], 10), _rows(bits)
        )
    yield (
        f"DuckDB, the same query on a column of type BIT: {1e3 * as_bits:.1f} ms, "
        f"{as_bits / as_integers:.1f} times as long as on columns of UBIGINT."
    )
    yield ""


def _index(bits: embits.BinaryVectors, path: Path) -> Iterator[str]:
    start = time.perf_counter()
    lancedb.export(bits, str(path), index="ivf_flat")
    made = time.perf_counter() - start
    database, rows = lancedb.connect(path), _rows(bits)
    within = {row: exact(bits, row)[-1][1] for row in rows}
    yield f"LanceDB with IVF_FLAT, √n partitions, exported in {made:.1f} s:"
    yield ""
    yield "| | recall@10 | median ms |"
    yield "|---|---:|---:|"
    for nprobes in NPROBES:
        lancedb.PARTITIONS = nprobes
        found = [lancedb.nearest(database, bits.codes[row], 10) for row in rows]
        spent = _median(lambda row: lancedb.nearest(database, bits.codes[row], 10), rows)
        recall = np.mean(
            [
                sum(each.distance <= within[row] for each in neighbors) / 10
                for row, neighbors in zip(rows, found, strict=True)
            ]
        )
        yield f"| nprobes {nprobes} | {recall:.3f} | {1e3 * spent:.1f} |"
    yield ""
