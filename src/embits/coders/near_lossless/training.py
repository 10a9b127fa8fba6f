"""The descent of NearLossless: steps at a falling rate, and a look at the held-out recall."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress
from embits.coders.backend import Backend
from embits.coders.near_lossless import loss as objective
from embits.coders.near_lossless.sampling import ASKING, Batches, HeldOut, Split
from embits.coders.near_lossless.whitening import Shaping
from embits.errors import TrainingError

Start = tuple[NDArray[np.float64], NDArray[np.float64]]  # weights and bias on shaped rows

LEARNING_RATES = objective.Weights(3e-3, 3e-3, 0.02, 0.02)
WARM_UP = 30  # steps in which the learning rate rises
CHECKS = 4  # looks at the held-out recall in a fit


def descend(
    unit: NDArray[np.float32],
    split: Split,
    shaping: Shaping,
    start: Start,
    steps: int,
    *,
    batch_size: int,
    rate: float,
    on: Backend,
    rng: np.random.Generator,
    progress: Progress | None,
) -> tuple[Start, NDArray[np.float64]]:
    """Descend from `start` on unit rows; the rate falls from a share `rate` of the usual to zero.

    Returns:
        The weights and bias with the best held-out recall, and a row of steps, loss and
        recall for each look.
    """
    held_out = HeldOut(shaping.apply(unit, split.check), split.queries)
    descent = Descent(shaping.apply(unit, split.train), start, batch_size, on, rng)
    best, best_recall = start, held_out.recall(*start)
    curve = np.empty((0, 3))
    legs = np.diff(np.linspace(0, steps, min(steps, CHECKS) + 1).astype(int))
    rates = np.linspace(rate, 0, len(legs) + 1)
    for leg, (first, last) in zip(legs.tolist(), pairwise(rates.tolist()), strict=True):
        loss = descent.run(leg, first, last)
        weights = descent.weights()
        recall = held_out.recall(*weights)
        curve = np.vstack([curve, (descent.done, loss, recall)])
        if recall > best_recall:
            best, best_recall = weights, recall
        if progress is not None:
            progress(descent.done, steps)
    return best, curve


class Descent:
    """The state of a descent, on the device.

    Attributes:
        done: Steps so far.
    """

    def __init__(
        self,
        x: NDArray[np.float32],
        start: Start,
        batch_size: int,
        on: Backend,
        rng: np.random.Generator,
    ) -> None:
        self.done = 0
        self._on = on
        self._size = min(batch_size, len(x))
        self._batches = Batches(x, rng)
        scale = np.full(1, math.log(objective.FIRST_SCALE), np.float32)
        W, t = (part.astype(np.float32) for part in start)
        self._x = on.put(x)
        asking = -(-self._size // ASKING)
        self._not_self = on.put(-objective.FAR_BELOW * np.eye(asking, self._size, dtype=np.float32))
        self._weights = objective.Weights(*map(on.put, (W, t, scale, scale.copy())))
        self._adam = objective.Adam(on.xp, self._weights, LEARNING_RATES)

    def run(self, steps: int, rate: float, last_rate: float) -> float:
        """Some steps, at a share of the learning rates that goes from one to the other.

        Returns:
            Their mean loss.
        """
        xp, total = self._on.xp, 0.0
        for step in range(steps):
            rows = self._batches.draw(self._size)
            x = xp.take(self._x, self._on.put(rows), axis=0)
            not_self = self._not_self[: len(rows), : len(rows)]
            loss, gradient = objective.loss_and_gradient(xp, self._weights, x, not_self)
            self.done += 1
            share = rate + (last_rate - rate) * step / steps
            self._adam.step(self._weights, gradient, share * min(1, self.done / WARM_UP))
            total = loss + total
        mean = float(total) / steps
        if not math.isfinite(mean):
            raise TrainingError(f"training diverged (loss {mean}) before step {self.done}")
        return mean

    def weights(self) -> Start:
        """Weights and bias in host memory."""
        W, t = self._on.get(self._weights.W), self._on.get(self._weights.t)
        return W.astype(np.float64), t.astype(np.float64)
