"""Tasks of words: semantic similarity, and analogies (a is to b as c is to what?).

Similarities are cosines of floats, and Sokal-Michener for codes (the paper, "Semantic word
similarity"); letter case is folded (`Lookup`). The answer to a question is the word closest to
b - a + c by cosine (3CosAdd, unit vectors) or, for codes, the code closest to (b AND NOT a) OR c by
Hamming distance, as in the paper. The words of the question are excluded in any spelling. This is
gensim's protocol, except that gensim considers only the first five candidates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.evaluation.data import Pairs, Questions, read_pairs, read_questions
from embits.evaluation.results import Entry, Score, names_at
from embits.evaluation.spaces import (
    MISSING,
    BitSpace,
    Lookup,
    Mask,
    Rows,
    Scorable,
    Space,
    as_space,
)
from embits.evaluation.statistics import NO_SAMPLES, Samples, fisher_mean, pearson, spearman
from embits.evaluation.tasks.base import Subject, Task
from embits.search import top_k

_ROWS = 4096  # words per block: their cosines with all question words fit in the cache
_QUESTIONS = 256  # questions per block
_CODES = 1024  # queries per search


class PairScores(NamedTuple):
    """Which pairs of a data set have known words, their human scores, and their similarities."""

    known: Mask
    human: NDArray[np.float64]
    ours: NDArray[np.float64]

    @property
    def spearman(self) -> float:
        return spearman(self.human, self.ours)

    @property
    def oov(self) -> int:
        """Number of pairs with an unknown word."""
        return int((~self.known).sum())


def score_pairs(space: Space, pairs: Pairs, lookup: Lookup | None = None) -> PairScores:
    """Score the pairs of a data set whose two words are known; `lookup` replaces the space's."""
    lookup = space.lookup if lookup is None else lookup
    a, b = lookup.rows(pairs.first), lookup.rows(pairs.second)
    known = (a >= 0) & (b >= 0)
    return PairScores(known, pairs.scores[known], space.similarities(a[known], b[known]))


def evaluate_similarity(
    space: Space, datasets: Mapping[str, Pairs], samples: Samples = NO_SAMPLES
) -> Entry:
    """Spearman per data set of word pairs and their Fisher mean, in the shape of `evaluate --json`.

    It is `{name: {"spearman", "pairs", "oov"}, ..., "fisher_mean"}`: `pairs` were scored, `oov`
    skipped; correlations in [-1, 1]. `samples` receives the scores of each pair.
    """
    result: Entry = {}
    for name, pairs in datasets.items():
        score, key = score_pairs(space, pairs), f"similarity.{name}"
        result[name] = {"spearman": score.spearman, "pairs": len(score.ours), "oov": score.oov}
        samples.add_spearman(f"{key}.spearman", score.human, score.ours, key)
    paths = [f"similarity.{name}.spearman" for name in result]
    samples.add_combined("similarity.fisher_mean", paths, fisher_mean)
    return result | {"fisher_mean": fisher_mean(each["spearman"] for each in result.values())}


def evaluate_word_pairs(
    vectors: Scorable,
    pairs: str | os.PathLike[str],
    restrict_vocab: int | None = 300_000,
    case_insensitive: bool = True,
    dummy4unknown: bool = False,
    *,
    delimiter: str | None = None,
) -> tuple[float, float, float]:
    """gensim's `evaluate_word_pairs`, for codes and floats, with words looked up as by `Lookup`.

    Args:
        vectors: BinaryVectors or WordVectors.
        pairs: File of `word word score` lines, as `read_pairs` reads it.
        dummy4unknown: Score pairs with unknown words 0 instead of skipping them.
        delimiter: What separates the fields; None detects it. gensim's default is a tab.

    Returns:
        Pearson's and Spearman's correlations, without gensim's p-values, and the percentage of
        pairs with unknown words.
    """
    space, data = as_space(vectors), read_pairs(pairs, delimiter)
    lookup = Lookup(space.words, restrict_vocab, case_insensitive, exact_first=False)
    known, human, ours = scores = score_pairs(space, data, lookup)
    if dummy4unknown:
        human, ours = data.scores, np.zeros(len(data))
        ours[known] = scores.ours
    return pearson(human, ours), spearman(human, ours), 100 * scores.oov / len(data)


