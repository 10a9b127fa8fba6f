"""A Ray cluster of three nodes on this machine, one of which can be killed while it works."""

import contextlib
import tempfile
import threading
import time
from pathlib import Path

import pytest

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

N_NODES = 3
MEMORY = 100 << 20  # of a node's object store, in bytes
WAIT_SECONDS = 60


@contextlib.contextmanager
def three_nodes(cpus=1, **head):
    """Start a cluster and connect to it: its head runs the driver, and no task."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)  # nobody else's `ray.init()` finds this cluster
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        for name in ("READY_CHECK", "HEALTH_CHECK"):  # on a busy machine
            patch.setenv(f"RAY_SERVE_PROXY_{name}_TIMEOUT_S", "60")
        patch.delenv("RAY_ADDRESS", raising=False)
        options = {"include_dashboard": False, "object_store_memory": MEMORY, **head}
        cluster = cluster_utils.Cluster(
            initialize_head=True, head_node_args={"num_cpus": 0, **options}
        )
        try:
            for _ in range(N_NODES - 1):
                cluster.add_node(num_cpus=cpus, object_store_memory=MEMORY)
            ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


def at_work(node, task):
    """The processes of a node that are at work on a task of this name."""
    raylet = node.all_processes["raylet"][0].process.pid
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            title = (entry / "cmdline").read_bytes()
            parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if title.startswith(b"ray::") and task.encode() in title and int(parent) == raylet:
            found.append(int(entry.name))
    return found


@contextlib.contextmanager
def killed_at_work(cluster, task, started):
    """Kill a node while it works on a task, after `started` is set; gives the list of its ids."""
    killed, done = [], threading.Event()

    def kill():
        started.wait(WAIT_SECONDS)
        while not killed and not done.is_set():
            for node in list(cluster.worker_nodes):
                if at_work(node, task):
                    killed.append(node.node_id)
                    cluster.remove_node(node, allow_graceful=False)
                    return
            time.sleep(0.001)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        done.set()
        started.set()
        killer.join()
