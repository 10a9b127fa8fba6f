"""Deprecated since version 0.3: `LinearlyEncoded` is in `embits.coders`."""

import warnings

from embits.coders.linear import LinearlyEncoded as LinearlyEncoded

warnings.warn(
    f"{__name__} is deprecated: import LinearlyEncoded from embits.coders", DeprecationWarning, 2
)