class Similarity(Task):
    """Spearman's correlation on every data set, and their Fisher mean."""

    name = "similarity"
    title = "Semantic similarity"
    caption = (
        "Spearman's rank correlation with human scores, × 100, for codes (bin), floats rebuilt "
        "from them (rec) and raw floats. Bold: the best codes, and the best rebuilt floats, of "
        "each width."
    )
    reads_data = of_rebuilt = True

    def run(self, subject: Subject) -> Entry:
        return evaluate_similarity(subject.space, self.datasets(subject), subject.samples)

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        names = [name for name in names_at(entries, self.name) if name != "fisher_mean"]
        mean = self.score("Fisher mean", "fisher_mean", heading="Fisher mean")
        return [*(self.score(name, name, "spearman") for name in names), mean] if names else []


# -- analogy ---------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """Which questions of a section have four known words, and which of those were answered."""

    known: Mask
    correct: Mask


def answer(
    space: Space, sections: Mapping[str, Questions], lookup: Lookup | None = None
) -> dict[str, Answers]:
    """Answer every question, in one pass over the vocabulary; `lookup` replaces the space's."""
    lookup = space.lookup if lookup is None else lookup
    words = (word for questions in sections.values() for quad in questions for word in quad)
    rows = lookup.rows(words).reshape(-1, 4)
    known = (rows >= 0).all(axis=1)
    questions, expected = np.split(rows[known], [3], axis=1)
    excluded = lookup.all_spellings(questions)
    if isinstance(space, BitSpace):
        answers = _solve_bits(space.codes[: lookup.size], questions, excluded)
    else:
        answers = _solve_floats(space.unit[: lookup.size], questions, excluded)
    correct = np.zeros(len(rows), bool)
    # Any spelling of the expected word is a correct answer.
    correct[known] = (lookup.all_spellings(expected) == answers[:, np.newaxis]).any(axis=1)
    ends = np.cumsum([len(questions) for questions in sections.values()])[:-1]
    parts = zip(sections, np.split(known, ends), np.split(correct, ends), strict=False)
    return {name: Answers(of_known, of_correct[of_known]) for name, of_known, of_correct in parts}


def evaluate_analogies(
    space: Space, sections: Mapping[str, Questions], samples: Samples = NO_SAMPLES
) -> Entry:
    """Accuracy on semantic and syntactic questions, in the shape of `evaluate --json`.

    It is `{"semantic": {"accuracy", "questions", "oov"}, "syntactic": {...}, "sections": {...}}`:
    `questions` were answered, `oov` skipped; accuracies in [0, 1]. Sections named `gram...` are
    syntactic, all others semantic. `samples` receives the result of each question.
    """
    answers = answer(space, sections)
    kinds: dict[str, list[Answers]] = {"semantic": [], "syntactic": []}
    for name, of_section in answers.items():
        kinds["syntactic" if name.startswith("gram") else "semantic"].append(of_section)
    result: Entry = {}
    for kind, parts in kinds.items():
        result[kind] = _summary(parts)
        correct = np.concatenate([np.empty(0, bool), *(part.correct for part in parts)])
        samples.add_mean(f"analogy.{kind}.accuracy", correct, f"analogy.{kind}")
    return result | {"sections": {name: _summary([each]) for name, each in answers.items()}}


def _summary(answers: Sequence[Answers]) -> Entry:
    n_known = sum(len(each.correct) for each in answers)
    n_correct = sum(int(each.correct.sum()) for each in answers)
    oov = sum(int((~each.known).sum()) for each in answers)
    accuracy = n_correct / n_known if n_known else float("nan")
    return {"accuracy": accuracy, "questions": n_known, "oov": oov}


