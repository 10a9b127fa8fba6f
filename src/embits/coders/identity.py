"""A checksum that identifies a fitted coder."""

from __future__ import annotations

import hashlib

import numpy as np

from embits.coders.base import Coder


def coder_checksum(coder: Coder) -> str:
    """A checksum of a fitted coder: its method, its dimensions and what it has learned.

    Coders of one checksum give the same codes and rebuild the same vectors. Parameters of the fit
    do not count. A coder that was saved and loaded keeps its checksum.

    Example:
        >>> from embits.coders import RandomHyperplanes
        >>> X = np.eye(3)
        >>> a, b = (RandomHyperplanes(n_bits=8, random_state=seed).fit(X) for seed in (0, 1))
        >>> coder_checksum(a) == coder_checksum(a), coder_checksum(a) == coder_checksum(b)
        (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{coder.method} {coder.n_features_in_} {coder.n_bits_}".encode())
    for name, array in sorted(coder.state().items()):
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f" {name} {plain.dtype.str} {plain.shape}".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()
