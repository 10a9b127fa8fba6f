"""Intervals, paired tests, seeds and rows outside the fit."""

import json
import re

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
    as_space,
    evaluate_neighbors,
    fisher_mean,
    paired_tests,
)
from embits.evaluation.compare import ALL_ROWS, Comparison, split_rows
from embits.evaluation.report import escaped, to_latex
from embits.evaluation.results import Table
from embits.evaluation.statistics import MAX_ITEMS, Samples, paired_test, pooled, spearman_of_counts
from tests.support.program import run
from tests.support.retrieval import write_retrieval

numbers = hnp.arrays(np.float64, st.integers(2, 20), elements=st.integers(-4, 4).map(float))


# -- resampling ------------------------------------------------------------------------------------


@given(numbers, st.integers(0, 1000))
def test_a_replicate_of_spearman_is_that_of_the_drawn_pairs(a, seed):
    rng = np.random.default_rng(seed)
    b = rng.integers(-3, 4, len(a)).astype(float)
    drawn = rng.integers(0, len(a), (5, len(a)))
    counts = np.array([np.bincount(row, minlength=len(a)) for row in drawn], dtype=float)
    for row, found in zip(drawn, spearman_of_counts(a, b, counts), strict=True):
        if np.ptp(a[row]) == 0 or np.ptp(b[row]) == 0:
            assert np.isnan(found)
        else:
            wanted = stats.spearmanr(a[row], b[row]).statistic
            assert found == pytest.approx(wanted, abs=1e-9)


def test_the_interval_of_a_mean_is_close_to_the_normal_one():
    values = np.random.default_rng(0).normal(size=400)
    samples = Samples(4000)
    samples.add_mean("x", values, "key")
    low, high = np.percentile(samples.replicates["x"], [2.5, 97.5])
    half = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.01)
    assert high == pytest.approx(values.mean() + half, abs=0.01)


def test_items_of_one_key_are_drawn_together_whatever_the_method():
    a, b = Samples(200), Samples(200)
    values = np.random.default_rng(0).random(50)
    a.add_mean("x", values, "set")
    b.under("reconstruction").add_mean("x", values + 1, "set")
    np.testing.assert_allclose(b.replicates["reconstruction.x"] - a.replicates["x"], 1)
    other = Samples(200)
    other.add_mean("x", values, "other set")
    assert not np.allclose(other.replicates["x"], a.replicates["x"])


def test_many_items_are_pooled_into_groups_with_the_same_mean():
    values = np.arange(4 * MAX_ITEMS, dtype=float)
    assert len(pooled(values)) == MAX_ITEMS
    assert pooled(values).mean() == pytest.approx(values.mean())


def test_a_paired_test_finds_a_small_difference_that_all_items_share():
    rng = np.random.default_rng(0)
    hard = rng.random(200)  # queries differ much more than methods
    drawn = []
    for shift in (0.0, 0.01):
        samples = Samples(1000)
        samples.add_mean("x", hard + shift + 0.01 * rng.normal(size=200), "set")
        drawn.append(samples.replicates["x"])
    test = paired_test(0.51, 0.5, drawn[1], drawn[0])
    assert test.p < 0.01
    assert 0 < test.low < test.high < 0.02
    assert paired_test(0.5, 0.5, drawn[0], drawn[0]).p == 1


def test_the_fisher_mean_weighs_sets_equally_or_by_pairs():
    assert fisher_mean([0.5, 0.1], [1, 1]) == pytest.approx(fisher_mean([0.5, 0.1]))
    assert fisher_mean([0.5, 0.1], [1, 0]) == pytest.approx(0.5)
    assert fisher_mean([0.5, float("nan"), 0.1], [10, 99, 1]) > fisher_mean([0.5, 0.1])


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "similarity").mkdir()
    rng = np.random.default_rng(0)
    for name, size in (("MEN", 90), ("RW", 30)):
        lines = [
            f"word{a} word{b} {i % 7}" for i, (a, b) in enumerate(rng.integers(0, 600, (size, 2)))
        ]
        (folder / f"similarity/{name}.txt").write_text("\n".join(lines))
    return folder


