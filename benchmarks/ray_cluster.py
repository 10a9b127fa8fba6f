"""A local Ray cluster of two processors, for benchmarks in which a worker has one thread."""

from __future__ import annotations

import logging
import os
import sys

import ray
import ray.data

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def start_cluster() -> None:
    """Start the cluster. Call this first: it may start the program again.

    NumPy's libraries read the number of threads when they are loaded, here and in the workers.
    """
    if any(os.environ.get(name) != "1" for name in THREADS):
        one_thread = os.environ | dict.fromkeys(THREADS, "1")
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], one_thread)
    ray.init(
        "local", num_cpus=2, include_dashboard=False, log_to_driver=False,
        logging_level=logging.ERROR, object_store_memory=500 << 20,
    )  # fmt: skip
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
