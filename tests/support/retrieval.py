"""Small retrieval data sets in BEIR's layout."""

import numpy as np


def write_retrieval(folder, n_documents=200, n_queries=20, dims=24, seed=0):
    """Write a data set with graded, missing and repeated-free judgements; returns its parts."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    corpus = rng.normal(size=(n_documents, dims)).astype("f4")
    queries = corpus[:n_queries] + rng.normal(size=(n_queries, dims)).astype("f4")
    doc_ids = [f"d{i}" for i in range(n_documents)]
    query_ids = [f"q{i}" for i in range(n_queries)]
    np.save(folder / "corpus.npy", corpus)
    np.save(folder / "queries.npy", queries.astype("f2"))
    (folder / "corpus_ids.txt").write_text("\n".join(doc_ids) + "\n")
    (folder / "query_ids.txt").write_text("\n".join(query_ids) + "\n")
    qrels = {}
    for i in range(n_queries - 2):  # the last two queries are not judged
        judged = {f"d{j}": int(rng.integers(-1, 4)) for j in rng.integers(0, n_documents, 8)}
        qrels[f"q{i}"] = judged | {f"d{i}": 2}
    qrels["q1"]["absent"] = 1
    qrels["q2"] = dict.fromkeys(qrels["q2"], 0)  # judged, and nothing is relevant
    qrels["not a query"] = {"d1": 1}
    write_qrels(folder / "qrels.tsv", qrels)
    return corpus, queries.astype("f2").astype("f4"), qrels


def write_qrels(path, qrels):
    lines = [f"{q}\t{d}\t{score}" for q, judged in qrels.items() for d, score in judged.items()]
    path.write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
