"""Deprecated since version 0.3: `LinearlyDecoded` is in `embits.coders`."""

import warnings

from embits.coders.linear import LinearlyDecoded as LinearlyDecoded

text = f"{__name__} is deprecated: import LinearlyDecoded from embits.coders"
warnings.warn(text, DeprecationWarning, 2)
