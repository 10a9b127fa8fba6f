"""Scores of codes on standard tasks, compared with the float vectors."""

from embits.evaluation.compare import Comparison, Evaluator, paired_tests
from embits.evaluation.data import (
    DataFolder,
    RetrievalSet,
    read_labelled,
    read_pairs,
    read_questions,
    read_retrieval,
)
from embits.evaluation.report import write_report
from embits.evaluation.spaces import BitSpace, FloatSpace, Lookup, as_space
from embits.evaluation.statistics import fisher_mean, pearson, ranks, spearman
from embits.evaluation.tasks import TASKS
from embits.evaluation.tasks.classification import evaluate_classification, prepare
from embits.evaluation.tasks.neighbors import evaluate_neighbors, evaluate_reconstruction
from embits.evaluation.tasks.retrieval import evaluate_retrieval
from embits.evaluation.tasks.speed import evaluate_speed
from embits.evaluation.tasks.words import (
    evaluate_analogies,
    evaluate_similarity,
    evaluate_word_analogies,
    evaluate_word_pairs,
    score_pairs,
)

__all__ = [
    "TASKS", "BitSpace", "Comparison", "DataFolder", "Evaluator", "FloatSpace", "Lookup",
    "RetrievalSet", "as_space", "evaluate_analogies", "evaluate_classification",
    "evaluate_neighbors", "evaluate_reconstruction", "evaluate_retrieval", "evaluate_similarity",
    "evaluate_speed", "evaluate_word_analogies", "evaluate_word_pairs", "fisher_mean",
    "paired_tests", "pearson", "prepare", "ranks", "read_labelled", "read_pairs", "read_questions",
    "read_retrieval", "score_pairs", "spearman", "write_report",
]  # fmt: skip
