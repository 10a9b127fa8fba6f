"""A search server over a collection or a file: Starlette and uvicorn.

    pip install . starlette uvicorn      (in a checkout of embits)
    python examples/serve.py served --port 8000
    curl localhost:8000/search -d '{"vector": [0.1, …], "k": 5}'
    curl localhost:8000/search -d '{"vector": [0.1, …], "where": {"label": ["news", "sport"],
        "year": {">=": 2020, "<": 2024}}, "columns": ["text", "year"]}'

Searches run in a pool of threads, one core each, while the event loop takes requests. The server
shows changes of the collection within `--refresh` seconds, or at once after `kill -HUP`; requests
that are under way keep the state that they started with. `--workers 4` starts four processes, which
share the memory of the mapped files. Takes about a second to start.

It answers requests for `localhost`, for an IP address, and for the names of `--allow-host`: a web
page cannot ask it by a name of its own that points here (DNS rebinding). Bodies have at most 1 MB
and `--body-seconds` to arrive. Put a proxy in front of it where strangers can reach it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import json
import logging
import os
import re
import signal
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import embits
from embits.columns import Condition

MAX_K = 1000
MAX_QUERIES = 1000
MAX_RESULTS = 100_000  # of a request: queries times k
MAX_BYTES = 1 << 20  # reading that much JSON takes tens of milliseconds, and others wait
BODY_SECONDS = 10.0
FILTERS = {"where", "exclude"}
OPTIONS = FILTERS | {"metric", "rescore", "recall", "probes"}
FIELDS = OPTIONS | {"vector", "vectors", "k", "columns"}
OPERATORS = "=", "!=", "<", "<=", ">", ">="


class BadRequestError(Exception):
    """A request that cannot be answered; the text says why."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status

    def response(self) -> Response:
        """The answer; a connection that was too slow is closed after it."""
        headers = {"Connection": "close"} if self.status == 408 else None
        return JSONResponse({"error": str(self)}, self.status, headers)


