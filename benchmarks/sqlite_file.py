"""SQLite: export and exact search, beside an ordinary table and sqlite-vec's own query.

A part of databases.py, which runs it.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import embits
from database_tools import ROWS, in_turns, of_rows
from embits.integrations import sqlite


def single_file(bits: embits.BinaryVectors, _: str) -> Iterator[str]:
    many = of_rows(bits, ROWS)
    with tempfile.TemporaryDirectory() as folder:
        path, plain = Path(folder, "codes.db"), Path(folder, "plain.db")
        times = in_turns(
            {
                "export": lambda: new_file(many, path),
                "plain": lambda: plain_table(many, plain),
            }
        )
        size = path.stat().st_size
        sqlite.export(bits, str(path), overwrite=True)
        rows = np.random.default_rng(0).choice(len(bits), 60, replace=False).tolist()
        connection = sqlite.connect(path)
        select = "select id, distance from codes where code match vec_bit(?) and k = 11"
        asked = in_turns(
            {
                "nearest": lambda: [sqlite.nearest(connection, row) for row in rows],
                "sql": lambda: [
                    connection.execute(select, (sqlite.to_blob(bits.codes[row]),)).fetchall()
                    for row in rows
                ],
                "ours": lambda: [bits.search(bits.codes[row], k=11) for row in rows],
            }
        )
        same = sum(
            [(each.row, each.distance) for each in sqlite.nearest(connection, row)]
            == exact(bits, row)
            for row in rows
        )
        connection.close()
    yield f"## {ROWS:,} words of {many.n_bits} bits into one SQLite file"
    yield ""
    yield f"`embits export` {times['export']:.2f} s, {size / 1e6:.0f} MB; the same rows as "
    ratio = times["export"] / times["plain"]
    yield f"blobs of an ordinary table {times['plain']:.2f} s: ratio {ratio:.2f}."
    yield ""
    yield f"| ten nearest of {len(bits):,} | ms | times a search in this process |"
    yield "|---|---:|---:|"
    for name, what in {
        "nearest": f"`sqlite.nearest` ({same} of {len(rows)} answers equal to ours, ties included)",
        "sql": "sqlite-vec's own query",
        "ours": "`bits.search`, in this process",
    }.items():
        once = asked[name] / len(rows)
        yield f"| {what} | {1e3 * once:.2f} | {asked[name] / asked['ours']:.1f} |"
    yield ""


def exact(bits: embits.BinaryVectors, row: int) -> list[tuple[int, int]]:
    distances, rows = bits.search(bits.codes[row], k=11)
    pairs = list(zip(rows.tolist(), distances.tolist(), strict=True))
    return [pair for pair in pairs if pair[0] != row][:10]


def new_file(bits: embits.BinaryVectors, path: Path) -> None:
    path.unlink(missing_ok=True)
    sqlite.export(bits, str(path))


def plain_table(bits: embits.BinaryVectors, path: Path) -> None:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("create table codes (id integer primary key, word text unique, code blob)")
    rows = zip(range(len(bits)), bits.words, map(bytes, bits.codes), strict=True)
    connection.executemany("insert into codes values (?, ?, ?)", rows)
    connection.commit()
    connection.close()
