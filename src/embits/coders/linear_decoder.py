"""Deprecated since version 0.3: `LinearlyDecoded` is in `embits.coders`."""

import warnings

from embits.coders.linear import LinearlyDecoded as LinearlyDecoded

warnings.warn(
    f"{__name__} is deprecated: import LinearlyDecoded from embits.coders", DeprecationWarning, 2
)
