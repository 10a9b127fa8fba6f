"""Training targets, and the length of a training."""

from __future__ import annotations

from typing import NamedTuple

from embits.coders.near_lossless.sampling import ASKING


class Target(NamedTuple):
    """What codes are trained to keep: γ and `drop` of whitening.py."""

    flatten: float
    drop: int


class Budget(NamedTuple):
    """Steps, and rows of a batch."""

    steps: int
    batch_size: int


TARGETS = {"neighbors": Target(0.25, 0), "similarity": Target(0.5, 1)}
GPU_BUDGET = Budget(3000, 2048)  # ten seconds
CPU_BATCH = 1024
CPU_WORK = 260 * 10**9  # multiplications: four seconds on two cores
MIN_STEPS, MAX_STEPS = 100, 1000
ENOUGH_ROWS = 10_000  # fewer rows need fewer steps


def budget(n_bits: int, dims: int, n: int, device: str) -> Budget:
    """How long to train on a sample of n rows.

    Example:
        >>> budget(256, 384, 50_000, "cpu"), budget(64, 384, 50_000, "cpu").steps
        (Budget(steps=368, batch_size=1024), 1000)
    """
    if device != "cpu":
        return GPU_BUDGET
    asking = CPU_BATCH // ASKING
    a_step = 2 * CPU_BATCH * dims * n_bits + asking * CPU_BATCH * (dims + 6 * n_bits)
    steps = CPU_WORK * min(n, ENOUGH_ROWS) // ENOUGH_ROWS // a_step
    return Budget(max(MIN_STEPS, min(MAX_STEPS, steps)), CPU_BATCH)
