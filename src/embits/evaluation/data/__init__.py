"""Evaluation data sets and the files they come in."""
