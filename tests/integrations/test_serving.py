"""The example server under load: right answers, bounded memory, no request fails during changes."""

import datetime
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import embits
from tests.support.vectors import clustered

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.support.server import serving

pytestmark = pytest.mark.slow
DIMS, THREADS = 24, 6
MAX_GROWTH = 24 << 20  # bytes; a leak of 4 kB per request would be 32 MB


@pytest.fixture(scope="module")
def matrix():
    return clustered(3000, DIMS)


@pytest.fixture
def collection(matrix, tmp_path):
    coder = embits.RandomHyperplanes(n_bits=256).fit(matrix)
    made = embits.open_collection(tmp_path / "news", coder)
    made.add(matrix[:2000], ids=[f"doc-{i}" for i in range(2000)])
    made.add(matrix[2000:], ids=[f"doc-{i}" for i in range(2000, 3000)])
    return made


def expected(bits, query, name, **options):
    if "exclude" in options:
        options["where"] = bits.select(options["where"], options.pop("exclude"))
    values, rows = bits.search(query, **options)
    names = bits.ids(rows).tolist()
    return [{"id": each, name: value} for each, value in zip(names, values.tolist(), strict=True)]


def in_threads(work, *arguments):
    """Run the work in several threads, and return what each returns."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS), *([each] * THREADS for each in arguments)))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory in /proc")
def test_answers_under_load_are_right_and_memory_stays_bounded(collection, matrix):
    def ask(number, times):
        rng, client = np.random.default_rng(number), server.client()
        for _ in range(times):
            query = matrix[rng.integers(len(matrix))] + np.float32(0.1)
            k = int(rng.integers(1, 20))
            name, options = [
                ("distance", {"metric": "hamming"}),
                ("score", {"metric": "asymmetric"}),
                (
                    "distance",
                    {"metric": "hamming", "where": some, "exclude": ["doc-3"]},
                ),
            ][rng.integers(3)]
            answer = client.ask(vector=query.tolist(), k=k, **options)
            assert answer == (200, {"results": expected(bits, query, name, k=k, **options)})

    bits, some = collection.snapshot(), [f"doc-{i}" for i in range(0, 90, 3)]
    with serving(collection.path) as server:
        in_threads(ask, 100)
        before = server.bytes()
        in_threads(ask, 1400)
        assert server.bytes() - before < MAX_GROWTH
        status, answer = server.client().ask(vectors=matrix[:3].tolist(), k=2, metric="hamming")
        assert status == 200
        near = [expected(bits, query, "distance", k=2, metric="hamming") for query in matrix[:3]]
        assert answer["results"] == near


def test_no_request_fails_while_a_writer_adds_and_compacts(collection, matrix):
    """Rows come and go, but doc-0 to doc-99 stay: each is always the nearest row of itself."""

    def ask(number):
        client, done = server.client(), 0
        while writer.is_alive() or done < 50:
            row = (number * 17 + done) % 100
            status, answer = client.ask(vector=matrix[row].tolist(), k=1, metric="hamming")
            assert (status, answer["results"][0]["distance"]) == (200, 0)
            done += 1
        return done

    def write():
        for turn in range(40):
            collection.add(matrix[:50] + 1, ids=[f"new-{turn}-{i}" for i in range(50)])
            collection.remove([f"doc-{i}" for i in range(100 + 10 * turn, 110 + 10 * turn)])
            if turn % 4 == 3:
                collection.compact()

    with serving(collection.path, "--refresh", "0.01") as server:
        writer = threading.Thread(target=write)
        writer.start()
        assert sum(in_threads(ask)) >= 50 * THREADS
        writer.join()
        wait_for(server, {"rows": len(collection), "bits": 256})
        query = matrix[49] + 1
        question = {"vector": query.tolist(), "k": 40, "metric": "hamming"}
        _, answer = server.client().ask(**question, where=["new-39-49"])
        assert answer["results"] == [{"id": "new-39-49", "distance": 0}]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no such signal")
def test_a_signal_refreshes_at_once(collection, matrix):
    with serving(collection.path, "--refresh", "3600") as server:
        collection.remove(["doc-7"])
        assert server.client().ask("/health")[1]["rows"] == 3000
        os.kill(server.process.pid, signal.SIGHUP)
        wait_for(server, {"rows": 2999, "bits": 256})


def test_a_file_is_served_by_several_processes(collection, matrix, tmp_path):
    collection.save(tmp_path / "news.safetensors")
    with serving(tmp_path / "news.safetensors", "--workers", "2") as server:
        for row in range(20):
            answer = server.client().ask(vector=matrix[row].tolist(), k=3, metric="hamming")
            near = expected(collection, matrix[row], "distance", k=3, metric="hamming")
            assert answer[1] == {"results": near}


def test_columns_are_returned_and_filtered_and_followed(matrix, tmp_path):
    """By two processes, of which each shows the new generation."""
    news = embits.open_collection(tmp_path / "news", embits.RandomHyperplanes(64).fit(matrix))
    days = [datetime.date(2020, 1, 1 + i % 28) for i in range(300)]
    columns = {
        "text": [f"text {i}" for i in range(300)],
        "year": [2000 + i % 30 for i in range(300)],
    }
    columns |= {"label": [["news", "sport", None][i % 3] for i in range(300)], "day": days}
    columns |= {
        "ratio": [float("inf"), *range(299)],
        "tags": [["a", str(i % 2)] for i in range(300)],
    }
    news.add(matrix[:300], [f"doc-{i}" for i in range(300)], columns=columns)

    def rows(**options):
        found = news.search(matrix[0], 4, metric="hamming", **options)
        names = ("id", "distance", "text", "year")
        values = found.ids, found.distances, found.column("text"), found.column("year")
        each = zip(*(value.tolist() for value in values), strict=True)
        return [dict(zip(names, row, strict=True)) for row in each]

    filters = [
        ({"label": "news"}, {"label": "news"}),
        ({"label": ["news", "sport"], "year": {">=": 2020}},
         {"label": ["news", "sport"], "year": (2020, None)}),
        ({"label": None, "year": {">": 2019, "<": 2022}}, {"label": None, "year": (2020, 2021)}),
        ({"tags": "1", "day": {"<=": "2020-01-07"}}, {"tags": "1", "day": (None, days[6])}),
        ({}, None),
    ]  # fmt: skip
    with serving(news.path, "--workers", "2", "--refresh", "0.01") as server:
        asked = {"vector": matrix[0].tolist(), "k": 4, "columns": ["text", "year"]}
        asked["metric"] = "hamming"
        for given, where in filters:
            answer = server.client().ask(**asked, where=given)
            assert answer == (200, {"results": rows(where=where)})
        [found] = server.client().ask(**asked | {"k": 1, "columns": ["day", "ratio", "tags"]})[1][
            "results"
        ]
        assert found["id"] == "doc-0"
        assert [found["day"], found["ratio"], found["tags"]] == ["2020-01-01", "inf", ["a", "0"]]
        for wrong, message in (
            ({"columns": ["nobody"]}, "no column 'nobody'"),
            ({"columns": ["id"]}, "'id' is given twice, or is part of every result"),
            ({"columns": "text"}, "columns is not a list"),
            ({"where": {"nobody": 1}}, "no column 'nobody'"),
            ({"where": {"year": {"~": 1}}}, "no operator '~'"),
            ({"where": {"year": "x"}}, "holds int"),
            ({"where": {"year": [[1]]}}, "holds int"),
        ):
            status, answer = server.client().ask(**asked | wrong)
            assert (status, message in answer["error"]) == (400, True), answer
        news.upsert(matrix[:1], ["doc-0"], columns={"text": ["new"], "year": [2030]})
        for _ in range(10):  # of both processes
            wait_for(server, {"rows": 300, "bits": 64})
        end = time.monotonic() + 30
        answers = []
        while answers[-10:] != [(200, {"results": rows()})] * 10 and time.monotonic() < end:
            answers.append(server.client().ask(**asked))
        assert answers[-1] == (200, {"results": rows()})


def test_bad_requests_get_one_line(collection, matrix):
    good = matrix[0].tolist()
    wrong = [
        ({"vector": good[:5]}, "shape (1, 5), expected (n, 24)"),
        ({"vector": [float("nan"), *good[1:]]}, "NaN"),
        ({"vector": [1e300, *good[1:]]}, "infinity"),
        ({"vector": ["a"] * 24}, "not lists of numbers"),
        ({"vectors": [good, good[:3]]}, "not lists of numbers of one length"),
        ({"vectors": []}, "expected (n, 24)"),
        ({"vectors": [good] * 1001}, "at most 1,000"),
        ({"vector": good, "k": 1001}, "k is 1001, expected 1 to 1000"),
        ({"vector": good, "k": 0}, "k is 0"),
        ({"vector": good, "k": "ten"}, "k is 'ten'"),
        ({"vector": good, "metric": "cosine"}, "metric is 'cosine'"),
        ({"vector": good, "where": ["nobody"]}, "'nobody'"),
        ({"vector": good, "exclude": [3]}, "no word or id '3'"),
        ({"vector": good, "where": ["doc-1", True]}, "where is not a list of ids"),
        ({"vector": good, "where": "doc-1"}, "where is not a list of ids"),
        ({"vector": good, "limit": 3}, "unknown field 'limit'"),
        ({"k": 3}, 'no "vector"'),
    ]
    with serving(collection.path) as server:
        client = server.client()
        for fields, message in wrong:
            status, answer = client.ask(**fields)
            assert status == 400
            assert message in answer["error"]
            assert "\n" not in answer["error"]
        assert client.send("/search", "not JSON") == (400, {"error": "the request is not JSON"})
        for size in (1 << 20) + 1, 17 << 20:
            status, answer = client.send("/search", b" " * size)
            assert (status, "more than 1,048,576 bytes" in answer["error"]) == (400, True)
        for deep in "[" * 100_000, '{"where":' * 100_000:
            assert client.send("/search", deep)[0] == 400
        for depth in 100, 400, 900, 2000, 20_000:
            nested = "[" * depth + "]" * depth
            for name in (
                "vector",
                "vectors",
                "k",
                "columns",
                "where",
                "metric",
                "recall",
                "rescore",
            ):
                fields = {"vector": good} | {name: 0}
                text = json.dumps(fields).replace(f'"{name}": 0', f'"{name}": {nested}')
                assert client.send("/search", text)[0] == 400, (name, depth)
            text = json.dumps({"vector": good, "where": {"doc": 0}}).replace("0}}", nested + "}}")
            assert client.send("/search", text)[0] == 400, depth
        for name in "where", "columns":
            assert client.send("/search", json.dumps({"vector": good, name: ["\ud800"]}))[0] == 400
        assert client.ask(vector=good, **{"\ud800" * 1000: 1})[0] == 400
        assert client.ask(vectors=[good] * 1000, k=101)[0] == 400
        assert server.client().ask(vector=good, k=1)[0] == 200


def by_hand(server, request, *parts):
    """Send a request in parts until there is an answer, and return that when the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(request.encode().replace(b"\n", b"\r\n"))
        for part in parts:
            client.sendall(part)
            if select.select([client], [], [], 0.1)[0]:
                break
        answer = b""
        while received := client.recv(1 << 16):
            answer += received
    return answer.decode()


