"""Fixtures of the readers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embits.errors import ReadWarning
from tests.support.reading import MATRIX, Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write the text of vectors to a file."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "vectors.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def npy(tmp_path: Path) -> Path:
    """A matrix of three rows, without words."""
    path = tmp_path / "glove.npy"
    np.save(path, MATRIX)
    return path


@pytest.fixture
def no_silent_warning() -> Iterator[None]:
    """A warning that the test does not expect is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReadWarning)
        yield
