"""A fit on few rows: close to a random rotation, and it says so."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import embits
from embits import ITQ, NearLossless, RandomHyperplanes
from embits.coders.near_lossless.sampling import ENOUGH_ROWS
from embits.coders.near_lossless.training import budget
from embits.coders.near_lossless.whitening import Shaping, Target
from embits.errors import TrainingWarning

DIMS, BITS = 96, 64


def rows(n, seed):
    """Directions of a falling spectrum around a mean of length about a third."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, DIMS)) / np.sqrt(np.arange(1, DIMS + 1))
    X[:, 5] += 0.7
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype("f4")


def recall(coder, among, queries):
    nearest = np.argsort(-(queries @ among.T), axis=1)[:, :10]
    bits = embits.BinaryVectors(None, coder.encode(among), coder)
    found = bits.search(queries, 10, metric="asymmetric").rows
    return (nearest[:, :, None] == found[:, None, :]).any(axis=2).mean()


@pytest.mark.filterwarnings("ignore:fitted on")
@pytest.mark.parametrize("n", [3, 10, 40, 150])
def test_float_queries_find_as_many_as_with_a_rotation_or_random_planes(n):
    among, queries = rows(3000, 1), rows(200, 2)
    scores = {
        kind: np.mean(
            [recall(kind(BITS, random_state=s).fit(rows(n, 7 + s)), among, queries) for s in (0, 1)]
        )
        for kind in (NearLossless, ITQ, RandomHyperplanes)
    }
    assert scores[NearLossless] >= max(scores[ITQ], scores[RandomHyperplanes]) - 0.005


def test_a_fit_on_few_rows_says_so_once():
    with pytest.warns(TrainingWarning) as caught:
        NearLossless(BITS, steps=2).fit(rows(50, 0))
    (said,) = caught
    assert str(said.message) == "fitted on 50 rows; codes keep more neighbors with 384 or more"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NearLossless(BITS, steps=2).fit(rows(4 * DIMS, 0))


def test_itq_says_that_lengths_vary():
    X = np.random.default_rng(0).normal(size=(2000, 16))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    with warnings.catch_warnings(action="error"):
        embits.ITQ(16).fit(X)
    X *= np.exp(np.random.default_rng(1).uniform(-1, 1, size=(2000, 1)))
    with pytest.warns(TrainingWarning, match="lengths of vectors vary widely") as said:
        embits.ITQ(16).fit(X)
    assert said[0].filename == __file__


def test_few_rows_are_trained_less_and_shrunk():
    assert budget(256, 384, 5, "cpu").steps == 0
    assert budget(256, 384, 500, "cpu").steps == 18
    assert budget(256, 384, 500, "cuda").steps == 300
    mean = rows(10_000, 3).mean(axis=0)
    few = rows(8, 4)
    shaping = Shaping.fit(few, Target(0.25, 0))
    assert np.linalg.norm(shaping.mean - mean) < np.linalg.norm(few.mean(axis=0) - mean)
    assert np.linalg.cond(shaping.matrix) < 1.5


def test_enough_rows_are_taken_at_their_word():
    X = rows(ENOUGH_ROWS, 5)
    np.testing.assert_array_equal(
        Shaping.fit(X, Target(0.25, 0)).mean, X.mean(axis=0, dtype=np.float64)
    )


FIT = """
import sys, warnings
import numpy as np
from embits import NearLossless
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(30, 300))
sys.stdout.buffer.write(NearLossless(128).fit(X).encode(X).tobytes())
"""


def test_fewer_rows_than_dimensions_give_the_same_codes_for_any_number_of_threads():
    made = [
        subprocess.run(
            [sys.executable, "-c", FIT],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    ]
    assert made[0] == made[1] != b""
