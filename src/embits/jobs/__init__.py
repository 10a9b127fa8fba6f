"""The jobs: from float vectors to bits, in memory or from file to file, in one call."""

from embits.jobs.encode import binarize, binarize_to_file, encode_to_collection, encode_to_file

__all__ = ["binarize", "binarize_to_file", "encode_to_collection", "encode_to_file"]
