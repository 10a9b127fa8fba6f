"""Requests a second and latencies of the example server, while clients ask on the same machine.

    python benchmarks/serving.py --write

Clients are processes with one connection each, which send a request as soon as the last one is
answered. The same numbers are taken while another process adds rows to the collection and compacts
it. The server's processor time is that of one request: a core answers so many requests a second. It
depends little on what else the machine does. "search" is the median of the same time of the search
alone, in this process. A measurement is repeated a few times while other programs take more than a
tenth of the processor time, and the quietest one is reported. Needs starlette and uvicorn.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

import embits
from quiet import seconds_of, timed

RESULTS = Path(__file__).parent / "results" / "serving.md"
EXAMPLE = Path(__file__).parents[1] / "examples" / "serve.py"
DIMS, BITS, K = 384, 256, 10
PORT = 8765
MAX_FOREIGN = 0.1

Latencies: TypeAlias = "multiprocessing.Queue[list[float]]"
Metric: TypeAlias = Literal["hamming", "asymmetric"]
METRICS: tuple[Metric, Metric] = ("hamming", "asymmetric")


@contextlib.contextmanager
def serving(folder: Path, workers: int) -> Iterator[int]:
    """Start the server; gives its process id."""
    command = [sys.executable, EXAMPLE, folder, "--port", PORT, "--workers", workers]
    command += ["--refresh", 0.2]
    process = subprocess.Popen(list(map(str, command)))
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                connection().request("GET", "/health")
                break
            time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def connection() -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)


def client(seed: int, seconds: float, asked: dict[str, Any], latencies: Latencies) -> None:
    """Ask for some seconds; put the latencies of all requests into the queue."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((64, DIMS)).round(4).tolist()
    bodies = [json.dumps({"vector": each, "k": K, **asked}) for each in vectors]
    http_client = connection()
    took: list[float] = []
    stop = time.perf_counter() + seconds
    while (start := time.perf_counter()) < stop:
        http_client.request("POST", "/search", bodies[len(took) % len(bodies)])
        response = http_client.getresponse()
        content = response.read()
        assert response.status == 200, content
        took.append(time.perf_counter() - start)
    latencies.put(took)


def writer(folder: Path, seconds: float) -> None:
    """Add a thousand rows ten times a second, and compact every second."""
    made = embits.open_collection(folder)
    rng = np.random.default_rng(0)
    stop, turn = time.perf_counter() + seconds, 0
    while time.perf_counter() < stop:
        made.add(rng.standard_normal((1000, DIMS), dtype=np.float32), columns=columns(1000))
        turn += 1
        if turn % 10 == 0:
            made.compact()
        time.sleep(0.1)


def columns(n: int) -> dict[str, list[Any]]:
    """A text and a year for each row."""
    return {"text": [f"The text of row {i}." for i in range(n)], "year": [*range(30)] * (n // 30)
            + [*range(n % 30)]}  # fmt: skip


def load(
    folder: Path, clients: int, seconds: float, asked: dict[str, Any], writes: bool
) -> list[float]:
    """The latencies of all clients, in seconds."""
    latencies: Latencies = multiprocessing.Queue()
    processes = [
        multiprocessing.Process(target=client, args=(seed, seconds, asked, latencies))
        for seed in range(clients)
    ]
    if writes:
        processes.append(multiprocessing.Process(target=writer, args=(folder, seconds)))
    for process in processes:
        process.start()
    took = [each for _ in range(clients) for each in latencies.get()]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return took


def quietest(
    work: Callable[[], list[float]], server: int, tries: int
) -> tuple[float, float, list[float]]:
    """The quietest of some tries.

    Returns:
        The share of the processors that others took, the seconds of processor time of the server,
        and the latencies.
    """
    best = 2.0, 0.0, list[float]()
    for _ in range(tries):
        before = seconds_of(server)
        _, others, took = timed(work)
        best = min(best, (others, seconds_of(server) - before, took), key=lambda each: each[0])
        if others <= MAX_FOREIGN:
            break
    return best


def search_ms(bits: embits.BinaryVectors, metric: Metric) -> float:
    """Milliseconds of processor time of one search without a server."""
    took = []
    for query in np.random.default_rng(1).standard_normal((200, DIMS), dtype=np.float32):
        start = time.process_time()
        bits.on(threads=1).search(query, K, metric=metric)
        took.append(time.process_time() - start)
    return 1000 * statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--tries", type=int, default=4)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    args = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "codes"
        rng = np.random.default_rng(0)
        coder = embits.RandomHyperplanes(BITS).fit(rng.standard_normal((100, DIMS)))
        made = embits.open_collection(folder, coder)
        codes = rng.integers(0, 256, (args.rows, BITS // 8), dtype=np.uint8)
        made.add(codes, columns=columns(args.rows))
        alone: dict[str, float] = {metric: search_ms(made, metric) for metric in METRICS}
        beside = {"columns": ["text", "year"]}
        for workers, clients, metric, writes, more in [
            (1, 1, "hamming", False, {}),
            (1, 4, "hamming", False, {}),
            (1, 16, "hamming", False, {}),
            (1, 16, "hamming", False, beside),
            (1, 16, "hamming", False, {**beside, "where": {"year": {">=": 15}}}),
            (1, 16, "hamming", True, {}),
            (1, 16, "asymmetric", False, {}),
            (2, 16, "hamming", False, {}),
        ]:
            with serving(folder, workers) as server:
                asked = {"metric": metric, **more}
                load(folder, clients, 1, asked, False)
                work = partial(load, folder, clients, args.seconds, asked, writes)
                others, processor, took = quietest(work, server, args.tries)
            p50, p99 = np.percentile(took, [50, 99]) * 1000
            of_server = 1000 * processor / len(took)
            doing = ", a writer at work" if writes else ""
            doing += ", with text and year" if more else ""
            doing += ", of half of the years" if "where" in more else ""
            lines.append(
                f"| {workers} | {clients} | {metric}{doing} | {len(took) / args.seconds:,.0f} | "
                f"{p50:.1f} | {p99:.1f} | {of_server:.2f} | {alone[metric]:.2f} | {others:.0%} |"
            )
            print(lines[-1], flush=True)
    head = [
        f"{args.rows:,} rows of {BITS} bits, queries of {DIMS} floats as JSON, k = {K}; "
        f"{os.cpu_count()} cores for the server and the clients, {embits.search.kernel().simd}. "
        "No request failed.",
        "",
        "| processes | clients | metric | requests a second | p50, ms | p99, ms "
        "| server's processor ms | search, ms | other programs |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    text = "\n".join([*head, *lines]) + "\n"
    print(text)
    if args.write:
        RESULTS.write_text("# Serving\n\n" + text)


if __name__ == "__main__":
    main()
