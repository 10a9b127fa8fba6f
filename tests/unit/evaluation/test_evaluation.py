"""Scores agree with gensim, scipy and slow oracles; bad data costs its own score alone."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

import embits
from embits.evaluation import (
    DataFolder,
    Evaluator,
    FloatSpace,
    Lookup,
    as_space,
    evaluate_neighbors,
    evaluate_reconstruction,
    evaluate_word_analogies,
    evaluate_word_pairs,
    fisher_mean,
    ranks,
    read_questions,
    spearman,
)
from embits.evaluation.tasks.neighbors import best_rows, float_neighbors, without_self


@pytest.fixture(scope="module")
def cased():
    """Words in several spellings, as cased vocabularies have them, on vectors with structure."""
    rng = np.random.default_rng(3)
    words = [w for i in range(150) for w in (f"word{i}", f"Word{i}", f"WORD{i}")[: 1 + i % 3]]
    centers = rng.normal(size=(40, 16))
    matrix = centers[rng.integers(0, 40, len(words))] + 0.3 * rng.normal(size=(len(words), 16))
    return embits.WordVectors(words, matrix)


@pytest.fixture(scope="module")
def keyed(cased):
    gensim_models = pytest.importorskip("gensim.models")
    keyed = gensim_models.KeyedVectors(cased.dims)
    keyed.add_vectors(list(cased.words), cased.matrix)
    return keyed


@pytest.fixture
def pairs_file(tmp_path):
    rng = np.random.default_rng(0)
    draws = rng.integers(0, [170, 170, 11], (300, 3))
    lines = (f"Word{a}\tword{b}\t{score}" for a, b, score in draws)
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def questions_file(tmp_path):
    rng = np.random.default_rng(1)
    lines = []
    for section in ("capital", "gram1-plural"):
        lines.append(f": {section}")
        lines += [" ".join(f"Word{i}" for i in quad) for quad in rng.integers(0, 155, (200, 4))]
    path = tmp_path / "questions-words.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


# -- statistics ------------------------------------------------------------------------------------

values = hnp.arrays(np.float64, st.integers(2, 30), elements=st.integers(-5, 5).map(float))


@given(values, st.randoms(use_true_random=False))
def test_spearman_is_scipys_ties_and_all(a, random):
    b = np.array(random.choices(range(-3, 4), k=len(a)), dtype=float)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert math.isnan(spearman(a, b))
    else:
        assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)


@given(values)
def test_ranks_are_scipys(a):
    np.testing.assert_allclose(ranks(a), stats.rankdata(a))


def test_fisher_mean_survives_a_perfect_score_and_leaves_out_nan():
    assert fisher_mean([0.5, math.nan]) == pytest.approx(0.5)
    assert 0.5 < fisher_mean([0.5, 1.0]) <= 1
    assert math.isnan(fisher_mean([]))


# -- similarity and analogy ------------------------------------------------------------------------


@pytest.mark.parametrize("restrict", [100, 300_000])
@pytest.mark.parametrize("options", [{}, {"case_insensitive": False}, {"dummy4unknown": True}])
def test_pairs_of_floats_score_as_in_gensim(cased, keyed, pairs_file, restrict, options):
    wanted = keyed.evaluate_word_pairs(str(pairs_file), restrict_vocab=restrict, **options)
    found = evaluate_word_pairs(cased, pairs_file, restrict, **options)
    assert found[0] == pytest.approx(wanted[0][0], abs=1e-5)
    assert found[1] == pytest.approx(wanted[1][0], abs=1e-5)
    if "dummy4unknown" not in options:  # gensim counts the unknown twice there
        assert found[2] == pytest.approx(wanted[2])


@pytest.mark.parametrize("restrict", [100, 300_000])
@pytest.mark.parametrize("options", [{}, {"case_insensitive": False}, {"dummy4unknown": True}])
def test_analogies_of_floats_are_answered_as_in_gensim(
    cased, keyed, questions_file, restrict, options
):
    wanted, sections = keyed.evaluate_word_analogies(
        str(questions_file), restrict_vocab=restrict, **options
    )
    score, found = evaluate_word_analogies(cased, questions_file, restrict, **options)
    assert score == pytest.approx(wanted, abs=5e-4)
    assert [s["section"] for s in found] == [s["section"] for s in sections]
    for ours, theirs in zip(found, sections, strict=True):
        assert sorted(ours["correct"]) == sorted(theirs["correct"])


def test_analogies_of_bits_are_those_of_a_slow_oracle(cased, questions_file):
    bits = embits.binarize(cased, n_bits=37, method="lsh")
    _, sections = bits.evaluate_word_analogies(questions_file, restrict_vocab=None)
    plain = np.unpackbits(bits.codes, axis=1, count=37).astype(bool)
    first = {}
    for row, word in enumerate(cased.words):
        first.setdefault(word.upper(), row)
    correct = []
    for questions in read_questions(questions_file).values():
        for question in questions:
            a, b, c, d = folded = tuple(word.upper() for word in question)
            if not set(folded) <= set(first):
                continue
            code = (plain[first[b]] & ~plain[first[a]]) | plain[first[c]]
            distances = (plain != code).sum(axis=1)
            barred = [word.upper() in (a, b, c) for word in cased.words]
            answer = np.where(barred, 99, distances).argmin()
            if cased.words[answer].upper() == d:
                correct.append(folded)
    assert sections[-1]["correct"] == correct
    assert correct


def test_pairs_of_bits_score_by_the_share_of_bits_that_agree(cased, pairs_file):
    bits = embits.binarize(cased, n_bits=37, method="lsh")
    human, ours = [], []
    for line in pairs_file.read_text().splitlines():
        a, b, score = line.split()
        rows = [np.flatnonzero([w.upper() == x.upper() for w in cased.words]) for x in (a, b)]
        if all(map(len, rows)):
            human.append(float(score))
            ours.append(bits.similarity(*(cased.words[own[0]] for own in rows)))
    found = bits.evaluate_word_pairs(pairs_file)
    assert found[1] == pytest.approx(stats.spearmanr(human, ours).statistic)


def test_the_very_spelling_answers_and_else_the_first_of_the_others():
    lookup = Lookup(["Straße", "straße", "Us", "us"], restrict_vocab=3)
    assert lookup.rows(["STRASSE", "straße", "Straße"]).tolist() == [0, 1, 0]
    assert (lookup.spellings(0), lookup.spellings(1)) == ([0, 1], [1, 0])
    assert lookup.rows(["US", "us", "them"]).tolist() == [2, 2, -1]


def test_gensims_verbs_let_the_first_spelling_answer():
    lookup = Lookup(["Us", "us"], exact_first=False)
    assert lookup.rows(["us"]).tolist() == [0]


# -- neighbors and reconstruction ------------------------------------------------------------------


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(1, 60)),
               elements=st.integers(-4, 4).map(float)),
    st.integers(1, 12),
    st.integers(1, 20),
)  # fmt: skip
def test_best_rows_are_those_of_a_stable_sort_whatever_the_blocks(scores, k, block):
    import embits.evaluation.tasks.neighbors as module

    before, module._ROWS = module._ROWS, block
    try:
        found = best_rows(lambda rows: scores[:, rows], scores.shape[1], k)
    finally:
        module._ROWS = before
    wanted = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    # Among equal scores at the cut any choice is right; the scores must be the same.
    np.testing.assert_array_equal(
        np.take_along_axis(scores, found, 1), np.take_along_axis(scores, wanted, 1)
    )


def test_neighbors_are_those_of_a_slow_oracle(vectors):
    bits = embits.binarize(vectors, n_bits=64, method="lsh")
    raw = as_space(vectors)
    rows = np.arange(0, 600, 7)
    found = evaluate_neighbors(bits, raw, at=(1, 10), rows=rows)
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    plain = np.unpackbits(bits.codes, axis=1).astype(np.float64)
    hits = np.zeros(2)
    for row in rows:
        others = np.delete(np.arange(600), row)
        near = others[np.argsort(-(unit @ unit[row])[others], kind="stable")][:10]
        distances = (plain != plain[row]).sum(axis=1)
        hamming = others[np.argsort(distances[others], kind="stable")][:10]
        projected = bits.coder.project(vectors.matrix[row : row + 1])[0]
        scores = (2 * plain - 1) @ projected
        asymmetric = others[np.argsort(-scores[others], kind="stable")][:10]
        hits += [len(set(near) & set(hamming)) / 10, len(set(near) & set(asymmetric)) / 10]
    assert found["recall_at_10"] == pytest.approx(hits[0] / len(rows), abs=2e-3)
    assert found["asymmetric_recall_at_10"] == pytest.approx(hits[1] / len(rows), abs=2e-3)
    assert found["recall_at_10"] < found["asymmetric_recall_at_10"] < 1


def test_the_word_itself_is_no_neighbor():
    nearest = np.array([[3, 1, 2], [0, 5, 6]])
    assert without_self(nearest, np.array([1, 9]), 2).tolist() == [[3, 2], [0, 5]]
    raw = FloatSpace(list("abcd"), np.eye(4, dtype=np.float32))
    assert (float_neighbors(raw, np.arange(4), 3) != np.arange(4)[:, None]).all()


def test_perfect_reconstruction_scores_one(vectors):
    raw = as_space(vectors)
    scores = evaluate_reconstruction(raw, raw)
    assert scores["cosine"] == pytest.approx(1)
    assert scores["mse"] == 0


def test_raw_vectors_in_another_order_are_matched_by_word(vectors, bits):
    turned = embits.WordVectors(list(vectors.words)[::-1], vectors.matrix[::-1])
    tasks = ("neighbors", "reconstruction")
    a = Evaluator(None, vectors, tasks).evaluate_bits(bits)
    b = Evaluator(None, turned, tasks).evaluate_bits(bits)
    assert a["neighbors"] == b["neighbors"]
    assert a["reconstruction"] == pytest.approx(b["reconstruction"])
    missing = embits.WordVectors(list(vectors.words)[:-1], vectors.matrix[:-1])
    evaluator = Evaluator(None, missing, tasks)
    assert "neighbors" not in evaluator.evaluate_bits(bits)
    assert "1 of its words have no raw vector, such as 'word599'" in evaluator.notes[0]


def test_results_are_json(tmp_path, vectors, bits):
    from embits.evaluation.results import jsonable

    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity/MEN.txt").write_text("none such 1\n")
    entry = Evaluator(DataFolder.at(tmp_path), None, ("similarity",)).evaluate_bits(bits)
    text = json.dumps(jsonable(entry), allow_nan=False)
    assert json.loads(text)["similarity"]["MEN"] == {"spearman": None, "pairs": 0, "oov": 1}


def test_the_delimiter_of_gensim_is_taken(tmp_path, cased, keyed):
    (tmp_path / "pairs").write_text("".join(f"word{i}|word{i + 1}|{i % 7}\n" for i in range(40)))
    ours = evaluate_word_pairs(cased, tmp_path / "pairs", delimiter="|")
    theirs = keyed.evaluate_word_pairs(tmp_path / "pairs", delimiter="|")
    assert ours[1] == pytest.approx(theirs[1].statistic, abs=1e-6)
    bits = embits.binarize(cased, 32, "lsh")
    assert math.isfinite(bits.evaluate_word_pairs(tmp_path / "pairs", delimiter="|")[0])


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("absent folder",), "absent folder: no such folder"),
        ((None, None, ("neighbors",)), "neighbors: the raw vectors are needed"),
        ((None, None, ("neighbors", "reconstruction")), "neighbors and reconstruction: the raw"),
        ((None, None, ()), "expected some of similarity, analogy"),
        ((None, None, "juggling"), "expected some of similarity, analogy"),
        ((None, np.eye(3), "neighbors"), "raw is a ndarray, expected WordVectors"),
    ],
)
def test_wrong_arguments_of_the_evaluator_are_named(arguments, says):
    with pytest.raises(embits.InputError, match=says):
        Evaluator(*arguments)
