"""The tasks that score codes, one module each."""
