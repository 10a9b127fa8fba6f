"""Codes as features for scikit-learn: a pipeline step that unpacks bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError
from embits.integrations import package


def unpack_bits(n_bits: int | None = None) -> Any:
    """Return a `Pipeline` step that turns packed codes into one column of 0 or 1 per bit.

    It is a `sklearn.preprocessing.FunctionTransformer`, whose `inverse_transform` packs again.
    `n_bits` of None takes all bits of a code's bytes, including the padding, which is 0.

    Example:
        >>> import numpy as np, embits
        >>> from sklearn.pipeline import make_pipeline
        >>> steps = make_pipeline(embits.RandomHyperplanes(n_bits=12), unpack_bits(12))
        >>> steps.fit_transform(np.eye(3)).shape
        (3, 12)
    """
    return package("sklearn.preprocessing", "unpack_bits", "sklearn").FunctionTransformer(
        _unpack, inverse_func=_pack, kw_args={"n_bits": n_bits}, feature_names_out=_names,
        check_inverse=False,
    )  # fmt: skip


def _unpack(codes: Any, n_bits: int | None) -> NDArray[np.uint8]:
    codes = np.asarray(codes)
    if codes.dtype != np.uint8 or codes.ndim != 2:
        found = f"codes are {codes.dtype} of shape {codes.shape}"
        raise InputError(f"{found}, expected packed uint8 (n, width)")
    if n_bits is not None and not 0 < n_bits <= 8 * codes.shape[1]:
        raise InputError(f"n_bits is {n_bits} for codes of {8 * codes.shape[1]} bits")
    return np.unpackbits(codes, axis=1, count=n_bits)


def _pack(bits: Any) -> NDArray[np.uint8]:
    return np.packbits(np.asarray(bits, dtype=np.uint8), axis=1)


def _names(transformer: Any, _: Any) -> list[str]:
    n_bits = transformer.kw_args["n_bits"] or 8 * transformer.n_features_in_
    return [f"bit{i}" for i in range(n_bits)]
