"""Neural: see coder.py."""

from embits.coders.neural.coder import Neural

__all__ = ["Neural"]