SLOW = "POST /search HTTP/1.1\nHost: localhost\nContent-Length: 1000\n\n"


def test_a_body_that_comes_slowly_is_cut_off(collection, matrix):
    with serving(collection.path, "--body-seconds", "1") as server:
        answer = by_hand(server, SLOW, b"{")
        assert answer.startswith("HTTP/1.1 408 ")
        assert answer.endswith('{"error":"the request took more than 1 s"}')
        assert "408" in by_hand(server, SLOW, *[b" "] * 30)  # a byte now and then is no progress
        assert server.client().ask(vector=matrix[0].tolist(), k=1)[0] == 200


def test_only_names_of_the_server_are_answered(collection):
    """So that a page at a name of its own, which is made to point here, reads nothing."""
    hosts = {"localhost": 200, "LOCALHOST:8000": 200, "127.0.0.1:1": 200, "[::1]:80": 200}
    hosts |= {"10.1.2.3": 200, "news.example.org": 200, "evil.example.org": 400, "": 400}
    hosts |= {"localhost.evil.org": 400, "news.example.org.evil.org:80": 400, "[::1": 400}
    with serving(collection.path, "--allow-host", "News.example.org") as server:
        for path in "/health", "/search", "/":
            for host, status in hosts.items():
                request = f"GET {path} HTTP/1.1\nHost: {host}\nConnection: close\n\n"
                is_refused = "400 Bad" in by_hand(server, request)
                assert is_refused == (status == 400), (host, path)
    with serving(collection.path, "--allow-host", "*") as server:
        request = "GET /health HTTP/1.1\nHost: any.example.org\nConnection: close\n\n"
        assert " 200 OK" in by_hand(server, request)


