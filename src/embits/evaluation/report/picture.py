"""The paper's picture of active bits: the codes closest to a word above, the furthest below.

Vertical stripes in the upper half are bits that neighbors share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryVectors
from embits.bits import invert
from embits.errors import InputError
from embits.evaluation.report.image_files import FORMATS
from embits.search import top_k

N_WORDS = 50
PALETTE = ((255, 255, 255), (205, 28, 28), (70, 70, 70))  # 0, 1, separator
_GAP = 3


def bit_rows(bits: BinaryVectors, word: str, n: int = N_WORDS) -> NDArray[np.uint8]:
    """The bits of the n closest words, closest first, then of the n furthest, furthest last.

    Returns:
        0 and 1, shape (2 n, n_bits), or fewer rows if there are fewer words; without the word
        itself.

    Raises:
        UnknownWordError: The word is unknown.
    """
    if n < 1:
        raise InputError(f"n is {n}, expected 1 or more")
    code = bits[word]
    codes = np.ascontiguousarray(bits.codes)
    opposite = invert(code, bits.n_bits)
    own = bits.words.find(word)
    halves = []
    for query in (code, opposite):
        _, rows = top_k(codes, query, n + 1)
        halves.append(rows[rows != own][:n])
    closest, furthest = halves
    shown = np.concatenate([closest, furthest[::-1]])
    return np.unpackbits(codes[shown], axis=1, count=bits.n_bits)


def bit_picture(
    bits: BinaryVectors, words: Sequence[str], n: int = N_WORDS, suffix: str = ".png"
) -> bytes:
    """A picture of `bit_rows` of each word, one below the other: red is 1, white is 0.

    A dark line separates the closest from the furthest words, a thicker one the panels.

    Args:
        bits: The binary vectors.
        words: One or more words.
        n: Number of closest and of furthest words.
        suffix: The file format: ".png", ".svg" or ".pdf".

    Returns:
        The content of the file.

    Raises:
        InputError: No word, or another suffix.
        UnknownWordError: A word is unknown.

    Example:
        >>> import numpy as np, embits
        >>> bits = embits.binarize(np.random.default_rng(0).normal(size=(200, 8)), 64, "lsh")
        >>> bit_picture(bits, ["0"])[:4]
        b'\\x89PNG'
    """
    if not words:
        raise InputError("a picture needs at least one word")
    if suffix.lower() not in FORMATS:
        raise InputError(
            f"cannot draw a picture as {suffix or 'a file without suffix'!r}: use one of "
            f"{', '.join(FORMATS)}"
        )
    scale = max(1, min(8, 1024 // bits.n_bits))
    panels = []
    for word in words:
        rows = bit_rows(bits, word, n)
        middle = (len(rows) + 1) // 2
        for half in (rows[:middle], rows[middle:]):
            panels.append(np.kron(half, np.ones((scale, scale), dtype=np.uint8)))
            panels.append(np.full((_GAP, bits.n_bits * scale), 2, dtype=np.uint8))
        panels.append(np.full((3 * _GAP, bits.n_bits * scale), 2, dtype=np.uint8))
    return FORMATS[suffix.lower()](np.concatenate(panels[:-2]), PALETTE)
