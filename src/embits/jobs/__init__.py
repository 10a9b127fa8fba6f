"""The jobs: from float vectors to bits, in memory or from file to file, in one call.

Readers and streaming are imported inside functions: a program that only searches needs neither.
"""

from embits.jobs.in_memory import binarize
from embits.jobs.to_collection import encode_to_collection
from embits.jobs.to_file import binarize_to_file, encode_to_file

__all__ = ["binarize", "binarize_to_file", "encode_to_collection", "encode_to_file"]
