"""Node and Chromium for the tests of the page, and queries whose answers are compared."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import embits

HERE = Path(__file__).parent.parent / "page"
NODE = shutil.which("node")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def node_version():
    """The major version of Node.js, 0 where there is none."""
    said = subprocess.run([NODE, "--version"], capture_output=True, text=True) if NODE else None
    return int(re.match(r"v(\d+)", said.stdout)[1]) if said and said.returncode == 0 else 0


needs_node = pytest.mark.skipif(NODE is None, reason="needs Node.js: apt-get install nodejs")
needs_packages = pytest.mark.skipif(
    node_version() < 20 or not (HERE / "node_modules").is_dir(),
    reason="needs Node.js 20 or newer and packages: npm ci --prefix tests/page",
)
needs_chromium = pytest.mark.skipif(
    not Path(CHROMIUM).exists(), reason=f"needs {CHROMIUM}: apt-get install chromium"
)

DIMS = 24
# Weights of a query are float32 sums whose order is the matrix library's: the last digits differ.
TOLERANCE = 4e-6


def node(*arguments, **environment):
    """Run Node in tests/page and show what it said where it failed."""
    done = subprocess.run(
        [NODE, *map(str, arguments)],
        cwd=HERE,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refuses(path):
    """Whether Python finds the file damaged."""
    try:
        embits.load(path, verify=True)
    except embits.FormatError:
        return True
    return False


def clustered(n, seed):
    """Rows of forty clusters; the seed chooses the rows, not the clusters."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(7).normal(size=(40, DIMS))
    return (centers[rng.integers(0, 40, n)] + rng.normal(0, 0.7, (n, DIMS))).astype("f4")


def assert_same(found, expected):
    """The same values in each place, and the same rows where values are not tied up to rounding."""
    values, rows = (np.asarray(part) for part in expected)
    tolerance = TOLERANCE * max(1, np.abs(values).max(initial=0))  # inner products may be large
    assert np.allclose(found["values"], values, rtol=0, atol=tolerance)
    gaps = np.abs(np.diff(values)) > 2 * tolerance
    alone = np.append(gaps, False) & np.append(True, gaps)  # the last may be tied with the next row
    assert np.array_equal(np.asarray(found["rows"])[alone], rows[alone])
