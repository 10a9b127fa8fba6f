"""Evaluation data sets and their files."""