def test_every_score_of_an_entry_has_an_interval_around_it(vectors, bits, pairs):
    tasks = ("similarity", "neighbors", "reconstruction")
    entry = Evaluator(pairs, vectors, tasks, n_resamples=200).evaluate_bits(bits)
    found = entry["intervals"]
    for path in ("similarity.MEN.spearman", "similarity.fisher_mean", "neighbors.recall_at_10",
                 "neighbors.asymmetric_recall_at_1", "reconstruction.cosine", "reconstruction.mse",
                 "reconstruction.similarity.fisher_mean"):  # fmt: skip
        score = entry
        for name in path.split("."):
            score = score[name]
        low, high = found[path]
        assert low <= score <= high, path
    without = Evaluator(pairs, vectors, "similarity").evaluate_bits(bits)
    sets = [entry["similarity"][name]["spearman"] for name in ("MEN", "RW")]
    assert entry["similarity"]["fisher_mean"] == pytest.approx(fisher_mean(sets))
    assert "intervals" not in without


# -- rows outside the fit --------------------------------------------------------------------------


def test_rows_are_divided_once_and_the_same_way():
    split = split_rows(100, 30, has_words=True)
    assert sorted([*split.fitted, *split.unseen]) == list(range(100))
    assert len(split.fitted) == 30
    np.testing.assert_array_equal(split.fitted, split_rows(100, 30, has_words=False).fitted)
    assert split_rows(100, ALL_ROWS, has_words=False) is None
    with pytest.raises(embits.InputError, match="fit_rows is 0, expected a whole number"):
        split_rows(100, 0, has_words=True)


def test_vectors_without_words_are_measured_outside_the_fit(tmp_path, vectors):
    matrix = embits.WordVectors(None, vectors.matrix)
    comparison = Comparison(matrix, tmp_path, None, [32], ["itq"], ("neighbors",))
    found = comparison.run()[1]["neighbors"]
    assert (found["rows"], found["fit_rows"], found["queries"]) == ("unseen", 300, 300)
    split = split_rows(600, None, has_words=False)
    coder = embits.ITQ(n_bits=32, random_state=0).fit(vectors.matrix[split.fitted])
    bits = embits.BinaryVectors.encoded(matrix, coder)
    wanted = evaluate_neighbors(bits, as_space(matrix), rows=split.unseen)
    assert found["recall_at_10"] == pytest.approx(wanted["recall_at_10"])
    # Unseen rows alone: as if the others were not there.
    alone = embits.WordVectors(None, vectors.matrix[split.unseen])
    fewer = embits.BinaryVectors.encoded(alone, coder)
    wanted = evaluate_neighbors(fewer, as_space(alone))
    for way in ("recall_at_10", "asymmetric_recall_at_10"):
        assert found[f"unseen_{way}"] == pytest.approx(wanted[way])
    # `evaluate` fits a new coder with the parameters of the file.
    whole = embits.binarize(matrix, 32, "itq", random_state=0)
    again = Evaluator(None, matrix, "neighbors").evaluate_bits(whole)["neighbors"]
    assert again == found
    as_it_is = Evaluator(None, matrix, "neighbors", fit_rows=ALL_ROWS).evaluate_bits(whole)
    assert as_it_is["neighbors"]["rows"] == "seen"


def test_word_vectors_are_measured_as_a_whole_unless_asked(tmp_path, vectors):
    def compare(name, **options):
        return Comparison(
            vectors,
            tmp_path / name,
            None,
            [32],
            ["lsh"],
            ("neighbors", "reconstruction"),
            **options,
        ).run()[1]

    assert compare("a")["neighbors"]["rows"] == "seen"
    part = compare("b", fit_rows=200)
    for task in ("neighbors", "reconstruction"):
        assert (part[task]["rows"], part[task]["fit_rows"]) == ("unseen", 200)


# -- seeds and reports -----------------------------------------------------------------------------


def test_several_seeds_give_means_and_their_spread(tmp_path, vectors):
    def compare(seeds, folder=tmp_path / "all"):
        return Comparison(
            vectors, folder, None, [32], ["lsh", "sign"], ("neighbors",), seeds, n_resamples=100
        )

    one = [compare(seed, tmp_path / f"s{seed}").run()[1]["neighbors"] for seed in (0, 1, 2)]
    comparison = compare([0, 1, 2])
    _, lsh, sign = comparison.run()
    scores = [found["recall_at_10"] for found in one]
    assert lsh["neighbors"]["recall_at_10"] == pytest.approx(np.mean(scores))
    assert lsh["spread"]["neighbors.recall_at_10"] == pytest.approx(np.std(scores, ddof=1))
    assert lsh["seeds"] == [0, 1, 2]
    assert "seeds" not in sign  # it has no seed, so one fit is all
    low, high = lsh["intervals"]["neighbors.recall_at_10"]
    assert low <= lsh["neighbors"]["recall_at_10"] <= high
    said = []
    again = Comparison(
        vectors, tmp_path / "all", None, [32], ["lsh", "sign"], ("neighbors",), [0, 1, 2],
        say=said.append, n_resamples=100,
    )  # fmt: skip
    assert again.run()[1] == lsh
    assert not said


