"""Word analogy: a is to b as c is to what?

Floats answer with the word nearest to b - a + c by cosine (3CosAdd, unit vectors), bits with the
code nearest to (b AND NOT a) OR c by Hamming distance, as the paper has it. The words of the
question cannot be the answer, in any spelling; a question with an unknown word is left out and
counted. That is gensim's protocol, save that gensim looks at the first five candidates only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.evaluation.data.files import Questions, read_questions
from embits.evaluation.data.lookup import MISSING, Lookup
from embits.evaluation.tasks.spaces import BitSpace, Space, as_space
from embits.search import top_k

_ROWS = 4096  # words scored at a time: the cosines of every asked word with them stay in cache
_QUESTIONS = 256  # questions answered at a time
_CODES = 1024  # codes searched for at a time


@dataclass(frozen=True)
class Answers:
    """How the questions of one section went.

    Attributes:
        known: Which questions had four known words, bool (questions,).
        correct: Which of the known were answered right, bool (known,).
    """

    known: NDArray[np.bool_]
    correct: NDArray[np.bool_]


def answer(
    space: Space, sections: Mapping[str, Questions], lookup: Lookup | None = None
) -> dict[str, Answers]:
    """Answer every question of every section, in one pass over the vocabulary.

    Args:
        space: Where the words lie.
        sections: Questions by section.
        lookup: Another rule for words than the space's own.
    """
    lookup = space.lookup if lookup is None else lookup
    rows = {
        name: lookup.rows(word for question in questions for word in question).reshape(-1, 4)
        for name, questions in sections.items()
    }
    known: dict[str, NDArray[np.bool_]] = {
        name: np.all(quads >= 0, axis=1) for name, quads in rows.items()
    }
    asked = np.concatenate([np.empty((0, 4), np.int64), *(rows[n][known[n]] for n in rows)])
    barred = lookup.all_spellings(asked[:, :3])
    if isinstance(space, BitSpace):
        found = _solve_bits(space.codes[: lookup.size], asked[:, :3], barred)
    else:
        found = _solve_floats(space.unit[: lookup.size], asked[:, :3], barred)
    # The answer is right in any spelling: folded, it is the word that was asked for.
    right = (lookup.all_spellings(asked[:, 3:]) == found[:, np.newaxis]).any(axis=1)
    ends = np.cumsum([0, *(int(mask.sum()) for mask in known.values())])
    return {
        name: Answers(known[name], right[start:end])
        for name, start, end in zip(rows, ends, ends[1:], strict=False)
    }


def evaluate_analogies(space: Space, sections: Mapping[str, Questions]) -> dict[str, Any]:
    """Accuracy on semantic and on syntactic questions, as `evaluate --json` has it.

    Sections named `gram...` are syntactic, all others semantic.

    Returns:
        `{"semantic": {"accuracy", "questions", "oov"}, "syntactic": {...}, "sections": {...}}`:
        `questions` were asked, `oov` left out; accuracies in [0, 1].
    """
    answers = answer(space, sections)
    kinds: dict[str, list[Answers]] = {"semantic": [], "syntactic": []}
    for name, found in answers.items():
        kinds["syntactic" if name.startswith("gram") else "semantic"].append(found)
    result: dict[str, Any] = {kind: _summary(found) for kind, found in kinds.items()}
    result["sections"] = {name: _summary([found]) for name, found in answers.items()}
    return result


def _summary(answers: Sequence[Answers]) -> dict[str, Any]:
    asked = sum(len(found.correct) for found in answers)
    right = sum(int(found.correct.sum()) for found in answers)
    return {
        "accuracy": right / asked if asked else float("nan"),
        "questions": asked,
        "oov": sum(int((~found.known).sum()) for found in answers),
    }


def evaluate_word_analogies(
    vectors: Any,
    analogies: str | os.PathLike[str],
    restrict_vocab: int | None = 300_000,
    case_insensitive: bool = True,
    dummy4unknown: bool = False,
) -> tuple[float, list[dict[str, Any]]]:
    """gensim's `evaluate_word_analogies`, for bits as for floats.

    Args:
        vectors: BinaryVectors or WordVectors.
        analogies: File of questions, such as `questions-words.txt`.
        restrict_vocab: Only the first rows are asked and answer, this many; None takes all.
        case_insensitive: Fold letter case.
        dummy4unknown: Count questions with unknown words as wrong instead of leaving them out.

    Returns:
        The accuracy over all questions, and for each section `{"section", "correct",
        "incorrect"}` with the questions as tuples of (folded) words; "Total accuracy" last.
    """
    space = as_space(vectors)
    lookup = Lookup(space.words, restrict_vocab, case_insensitive, exact_first=False)
    questions = read_questions(analogies)
    total: dict[str, Any] = {"section": "Total accuracy", "correct": [], "incorrect": []}
    sections = []
    for name, found in answer(space, questions, lookup).items():
        section: dict[str, Any] = {"section": name, "correct": [], "incorrect": []}
        correct = iter(found.correct)
        for question, known in zip(questions[name], found.known, strict=True):
            if known or dummy4unknown:
                kind = "correct" if known and next(correct) else "incorrect"
                section[kind].append(tuple(map(lookup.fold, question)))
        for kind in ("correct", "incorrect"):
            total[kind] += section[kind]
        sections.append(section)
    asked = len(total["correct"]) + len(total["incorrect"])
    return len(total["correct"]) / asked if asked else float("nan"), [*sections, total]


def _solve_bits(
    codes: NDArray[np.uint8], asked: NDArray[np.int64], barred: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The nearest row to (b AND NOT a) OR c that is not barred, for each (a, b, c)."""
    found = np.full(len(asked), MISSING, dtype=np.int64)
    for part in blocks(len(asked), _CODES):
        a, b, c = (codes[rows] for rows in asked[part].T)
        # No padding bit can be set: AND with b clears those that NOT a sets.
        _, nearest = top_k(codes, (b & ~a) | c, barred.shape[1] + 1)
        free = ~(nearest[:, :, np.newaxis] == barred[part, np.newaxis, :]).any(axis=2)
        first = nearest[np.arange(len(nearest)), free.argmax(axis=1)]
        found[part] = np.where(free.any(axis=1), first, MISSING)
    return found


