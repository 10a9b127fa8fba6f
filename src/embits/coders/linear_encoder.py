"""Deprecated since version 0.3: `LinearlyEncoded` is in `embits.coders`."""

import warnings

from embits.coders.linear import LinearlyEncoded as LinearlyEncoded

text = f"{__name__} is deprecated: import LinearlyEncoded from embits.coders"
warnings.warn(text, DeprecationWarning, 2)
