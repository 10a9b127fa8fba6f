"""Retrieval scores are those of trec_eval, and broken data sets are named in one line."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import embits
from embits.evaluation import DataFolder, Evaluator, evaluate_retrieval, read_retrieval
from embits.evaluation.compare import Comparison
from embits.evaluation.data import RetrievalSet, read_qrels
from embits.evaluation.tasks.retrieval import judged_queries, score_codes, score_rankings
from tests.support.program import run
from tests.support.retrieval import write_qrels, write_retrieval

THEIR_NAMES = {
    "ndcg@10": "ndcg_cut_10", "recall@10": "recall_10", "recall@100": "recall_100",
    "mrr": "recip_rank",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    write_retrieval(tmp_path / "data/retrieval/small")
    return tmp_path / "data/retrieval/small"


def by_trec_eval(data, found):
    """trec_eval's scores by query. The scores of the run keep our order, also for ties."""
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judged = [query for query in data.queries.words if query in data.qrels]
    ranking = {
        query: {data.corpus.words[row]: float(len(rows) - rank) for rank, row in enumerate(rows)}
        for query, rows in zip(judged, found.tolist(), strict=True)
    }
    wanted = {"ndcg_cut.10", "recall.10,100", "recip_rank"}
    scores = pytrec_eval.RelevanceEvaluator(data.qrels, wanted).evaluate(ranking)
    return {ours: [scores[q][name] for q in judged] for ours, name in THEIR_NAMES.items()}


@given(st.data())
def test_every_measure_of_every_query_is_trec_evals(data):
    pytest.importorskip("pytrec_eval")
    n, q = data.draw(st.integers(3, 130)), data.draw(st.integers(1, 4))
    ids = [f"d{i}" for i in range(n)]
    grades = st.dictionaries(st.sampled_from([*ids, "x", "y"]), st.integers(-1, 5), min_size=1)
    qrels = {f"q{i}": data.draw(grades) for i in range(q)}
    zeros = np.zeros((n, 2))
    queries = embits.WordVectors([f"q{i}" for i in range(q)], np.zeros((q, 2)))
    retrieval = RetrievalSet(embits.WordVectors(ids, zeros), queries, qrels)
    found = np.array([data.draw(st.permutations(range(n))) for _ in range(q)])[:, :100]
    ours = score_rankings(judged_queries(retrieval), found)
    for name, theirs in by_trec_eval(retrieval, found).items():
        np.testing.assert_allclose(ours[name], theirs, atol=1e-9, err_msg=name)


def test_codes_and_floats_are_scored_as_by_a_slow_search(folder):
    data = read_retrieval(folder)
    coder = embits.RandomHyperplanes(n_bits=64).fit(data.corpus.matrix)
    judged = [row for row, query in enumerate(data.queries.words) if query in data.qrels]
    assert len(judged) == 18  # two have no judgement
    X, Q = data.corpus.matrix, data.queries.matrix[judged]
    codes, asked = (np.unpackbits(coder.encode(v), axis=1).astype(int) for v in (X, Q))
    distances = (asked[:, None] != codes[None]).sum(axis=2)
    hamming = np.argsort(distances, axis=1, kind="stable")
    cosines = (Q @ X.T) / np.linalg.norm(X, axis=1)
    short = np.take_along_axis(cosines, hamming[:, :40], axis=1)
    rescored = np.take_along_axis(hamming, np.argsort(-short, axis=1), axis=1)[:, :10]
    scored = score_codes(data, coder)
    assert set(scored) == {"hamming", "asymmetric", "decoded", "rescored"}
    theirs = by_trec_eval(data, hamming[:, :100])
    for name, values in theirs.items():
        np.testing.assert_allclose(scored["hamming"][name], values, atol=1e-9)
    np.testing.assert_allclose(
        scored["rescored"]["ndcg@10"], by_trec_eval(data, rescored)["ndcg@10"]
    )
    floats = evaluate_retrieval(data)["floats"]
    wanted = by_trec_eval(data, np.argsort(-cosines, axis=1)[:, :100])
    assert floats == pytest.approx({name: np.mean(values) for name, values in wanted.items()})


def test_scifact_floats_reach_the_known_score(data):
    if not (data / "retrieval/scifact").is_dir():
        pytest.skip("no SciFact in the evaluation data")
    scores = evaluate_retrieval(read_retrieval(data / "retrieval/scifact"))["floats"]
    assert scores["ndcg@10"] == pytest.approx(0.647, abs=5e-4)


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["beir", "trec"])
def test_all_layouts_are_the_same_data(folder, layout):
    wanted = read_retrieval(folder)
    if layout == "beir":
        (folder / "qrels").mkdir()
        (folder / "qrels.tsv").rename(folder / "qrels/test.tsv")
    if layout == "trec":
        lines = [f"{q} 0 {d} {s}" for q, of in wanted.qrels.items() for d, s in of.items()]
        (folder / "qrels.tsv").write_text("\n".join(line for line in lines if "not a" not in line))
    found = read_retrieval(folder)
    assert {q: j for q, j in wanted.qrels.items() if q in found.qrels} == found.qrels


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("qrels.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t0.5\n", "line 2: found .*0.5"),
        ("qrels.tsv", "q1\td1\t1\nq1\td1\t2\n", "line 2: .* expected each pair of ids once"),
        ("qrels.tsv", "q1\td1\n", "line 1: .* expected query-id corpus-id score"),
        ("qrels.tsv", "query-id\tcorpus-id\tscore\n", "found no judgements"),
        ("qrels.tsv", "z1\td1\t1\n", "no id of its queries is in the file of queries"),
        ("corpus_ids.txt", "d1\n" * 200, "d1"),
        ("corpus_ids.txt", "d1\nd2\n", "2 words for 200 rows"),
        ("corpus.npy", "not an array", "corpus.npy"),
        ("corpus.npy", None, "corpus.npy"),
        ("query_ids.txt", None, "query_ids.txt"),
        ("qrels.tsv", None, "qrels.tsv"),
    ],
)  # fmt: skip
def test_a_broken_file_is_one_line_and_the_set_is_skipped(folder, name, content, says):
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises((embits.ReadError, OSError), match=says) as error:
        read_retrieval(folder)
    assert "\n" not in str(error.value)
    data = DataFolder.at(folder.parents[1])
    assert data.retrieval() == {}
    assert data.problems[0].startswith("small is skipped")