def test_tests_compare_every_two_methods_of_a_width(tmp_path, vectors, pairs):
    comparison = Comparison(
        vectors, tmp_path, DataFolder.at(pairs), [16, 32], ["lsh", "itq", "paper"],
        ("similarity", "neighbors"), n_resamples=100,
    )  # fmt: skip
    entries = comparison.run()
    tests = paired_tests(entries, comparison.replicates)
    recalls = [test for test in tests if test["measure"] == "neighbors.recall_at_10"]
    assert {(t["bits"], t["a"], t["b"]) for t in recalls} == {
        (bits, a, b)
        for bits in (16, 32)
        for a, b in (("lsh", "itq"), ("lsh", "paper"), ("itq", "paper"))
    }
    by = {(e["method"], e["bits"]): e["neighbors"]["recall_at_10"] for e in entries[1:]}
    for test in recalls:
        wanted = by[test["a"], test["bits"]] - by[test["b"], test["bits"]]
        assert test["difference"] == pytest.approx(wanted)
        assert 0 < test["p"] <= 1


def test_latex_is_escaped_and_bold():
    table = Table(["", "a_b"], [["50 % & more", "*1.0*"], [" {x}", "2 × 3"]], "A #1.")
    text = to_latex(table, "tab:x")
    for part in (r"a\_b", r"50 \% \& more & \textbf{1.0} \\", r"\quad \{x\} & 2 $\times$ 3",
                 r"\caption{A \#1.}", r"\begin{tabular}{lr}"):  # fmt: skip
        assert part in text
    assert escaped("\\") == r"\textbackslash{}"


def test_compare_writes_latex_pdf_and_svg(tmp_path, vectors):
    pytest.importorskip("matplotlib")
    np.save(tmp_path / "x.npy", vectors.matrix)
    write_retrieval(tmp_path / "data/retrieval/small")
    command = ["compare", "x.npy", "--bits", "16,32", "--methods", "lsh,itq", "--tasks",
               "neighbors,retrieval", "--data", "data", "--seeds", "0,1", "--latex",
               "--bootstrap", "50", "--report", "r"]  # fmt: skip
    done = run(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "means over 2 fits; recall of rows outside the fit (unseen)" in done.stdout
    report = (tmp_path / "r/report.md").read_text()
    assert "outside the fit (unseen); the fit used 300 rows" in report
    assert "Table 3. Difference of lsh" in report
    assert re.search(r"Recall@10, Hamming \(± [\d.]+; fits [\d.]+\)", report)
    assert '"fits" the largest standard deviation over the fits' in report
    for name in ("tables/table-1.tex", "tables/table-2.tex", "tables/table-3.tex",
                 "figures/neighbors.pdf", "figures/retrieval.svg"):  # fmt: skip
        assert (tmp_path / "r" / name).stat().st_size > 100
    results = json.loads((tmp_path / "r/results.json").read_text())
    assert results["tests"]
    assert all(entry["spread"]["neighbors.recall_at_10"] > 0 for entry in results["results"][1:])
    assert run(*command, cwd=tmp_path).returncode == 1  # the report exists
    assert run(*command, "--force", cwd=tmp_path).returncode == 0


def test_evaluate_says_which_rows_and_prints_intervals(tmp_path, vectors):
    np.save(tmp_path / "x.npy", vectors.matrix)
    embits.binarize(vectors.matrix, 32, "lsh").save(tmp_path / "b.safetensors")
    command = ["evaluate", "b.safetensors", "--raw", "x.npy", "--tasks", "neighbors"]
    done = run(*command, "--bootstrap", "50", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert any(line.split()[-1] == "unseen" for line in done.stdout.splitlines())
    assert "[" in done.stdout
    done = run(*command, "--fit-rows", "all", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)[1]["neighbors"]["rows"] == "seen"
    for wrong in (["--fit-rows", "none"], ["--latex"], ["--bootstrap", "-1"]):
        assert run(*command, *wrong, cwd=tmp_path).returncode == 2
