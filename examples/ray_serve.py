"""A search service on a Ray cluster, each of whose nodes holds some pieces of a collection.

    pip install '.[ray]' 'ray[serve]'      (in a checkout of embits)
    ray start --head        # and `ray start --address=HEAD:6379` on the other nodes
    python examples/ray_serve.py /shared/news --shards 3 --copies 2
    curl localhost:8000 -d '{"vector": [0.1, …], "k": 5}'

All nodes read the folder, at the same path. It is divided by pieces, so it needs as many as there
are shards (`compact` leaves one). Shards answer as `serve.py` does; merged, their answers are those
of one machine. Changes are shown after `--refresh` seconds. If a node dies, other copies of its
shards answer, and Ray starts new ones on the nodes that are left; an answer without some rows says
`"complete": false` and how many. Requests go to the head node. Takes about 20 seconds to start.
"""

import argparse
import asyncio
import contextlib
import time
from collections import deque
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from starlette.requests import Request
from starlette.responses import JSONResponse

import embits
import serve as one_machine
from embits.collection.manifest import Manifest
from embits.collection.pieces import State, open_state

TRIES = 3  # of a request whose state is gone, and of a shard whose copies die
SECONDS = 2  # that a shard has to answer, each time
ON_HEAD = {"num_cpus": 0, "resources": {"node:__internal_head__": 0.001}}


def shares(manifest: Manifest, n: int) -> list[Manifest]:
    """A state of the collection in n runs of pieces with about equal numbers of rows.

    The last one has the rows of the log, which come after those of all pieces.
    """
    rows = np.array([piece.live for piece in manifest.pieces])
    shards = (np.cumsum(rows) - rows / 2) * n // max(rows.sum(), 1)
    each = [zip(manifest.pieces, shards == number, strict=True) for number in range(n)]
    parts = [replace(manifest, pieces=tuple(p for p, mine in part if mine)) for part in each]
    return [*(replace(part, log=None) for part in parts[:-1]), parts[-1]]


@serve.deployment(max_replicas_per_node=1, max_ongoing_requests=100, health_check_period_s=1)
class Shard:
    """Some pieces of the collection, mapped."""

    def __init__(self, path: Path) -> None:
        self.path, self.opened = path, deque[State](maxlen=2)  # requests under way may need both

    def bits(self, mine: Manifest) -> embits.BinaryVectors | None:
        """The pieces of this shard in a state of the collection; None if that is gone."""
        opened = [each for each in self.opened if each.manifest.coder == mine.coder]
        same = [each for each in opened if each.listed == mine]
        if same and mine.log is None:  # a log may have more rows than before
            return same[-1].bits
        before, listed = (same or opened or [None])[-1], same[-1].listed if same else mine
        state = open_state(self.path, before=before, manifest=listed)
        if state.listed != mine:  # a writer has deleted some of the pieces
            return None
        if state is not before:
            self.opened.append(state)
        return state.bits

    def search(self, mine: Manifest, asked: dict[str, Any]) -> dict[str, Any]:
        """What `serve.py` answers, or an error; nothing if the state is gone."""
        if (bits := self.bits(mine)) is None:
            return {}
        where, here = asked.get("where"), []
        if one_machine.is_list_of(where, str, int):  # ids, some of which other shards have
            asked = asked | {"where": (here := [each for each in where if each in bits])}
        try:
            return one_machine.answer(bits, asked) | {"ids": len(here)}
        except (one_machine.BadRequestError, embits.InputError, embits.UnknownWordError) as error:
            return {"error": str(error)}


@serve.deployment(ray_actor_options=ON_HEAD, max_ongoing_requests=1000)
class Router:
    """Asks all shards, and merges what they find."""

    def __init__(self, path: Path, refresh: float, *shards: Any) -> None:
        self.path, self.refresh, self.shards = path, refresh, shards
        self.read, self.latest = time.monotonic(), open_state(path)

    async def part(self, shard: Any, *request: Any) -> dict[str, Any]:
        """What a shard finds; nothing if no copy of it answers."""
        for _ in range(TRIES):
            with contextlib.suppress(RayError, RayServeException, TimeoutError):  # it may have died
                return await asyncio.wait_for(shard.search.remote(*request), SECONDS)
        return {}

    async def __call__(self, request: Request) -> JSONResponse:
        try:
            asked = one_machine.parsed(await one_machine.body(request))
        except one_machine.BadRequestError as error:
            return error.response()
        if is_one := "vector" in asked:
            asked["vectors"] = [asked.pop("vector")]
        state: State | None = None
        for attempt in range(TRIES):
            if attempt or time.monotonic() - self.read > self.refresh:
                self.read = time.monotonic()
                self.latest = open_state(self.path, before=self.latest)
            if state and state.manifest == self.latest.manifest:  # a shard does not answer
                break
            state = self.latest
            mine = shares(state.listed, len(self.shards))
            asking = zip(self.shards, mine, strict=True)
            parts = await asyncio.gather(*(self.part(*each, asked) for each in asking))
            if all(parts):
                break
        n_rows = [each.rows for each in mine]
        n_rows[-1] += state.manifest.rows - sum(n_rows)  # those of the log
        missing = sum(n for n, each in zip(n_rows, parts, strict=True) if not each)
        there, where = [each for each in parts if each], asked.get("where")
        errors = [each["error"] for each in there if "error" in each]
        if one_machine.is_list_of(where, str, int) and not errors and not missing:
            n_unknown = len(where) - sum(each["ids"] for each in there)
            errors = [f"{n_unknown} of the {len(where)} ids of where are unknown"] * (n_unknown > 0)
        if errors:
            return JSONResponse({"error": errors[0]}, 400)
        lists = zip([[]] * len(asked["vectors"]), *(each["results"] for each in there), strict=True)
        best = [sorted(chain(*each), key=one_machine.order)[: asked["k"]] for each in lists]
        rest = {"complete": not missing, "missing_rows": missing}
        return JSONResponse({"results": best[0] if is_one else best} | rest)


def app(path: Path, shards: int, copies: int, refresh: float) -> serve.Application:
    kinds = [Shard.options(name=f"shard-{i}", num_replicas=copies) for i in range(shards)]
    return Router.bind(path, refresh, *(kind.bind(path) for kind in kinds))


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve a collection on a Ray cluster.")
    parser.add_argument("collection", type=lambda name: Path(name).resolve())
    for name, default in (("shards", 2), ("copies", 1), ("port", 8000), ("refresh", 1.0)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    given = parser.parse_args()
    ray.init(runtime_env={"working_dir": str(Path(__file__).parent)})  # serve.py for all nodes
    serve.start(http_options={"port": given.port})
    serve.run(app(given.collection, given.shards, given.copies, given.refresh), blocking=True)


if __name__ == "__main__":
    main()
