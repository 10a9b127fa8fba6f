"""The tasks that score codes, listed in `TASKS`."""

from __future__ import annotations

from collections.abc import Iterable

from embits.evaluation.results import Entry, Score, at
from embits.evaluation.tasks.base import Task
from embits.evaluation.tasks.classification import Classification
from embits.evaluation.tasks.neighbors import Neighbors, Reconstruction
from embits.evaluation.tasks.retrieval import Retrieval
from embits.evaluation.tasks.speed import Speed
from embits.evaluation.tasks.words import Analogy, Similarity

_IN_ORDER = (Similarity, Analogy, Neighbors, Reconstruction, Classification, Retrieval, Speed)
TASKS: dict[str, Task] = {task.name: task() for task in _IN_ORDER}
"""All tasks by name, in the order of the reports."""
DEFAULT_TASKS = tuple(name for name in TASKS if name != "speed")


def all_scores(entries: Iterable[Entry]) -> list[Score]:
    """The scores of all tasks in these entries, then those of the rebuilt floats."""
    entries = list(entries)
    rebuilt = [at(entry, "reconstruction") or {} for entry in entries]
    of_rebuilt = (task for task in TASKS.values() if task.of_rebuilt)
    return [
        *(score for task in TASKS.values() for score in task.scores(entries)),
        *(score.rebuilt() for task in of_rebuilt for score in task.scores(rebuilt)),
    ]
