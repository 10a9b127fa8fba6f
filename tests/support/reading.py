"""CellBudget a file of vectors in a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from embits.errors import ReadError
from embits.readers import read_vectors
from embits.vectors import WordVectors

Write = Callable[[str | bytes], Path]

MATRIX = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)
WORDS = ["a", "b", "c"]


def rows(vectors: WordVectors) -> dict[str, list[float]]:
    assert vectors.words is not None
    return dict(zip(vectors.words, vectors.matrix.tolist(), strict=True))


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(ReadError) as caught:
        read_vectors(path, **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))
