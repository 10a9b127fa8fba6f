"""The tasks that score codes, one module each."""

TASKS = (
    "similarity",
    "analogy",
    "neighbors",
    "reconstruction",
    "classification",
    "retrieval",
    "speed",
)
"""All tasks, in the order of the reports."""
DATA_TASKS = frozenset({"similarity", "analogy", "classification", "retrieval"})
"""Tasks that read data sets."""
