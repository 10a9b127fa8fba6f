"""The default coder, and the steps of its training."""

from embits.coders.near_lossless.coder import NearLossless

__all__ = ["NearLossless"]