def evaluate_word_analogies(
    vectors: Scorable,
    analogies: str | os.PathLike[str],
    restrict_vocab: int | None = 300_000,
    case_insensitive: bool = True,
    dummy4unknown: bool = False,
) -> tuple[float, list[Entry]]:
    """gensim's `evaluate_word_analogies`, for codes and floats.

    Args:
        vectors: BinaryVectors or WordVectors.
        analogies: File of questions, such as `questions-words.txt`.
        restrict_vocab: Use only this many first rows, for questions and answers; None uses all.
        case_insensitive: Fold letter case.
        dummy4unknown: Count questions with unknown words as wrong instead of skipping them.

    Returns:
        The accuracy over all questions, and for each section `{"section", "correct",
        "incorrect"}` with the questions as tuples of (folded) words; "Total accuracy" last.
    """
    space = as_space(vectors)
    lookup = Lookup(space.words, restrict_vocab, case_insensitive, exact_first=False)
    questions = read_questions(analogies)
    total: Entry = {"section": "Total accuracy", "correct": [], "incorrect": []}
    sections = []
    for name, answers in answer(space, questions, lookup).items():
        section: Entry = {"section": name, "correct": [], "incorrect": []}
        correct = iter(answers.correct)
        for question, known in zip(questions[name], answers.known, strict=True):
            if known or dummy4unknown:
                kind = "correct" if known and next(correct) else "incorrect"
                section[kind].append(tuple(map(lookup.fold, question)))
        for kind in ("correct", "incorrect"):
            total[kind] += section[kind]
        sections.append(section)
    n_questions = len(total["correct"]) + len(total["incorrect"])
    accuracy = len(total["correct"]) / n_questions if n_questions else float("nan")
    return accuracy, [*sections, total]


def _solve_bits(codes: NDArray[np.uint8], questions: Rows, excluded: Rows) -> Rows:
    """The row closest to (b AND NOT a) OR c that is not in `excluded`, for each (a, b, c)."""
    answers = np.full(len(questions), MISSING, dtype=np.int64)
    for part in blocks(len(questions), _CODES):
        a, b, c = (codes[rows] for rows in questions[part].T)
        # Padding bits stay zero: AND with b clears the ones that NOT a sets.
        _, nearest = top_k(codes, (b & ~a) | c, excluded.shape[1] + 1)
        free = ~(nearest[:, :, np.newaxis] == excluded[part, np.newaxis, :]).any(axis=2)
        first = nearest[np.arange(len(nearest)), free.argmax(axis=1)]
        answers[part] = np.where(free.any(axis=1), first, MISSING)
    return answers


def _solve_floats(unit: NDArray[np.float32], questions: Rows, excluded: Rows) -> Rows:
    """The row with the largest cosine to b - a + c that is not in `excluded`, for each (a, b, c).

    A few hundred words occur in all the questions: their dot products with a block of the
    vocabulary are one matrix product, of which each question adds three rows.
    """
    words, place = np.unique(questions, return_inverse=True)
    best = np.full(len(questions), -np.inf, dtype=np.float32)
    answers = np.full(len(questions), MISSING, dtype=np.int64)

    def solve(part: slice, cosines: NDArray[np.float32], start: int) -> None:
        a, b, c = place[part].T
        scores = cosines[b] - cosines[a]
        scores += cosines[c]
        column = excluded[part] - start
        line, slot = np.nonzero((column >= 0) & (column < scores.shape[1]))
        scores[line, column[line, slot]] = -np.inf
        top, score = scores.argmax(axis=1), scores.max(axis=1)
        better = score > best[part]  # ties keep the earlier row
        best[part] = np.where(better, score, best[part])
        answers[part] = np.where(better, top + start, answers[part])

    with ThreadPoolExecutor() as pool:  # NumPy releases the GIL in these operations
        for rows in blocks(len(unit), _ROWS):
            step = partial(solve, cosines=unit[words] @ unit[rows].T, start=rows.start)
            list(pool.map(step, blocks(len(questions), _QUESTIONS)))
    return answers


class Analogy(Task):
    """Accuracy on semantic and syntactic questions."""

    name = "analogy"
    title = "Word analogy"
    caption = (
        "Accuracy on analogies, × 100, for codes (bin), floats rebuilt from them (rec) and raw "
        "floats. Bold: the best codes, and the best rebuilt floats, of each width."
    )
    reads_data = of_rebuilt = True

    def run(self, subject: Subject) -> Entry:
        return evaluate_analogies(subject.space, self.datasets(subject), subject.samples)

    def scores(self, entries: Iterable[Entry]) -> list[Score]:
        kinds = [kind for kind in names_at(entries, self.name) if kind != "sections"]
        return [
            self.score(f"{kind.capitalize()} analogy", kind, "accuracy", heading=kind)
            for kind in kinds
        ]
