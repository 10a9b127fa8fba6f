"""Bit arithmetic."""