class AllowedHosts:
    """Refuses requests for other names than these; IP addresses are not names."""

    def __init__(self, app: ASGIApp, names: list[str]) -> None:
        self.app, self.names = app, {"localhost", *map(str.lower, names)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An application of ASGI."""
        app = self.app
        if scope["type"] == "http" and not self._is_allowed(Request(scope).headers.get("host", "")):
            refusal = BadRequestError("the Host of the request is not allowed: see --allow-host")
            app = refusal.response()
        await app(scope, receive, send)

    def _is_allowed(self, host: str) -> bool:
        name = re.sub(r":\d*$", "", host).lower()
        with contextlib.suppress(ValueError):
            return bool(ipaddress.ip_address(name.removeprefix("[").removesuffix("]")))
        return name in self.names or "*" in self.names


class Server:
    """The state of one process: the collection, the snapshot that is searched, and the threads."""

    def __init__(self, path: str, refresh: float, body_seconds: float) -> None:
        self.path, self.body_seconds = path, body_seconds
        self.collection = embits.load(path)
        self.bits = self._snapshot()  # replaced as a whole: a search reads it once
        self.seconds = refresh
        self.threads = ThreadPoolExecutor(os.cpu_count())

    def _snapshot(self) -> embits.BinaryVectors:
        is_file = not isinstance(self.collection, embits.Collection)
        return self.collection if is_file else self.collection.snapshot()

    @contextlib.asynccontextmanager
    async def running(self, _: Starlette) -> AsyncIterator[None]:
        """Refresh the collection while the server runs."""
        changed = asyncio.Event()
        if hasattr(signal, "SIGHUP"):  # not on Windows
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, changed.set)
        task = asyncio.create_task(self._refresh(changed))
        yield
        task.cancel()
        self.threads.shutdown()

    def _is_changed(self) -> bool:
        try:
            return self.collection.refresh()
        except embits.InputError:  # another collection, with another coder, is in its place
            self.collection = embits.load(self.path)
            return True

    async def _refresh(self, changed: asyncio.Event) -> None:
        logged = ""
        while isinstance(self.collection, embits.Collection):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), self.seconds)
            changed.clear()
            try:
                if await asyncio.to_thread(self._is_changed):
                    self.bits = self._snapshot()
                logged = ""
            except (embits.EmbitsError, OSError) as error:  # serve what is open, and try again
                if str(error) != logged:
                    logging.getLogger("uvicorn.error").error("refresh: %s", error)
                logged = str(error)

    async def search(self, request: Request) -> Response:
        """POST /search: the nearest rows of a vector, or of several."""
        try:
            content = await body(request, self.body_seconds)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.threads, response, self.bits, content)
        except BadRequestError as error:
            return error.response()

    async def health(self, _: Request) -> Response:
        """GET /health: what is served."""
        return JSONResponse({"rows": len(self.bits), "bits": self.bits.n_bits})


async def body(request: Request, seconds: float = BODY_SECONDS) -> bytes:
    """The body of a request, if it is not too long and comes in time."""
    content = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BYTES:
                    most = f"{MAX_BYTES:,} bytes: send fewer vectors at a time"
                    raise BadRequestError(f"the request has more than {most}")
    except TimeoutError:
        raise BadRequestError(f"the request took more than {seconds:g} s", 408) from None
    except ClientDisconnect:  # nobody reads this
        raise BadRequestError("the client left") from None
    return bytes(content)


def response(bits: embits.BinaryVectors, content: bytes) -> Response:
    """Answer a request. Runs in a thread: reading and writing JSON take a while too."""
    try:
        return JSONResponse(answer(bits, parsed(content)))
    except BadRequestError as error:
        return error.response()
    except (embits.InputError, embits.UnknownWordError) as error:
        return JSONResponse({"error": str(error)}, status_code=400)


def parsed(content: bytes) -> dict[str, Any]:
    """The fields of a request."""
    try:
        asked = json.loads(content)
    except (ValueError, RecursionError):
        raise BadRequestError("the request is not JSON") from None
    if not isinstance(asked, dict) or ("vector" in asked) == ("vectors" in asked):
        raise BadRequestError('the request has no "vector" or "vectors", or has both')
    if unknown := sorted(set(asked) - FIELDS):
        raise BadRequestError(f"unknown field {unknown[0]!r:.50}")
    k = asked.setdefault("k", 10)
    if type(k) is not int or not 1 <= k <= MAX_K:
        raise BadRequestError(f"k is {k!r:.20}, expected 1 to {MAX_K}")
    if not is_list_of(asked.setdefault("columns", []), str):
        raise BadRequestError("columns is not a list of names")
    for name in FILTERS & asked.keys():
        if isinstance(asked[name], dict):
            asked[name] = conditions(name, asked[name])
        elif not is_list_of(asked[name], str, int):  # row numbers are not accepted: they change
            raise BadRequestError(f"{name} is not a list of ids, or columns with their values")
    return asked


def is_list_of(value: Any, *types: type) -> bool:
    return isinstance(value, list) and set(map(type, value)) <= set(types)


def conditions(name: str, given: dict[str, Any]) -> list[Condition] | dict[str, Any]:
    """A filter on columns: a value, a list of values, or operators with their values for each."""
    found = []
    for column, asked in given.items():
        if not isinstance(asked, dict):
            asked = {"in" if isinstance(asked, list) else "=": asked}
        elif unknown := sorted(set(asked) - set(OPERATORS)):
            raise BadRequestError(
                f"{name} has no operator {unknown[0]!r:.50}; there are {OPERATORS}"
            )
        found += [Condition(column, op, value) for op, value in asked.items()]
    return found or {}


def answer(bits: embits.BinaryVectors, asked: dict[str, Any]) -> dict[str, Any]:
    """The results of a request. Runs in a thread: the native search does not hold the GIL."""
    queries = vectors_of(asked, bits.dims)
    options = {name: asked[name] for name in OPTIONS & asked.keys()}
    where = bits.select(options.pop("where", None), options.pop("exclude", None))
    if "probes" in options:
        options["recall"] = embits.Probes(options.pop("probes"))
    found = bits.on(threads=1).search(queries, asked["k"], where=where, **options)
    values = {"id": found.ids, found._fields[0].removesuffix("s"): found[0]}  # distance or score
    for name in asked["columns"]:
        if name in values:
            raise BadRequestError(f"columns: {name!r} is given twice, or is part of every result")
        values[name] = found.column(name)
    lists = zip(*(jsonable(each.tolist()) for each in values.values()), strict=True)
    results = [[dict(zip(values, row, strict=True)) for row in zip(*q, strict=True)] for q in lists]
    return {"results": results[0] if "vector" in asked else results}


def jsonable(value: Any) -> Any:
    """A value of a column; dates, times and infinite numbers as text."""
    if isinstance(value, list):
        return [jsonable(each) for each in value]
    is_plain = isinstance(value, str | int | None) or (type(value) is float and isfinite(value))
    return value if is_plain else str(value)


def order(result: dict[str, Any]) -> float:
    """The smallest is the best."""
    values = (result[name] for name in ("score", "cosine") if name in result)
    return -next(values) if "distance" not in result else result["distance"]


def vectors_of(asked: dict[str, Any], dims: int) -> np.ndarray:
    """The queries of a request, float32 of shape (q, dims)."""
    given = [asked["vector"]] if "vector" in asked else asked["vectors"]
    try:
        queries = np.array(given, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise BadRequestError("the vectors are not lists of numbers of one length") from None
    if queries.ndim != 2 or queries.shape[1] != dims:
        raise BadRequestError(f"vectors of shape {queries.shape}, expected (n, {dims})")
    if len(queries) > MAX_QUERIES:
        raise BadRequestError(f"{len(queries):,} vectors, expected at most {MAX_QUERIES:,}")
    if len(queries) * asked["k"] > MAX_RESULTS:
        raise BadRequestError(f"more than {MAX_RESULTS:,} results: ask for a smaller k at a time")
    return queries


def app() -> Starlette:
    """The application of one process; a process that uvicorn starts gets its settings from here."""
    options = json.loads(os.environ["EMBITS_SERVE"])
    server = Server(options["collection"], options["refresh"], options["body_seconds"])
    routes = [
        Route("/search", server.search, methods=["POST"]),
        Route("/health", server.health),
    ]
    hosts = Middleware(AllowedHosts, names=[options["host"], *options["allow_host"]])
    return Starlette(routes=routes, middleware=[hosts], lifespan=server.running)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collection", help="the folder of a collection, or a file")
    parser.add_argument("--host", default="127.0.0.1", help="(default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="(default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument(
        "--refresh", type=float, default=1.0, metavar="S", help="seconds (default: %(default)s)"
    )
    parser.add_argument(
        "--body-seconds",
        type=float,
        default=BODY_SECONDS,
        metavar="S",
        help="that the body of a request may take (default: %(default)s)",
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a name under which clients reach this server; * for any (can be repeated)",
    )  # fmt: skip
    options = parser.parse_args()
    try:
        embits.load(options.collection)
    except (embits.EmbitsError, OSError) as error:
        parser.exit(1, f"serve.py: {error}\n")
    os.environ["EMBITS_SERVE"] = json.dumps(vars(options))
    uvicorn.run(
        "serve:app", factory=True, app_dir=str(Path(__file__).parent), host=options.host,
        port=options.port, workers=options.workers, log_level="warning",
    )  # fmt: skip


if __name__ == "__main__":
    main()
