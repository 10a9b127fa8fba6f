"""The example server in a process of its own, and a client that keeps its connection."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "serve.py"
START_SECONDS = 60


class Client:
    """One connection to a server."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __del__(self):
        self.connection.close()

    def ask(self, path="/search", **fields):
        """The status of a request and its JSON; fields are sent by POST."""
        return self.send(path, json.dumps(fields) if fields else None)

    def send(self, path, body):
        self.connection.request("GET" if body is None else "POST", path, body)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())


class Server:
    """A server that runs; `bytes` is the memory of its process without mapped files."""

    def __init__(self, port, process):
        self.port, self.process = port, process

    def client(self):
        return Client(self.port)

    def bytes(self):
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        line = next(line for line in lines if line.startswith("RssAnon"))
        return int(line.split()[1]) << 10


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextlib.contextmanager
def serving(collection, *options):
    """Start the example on a free port, wait until it answers, and stop it at the end."""
    port = free_port()
    command = [sys.executable, EXAMPLE, collection, "--port", port, *options]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True)
    try:
        _wait(port, process)
        yield Server(port, process)
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors, errors


def _wait(port, process):
    for _ in range(START_SECONDS * 20):
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(OSError):
            Client(port).ask("/health")
            return
        time.sleep(0.05)
    raise AssertionError("the server did not start")