def test_a_client_that_leaves_is_no_traceback(collection, matrix):
    """`serving` reads the log at its end."""
    body = json.dumps({"vectors": matrix[:500].tolist(), "k": 100}).encode()[: 1 << 20]
    with serving(collection.path) as server:
        for length, sent in (1000, b"{"), (1000, b""), (len(body), body):
            for _ in range(5):
                with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
                    begin = f"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}"
                    client.sendall(begin.encode() + b"\r\n\r\n" + sent)
        assert server.client().ask(vector=matrix[0].tolist(), k=1)[0] == 200


def wait_for(server, state):
    deadline = time.monotonic() + 60
    while (found := server.client().ask("/health")[1]) != state:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def test_a_collection_that_is_put_in_place_of_another_is_served(collection, matrix, tmp_path):
    other = embits.RandomHyperplanes(n_bits=64, random_state=1).fit(matrix)
    embits.open_collection(tmp_path / "new", other).add(
        matrix[:10], [f"new-{i}" for i in range(10)]
    )
    with serving(collection.path, "--refresh", "0.05") as server:
        client = server.client()
        collection.path.rename(tmp_path / "old")
        (tmp_path / "new").rename(collection.path)
        until = time.monotonic() + 30
        while client.ask("/health")[1] != {"rows": 10, "bits": 64}:
            assert time.monotonic() < until
            time.sleep(0.05)
        status, answer = client.ask(vector=matrix[3].tolist(), k=1)
        assert status == 200
        assert "new-3" in str(answer)
