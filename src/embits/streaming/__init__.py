"""Larger than memory: a file of vectors in, a file of bits out, a block of rows at a time.

A job makes several passes over its input (`passes`). It records in a folder beside its target
what is done (`checkpoint`), so that it can be resumed after a kill; `steps` puts the passes
together, and `identity` tells whether a folder belongs to the same job.
"""
