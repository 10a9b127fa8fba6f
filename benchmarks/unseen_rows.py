"""Codes of vectors that no fit has seen: recall, retrieval, words, and what a fit and a code cost.

    python benchmarks/unseen_rows.py minilm scifact encode [--bits 64,128,256,512,1024] [--seeds 3]
    python benchmarks/unseen_rows.py words --vectors GoogleNews.bin

The data is looked for in $EMBITS_DATA, or in ../shared/data. `minilm` fits on half of 31,600
sentence embeddings, codes all, and asks for the ten nearest rows of 1,000 of the others.
`scifact` fits on 5,183 abstracts and asks with 300 claims (nDCG@10). `words` fits on all rows of
a file of word vectors; F is the Fisher mean of Spearman's correlations, times 100. `encode`
compares encoding with the bare product W x on one thread.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import embits
from embits.coders.near_lossless.encoder import Encoder
from embits.evaluation import evaluate_retrieval, read_retrieval
from embits.readers import read_vectors

DATA = Path(os.environ.get("EMBITS_DATA", "../shared/data"))
WAYS = ("hamming", "asymmetric", "decoded")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="+", choices=["minilm", "scifact", "words", "encode"])
    parser.add_argument("--bits", default="64,128,256,512,1024")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--vectors", help="of words: whatever embits reads")
    parser.add_argument("--steps", type=int)
    options = parser.parse_args()
    for what in options.what:
        for n_bits in map(int, options.bits.split(",")):
            rows = [globals()[what](n_bits, seed, options) for seed in range(options.seeds)]
            mean = {name: np.mean([row[name] for row in rows]) for name in rows[0]}
            shown = "  ".join(f"{name} {value:.3f}" for name, value in mean.items())
            print(f"{what} {n_bits} bits: {shown}", flush=True)


def coder(n_bits, seed, options):
    return embits.NearLossless(n_bits, random_state=seed, steps=options.steps)


def unit(X):
    X = X.astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def sentences():
    names = "agnews_test", "agnews_train10k", "dbpedia14k"
    X = unit(np.concatenate([np.load(DATA / "sentences" / f"{name}.npy") for name in names]))
    return X[np.random.default_rng(0).permutation(len(X))]


def nearest(X, queries, k=10):
    scores = X[queries] @ X.T
    scores[np.arange(len(queries)), queries] = -np.inf
    return np.argpartition(-scores, k, axis=1)[:, :k]


def recalls(bits, X, queries):
    """Recall@10 by each way to ask, and the mean cosine of the rebuilt queries."""
    true = nearest(X, queries)
    out = {}
    for way in WAYS:
        rows = bits.search(X[queries], k=11, metric=way).rows
        found = [
            len({r for r in row if r != query} & set(near))
            if query in row
            else len(set(row[:10]) & set(near))
            for row, near, query in zip(rows.tolist(), true.tolist(), queries.tolist(), strict=True)
        ]
        out[way] = np.mean(found) / 10
    rebuilt = unit(bits.decode(bits.codes[queries]))
    return {**out, "cosine": np.mean(np.sum(rebuilt * X[queries], axis=1))}


def timed_fit(coder, X):
    wall, cpu = time.perf_counter(), time.process_time()
    coder.fit(X)
    return {"fit_s": time.perf_counter() - wall, "fit_cpu_s": time.process_time() - cpu}


def minilm(n_bits, seed, options):
    X = sentences()
    half, fitted = len(X) // 2, coder(n_bits, seed, options)
    times = timed_fit(fitted, X[:half])
    bits = embits.BinaryVectors(None, fitted.encode(X), fitted)
    unseen = recalls(bits, X, np.arange(half, half + 1000))
    seen = recalls(bits, X, np.arange(1000))
    return {
        **unseen,
        "seen_hamming": seen["hamming"],
        "seen_asymmetric": seen["asymmetric"],
        **times,
    }


def scifact(n_bits, seed, options):
    data = read_retrieval(DATA / "retrieval" / "scifact")
    fitted = coder(n_bits, seed, options)
    times = timed_fit(fitted, data.corpus.matrix)
    scores = evaluate_retrieval(data, fitted)
    return {**{way: scores[way]["ndcg@10"] for way in WAYS}, **times}


def words(n_bits, seed, options):
    vectors = read_vectors(options.vectors)
    fitted = coder(n_bits, seed, options)
    times = timed_fit(fitted, vectors.matrix)
    bits = embits.BinaryVectors.encoded(vectors, fitted)
    X = unit(vectors.matrix)
    queries = np.random.default_rng(1).choice(min(30_000, len(X)), 1000, replace=False)
    table = {word: row for row, word in reversed(list(enumerate(vectors.words)))}
    scores = {f"F_{way}": fisher_mean(bits, table, way) for way in ("hamming", "decoded")}
    return {**recalls(bits, X, queries), **scores, **analogies(bits, X, table), **times}


def fisher_mean(bits, table, way):
    from scipy.stats import spearmanr

    rebuilt = unit(bits.decode())
    correlations = []
    for file in sorted((DATA / "similarity").glob("*.txt")):
        lines = [line.split() for line in file.read_text().splitlines()]
        pairs = [(table[a], table[b], float(s)) for a, b, s in lines if a in table and b in table]
        a, b = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
        if way == "hamming":
            ours = -np.bitwise_count(bits.codes[a] ^ bits.codes[b]).sum(axis=1).astype(float)
        else:
            ours = np.sum(rebuilt[a] * rebuilt[b], axis=1)
        correlations.append(spearmanr(ours, [pair[2] for pair in pairs])[0])
    return 100 * np.tanh(np.mean(np.arctanh(correlations)))


def analogies(bits, X, table):
    """Percentage answered by the floats, by decoded codes and by the paper's rule."""
    lines = (DATA / "analogy" / "questions-words.txt").read_text().splitlines()
    asked = [line.split() for line in lines if not line.startswith(":")]
    known = np.array([[table[w] for w in q] for q in asked if all(w in table for w in q)])
    known = known[np.random.default_rng(0).permutation(len(known))[:1500]]
    right = {"floats": 0, "decoded": 0, "boolean": 0}
    for a, b, c, d in known.tolist():
        scores = X @ (X[b] - X[a] + X[c])
        scores[[a, b, c]] = -np.inf
        right["floats"] += int(scores.argmax()) == d
        words = [bits.words[row] for row in (a, b, c)]
        answer = bits.most_similar(words[1:], words[:1], topn=1, metric="decoded")[0][0]
        right["decoded"] += answer == bits.words[d]
        code = bits.codes[b] & ~bits.codes[a] | bits.codes[c]
        rows = bits.search(code, k=4).rows.tolist()
        right["boolean"] += next(row for row in rows if row not in (a, b, c)) == d
    return {f"analogies_{name}": 100 * count / len(known) for name, count in right.items()}


def encode(n_bits, seed, options):
    """Microseconds a row, on one thread: the bare product, thresholds, and the search."""
    X = np.ascontiguousarray(sentences()[:8192])
    fitted = coder(n_bits, seed, argparse.Namespace(steps=20)).fit(X)
    W = np.ascontiguousarray(fitted.W_.T)
    encoder = fitted._encoder() if not fitted.is_threshold else None
    if not isinstance(encoder, Encoder):
        return {"searched": 0.0}
    best = {"product": np.inf, "searched": np.inf}
    for _ in range(7):
        for name, run in (
            ("product", lambda: [X[i : i + 2048] @ W for i in range(0, len(X), 2048)]),
            ("searched", lambda: encoder.encode(X, 1)),
        ):
            start = time.perf_counter()
            run()
            best[name] = min(best[name], (time.perf_counter() - start) / len(X) * 1e6)
    return {**best, "ratio": best["searched"] / best["product"]}


if __name__ == "__main__":
    main()