def test_ids_may_start_with_a_number_sign_and_contain_spaces(tmp_path):
    write_qrels(tmp_path / "qrels.tsv", {"#1 a": {"#2 b": 1}})
    assert read_qrels(tmp_path / "qrels.tsv") == {"#1 a": {"#2 b": 1}}


def test_scores_between_odd_spaces_are_numbers_and_endless_digits_are_refused(tmp_path):
    path = tmp_path / "qrels.tsv"
    path.write_text("q\td\t1\nq\te\t\x1d2\x1f\n")
    assert read_qrels(path) == {"q": {"d": 1, "e": 2}}
    path.write_text(f"q\td\t1\nq\te\t{'9' * 5000}\n")
    with pytest.raises(embits.ReadError, match="line 2"):
        read_qrels(path)


# -- the verbs -------------------------------------------------------------------------------------


def test_evaluate_finds_the_folder_and_prints_the_shape_of_the_design(tmp_path, folder):
    X = np.load(folder / "corpus.npy")
    embits.binarize(X, 64, "lsh").save(tmp_path / "b.safetensors")
    embits.binarize(X[:, :9], 64, "lsh").save(tmp_path / "other.safetensors")
    np.save(tmp_path / "x.npy", X)
    command = ["evaluate", "--tasks", "retrieval", "--data", "data", "--json"]
    done = run(*command, "b.safetensors", "other.safetensors", "--raw", "x.npy", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    raw, bits, other = json.loads(done.stdout)
    measures = {"ndcg@10", "recall@10", "recall@100", "mrr"}
    assert {way: set(of) for way, of in raw["retrieval"]["small"].items()} == {"floats": measures}
    ways = ("hamming", "asymmetric", "decoded", "rescored")
    assert {w: set(of) for w, of in bits["retrieval"]["small"].items()} == dict.fromkeys(
        ways, measures
    )
    assert "retrieval" not in other
    assert "small is skipped for other.safetensors: embeddings of 24 dimensions" in done.stderr
    done = run(*command[:-1], "b.safetensors", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for line in ("small nDCG@10, floats", "small recall@100, float query", "small MRR, rescored"):
        assert line in done.stdout
    done = run(*command, "other.safetensors", cwd=tmp_path)
    assert done.returncode == 1
    assert "nothing could be scored: small is skipped" in done.stderr


def test_compare_fits_every_method_on_the_corpus(tmp_path, folder, vectors):
    data = read_retrieval(folder)
    comparison = Comparison(
        embits.WordVectors(vectors.words, vectors.matrix[:, :10]), tmp_path / "r",
        DataFolder.at(folder.parents[1]), [32], ["lsh", "sign"], ("retrieval",),
    )  # fmt: skip
    raw, lsh, sign = comparison.run()
    assert raw["retrieval"]["small"] == evaluate_retrieval(data)
    fitted = embits.RandomHyperplanes(n_bits=32, random_state=0).fit(data.corpus.matrix)
    assert lsh["retrieval"]["small"] == evaluate_retrieval(data, fitted)
    assert sign["retrieval"]["small"] == evaluate_retrieval(
        data, embits.SignBits().fit(data.corpus.matrix)
    )


def test_the_report_has_a_table_and_a_figure_of_each_set(tmp_path, folder):
    pytest.importorskip("matplotlib")
    np.save(tmp_path / "x.npy", np.load(folder / "corpus.npy"))
    done = run("compare", "x.npy", "--tasks", "retrieval", "--data", "data", "--bits", "16,32",
               "--methods", "lsh,itq", "--report", "r", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "r/report.md").read_text()
    assert "Table 1. Retrieval" in text
    assert "Figure 1. Retrieval by width" in text
    assert "small nDCG@10, float query" in text
    assert (tmp_path / "r/figures/retrieval.png").exists()


def test_an_evaluator_without_raw_vectors_adds_the_floats(folder):
    data = read_retrieval(folder)
    bits = embits.binarize(data.corpus, 32, "lsh")
    found = Evaluator(folder.parents[1], None, "retrieval").evaluate_bits(bits)
    assert list(found["retrieval"]["small"]) == [
        "floats", "hamming", "asymmetric", "decoded", "rescored",
    ]  # fmt: skip