def _solve_floats(
    unit: NDArray[np.float32], asked: NDArray[np.int64], barred: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The row with the largest cosine to b - a + c that is not barred, for each (a, b, c).

    The cosine with a sum is the sum of cosines up to the sum's length, and the few hundred words
    asked about come back in many questions: so their cosines with a block of the vocabulary are
    one product, and every question three look-ups in it, whatever the dimensions.
    """
    words, place = np.unique(asked, return_inverse=True)
    place = place.reshape(asked.shape)
    best = np.full(len(asked), -np.inf, dtype=np.float32)
    found = np.full(len(asked), MISSING, dtype=np.int64)

    def solve(part: slice, cosines: NDArray[np.float32], start: int) -> None:
        a, b, c = place[part].T
        scores = cosines[b]
        scores -= cosines[a]
        scores += cosines[c]
        column = barred[part] - start
        line, slot = np.nonzero((column >= 0) & (column < scores.shape[1]))
        scores[line, column[line, slot]] = -np.inf
        top = scores.argmax(axis=1)
        score = scores[np.arange(len(scores)), top]
        better = score > best[part]  # ties stay with the earlier row
        best[part] = np.where(better, score, best[part])
        found[part] = np.where(better, top + start, found[part])

    with ThreadPoolExecutor() as pool:  # NumPy lets go of the lock inside these operations
        for rows in blocks(len(unit), _ROWS):
            cosines = unit[words] @ unit[rows].T
            parts = blocks(len(asked), _QUESTIONS)
            list(pool.map(lambda part: solve(part, cosines, rows.start), parts))  # noqa: B023
    return found
