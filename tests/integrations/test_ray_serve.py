"""The example of a search service on a cluster: answers of one machine, or a plain word."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

import embits
from tests.support.server import Client, free_port
from tests.support.vectors import clustered

pytest.importorskip("ray.serve")

from tests.support.ray_nodes import at_work, three_nodes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the replicas in /proc"),
]
EXAMPLE = Path(__file__).parents[2] / "examples" / "ray_serve.py"
DIMS, SHARDS, WAIT_SECONDS = 24, 4, 180


@contextlib.contextmanager
def serving(cluster, folder):
    """Start the example on the cluster; gives the port."""
    port = free_port()
    command = [sys.executable, EXAMPLE, folder, "--shards", SHARDS, "--port", port]
    environment = os.environ | {"RAY_ADDRESS": cluster.address}
    command = list(map(str, [*command, "--refresh", 0.1]))
    with tempfile.TemporaryFile() as log, contextlib.ExitStack() as stack:
        for _ in range(3):  # on a busy machine, Ray Serve may give up while it starts
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            stack.callback(process.wait, 60)
            stack.callback(process.terminate)
            if is_started(port, process):
                break
        try:
            yield port
        except BaseException:
            log.seek(0)
            print(log.read().decode(errors="replace")[-8000:])
            raise


def is_started(port, process):
    """Whether the program answers, before it ends."""
    end = time.monotonic() + WAIT_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):
            if "error" in Client(port).ask("/", k=0)[1]:
                return True
        time.sleep(0.1)
    return False


def wait_for(port, expected, is_changing=False, **asked):
    """Ask until the answer is as expected; those before must say that they are not complete."""
    end, before = time.monotonic() + WAIT_SECONDS, []
    while time.monotonic() < end:
        with contextlib.suppress(OSError, ValueError):  # it is starting, and answers in plain text
            answer = Client(port).ask("/", **asked)
            if answer == (200, expected):
                return
            assert not answer[1].get("complete") or is_changing, answer
            before.append(answer)
        time.sleep(0.1)
    raise AssertionError(f"expected {expected}, found {before[-3:]}")


def results(bits, query, **options):
    """What the service answers; its shards find what one machine finds."""
    query = np.array(query, np.float32)
    where = bits.selections(query, options.pop("where", None), options.pop("exclude", None), None)
    found = bits.search(query, where=where, **options)
    name = found._fields[0].removesuffix("s")
    items = zip(found.ids.tolist(), found[0].tolist(), strict=True)
    return [{"id": each, name: value} for each, value in items]


def piece_of(result):
    return result["id"].split("-")[0]


def whole(bits, query, **options):
    return {"results": results(bits, query, **options), "complete": True, "missing_rows": 0}


def test_a_cluster_answers_as_one_machine_and_says_what_a_dead_node_held(tmp_path):
    matrix = clustered(5000, DIMS)
    coder = embits.RandomHyperplanes(n_bits=128).fit(matrix)
    news = embits.open_collection(tmp_path / "news", coder)
    for number, part in enumerate(np.split(matrix, [2000, 3200, 4100, 4700])):
        years = {"year": np.arange(len(part))}
        news.add(part, ids=[f"{number}-{i}" for i in range(len(part))], columns=years)
        news.remove([f"{number}-{i}" for i in range(0, 60 * number, 9)])
        if not number:
            news.compact(cells=20)  # most of the pieces that follow are in cells, too
    assert len(news.manifest.pieces) == 5
    query = matrix[7].tolist()
    with three_nodes(cpus=2) as cluster, serving(cluster, news.path) as port:
        wait_for(port, whole(news, query, k=9), vector=query, k=9)
        client = Client(port)
        some = {"where": ["0-1", "1-2", "2-200", "4-299"], "exclude": ["1-2", "nobody"]}
        read = {"recall": 1, "metric": "asymmetric"}
        for options in (read, some, {"metric": "decoded", **some}, {"k": 40}):
            options = {"k": 7, **options}
            wait_for(port, whole(news, query, **options), vector=query, **options)
        found = news.search(matrix[7], 5, where={"year": (200, 299)})
        years = found.column("year").tolist()
        of_years = results(news, query, k=5, where={"year": (200, 299)})
        of_years = [each | {"year": year} for each, year in zip(of_years, years, strict=True)]
        asked = {"vector": query, "k": 5, "where": {"year": {">=": 200, "<": 300}}}
        expected = {"results": of_years, "complete": True, "missing_rows": 0}
        wait_for(port, expected, columns=["year"], **asked)
        near = {"k": 3, "metric": "hamming"}  # scores of a batch are rounded differently
        two = whole(news, matrix[0], **near) | {
            "results": [results(news, each, **near) for each in matrix[:2]]
        }
        wait_for(port, two, vectors=matrix[:2].tolist(), **near)
        for wrong, message in (
            ({"where": ["0-1", "nobody"]}, "1 of the 2 ids of where are unknown"),
            ({"metric": "cosine"}, "metric is 'cosine'"),
            ({"k": 0}, "k is 0"),
        ):
            status, answer = client.ask("/", vector=query, **wrong)
            while status == 200:  # a busy shard did not answer in time
                assert not answer["complete"]
                status, answer = client.ask("/", vector=query, **wrong)
            assert (status, message in answer["error"]) == (400, True)

        news.upsert(matrix[7:8], ids=["new"])  # a new state
        news.remove(["0-7"])
        wait_for(port, whole(news, query, k=9), is_changing=True, vector=query, k=9)

        [node, *_] = [each for each in cluster.worker_nodes if at_work(each, "shard-0")]
        cluster.remove_node(node, allow_graceful=False)
        deadline = time.monotonic() + 60
        status, answer = client.ask("/", vector=query, k=1000)
        while (status, answer["complete"]) == (200, True) and time.monotonic() < deadline:
            status, answer = client.ask("/", vector=query, k=1000)  # processes outlive their node
        assert (status, answer["complete"]) == (200, False)
        pieces = {piece_of(each) for each in answer["results"]}
        everything = results(news, query, k=len(news))
        there = [each for each in everything if piece_of(each) in pieces]
        assert answer["results"] == there[:1000]
        assert answer["missing_rows"] == len(everything) - len(there) > 0

        cluster.add_node(num_cpus=2)
        wait_for(port, whole(news, query, k=9), vector=query, k=9)

        news.compact()
        wait_for(port, whole(news, query, k=9), vector=query, k=9)
        news.add(matrix[7:8], ids=["newer"])
        wait_for(port, whole(news, query, k=9), is_changing=True, vector=query, k=9)
