"""Neural beside NearLossless and FAISS's residual quantizer, on rows that no fit has seen.

    python benchmarks/neural.py quality [--bits 64,128,256,512,1024] [--seeds 3] [--vectors X.npy]
        [--methods near-lossless,neural,neural-long,neural-long-float,rq] [--json FILE]
    python benchmarks/neural.py scifact [--bits 64,128,256,512] [--methods neural-long]
    python benchmarks/neural.py few [--bits 64,128,256,512]
    python benchmarks/neural.py speed
    python benchmarks/neural.py gpu [--bits 256] [--device cuda] [--vectors X.npy] [--json FILE]

`quality` fits on half of the rows of X (31,600 sentence embeddings in $EMBITS_DATA, or in
../shared/data), codes all, and asks for the ten nearest rows of 1,000 of the others. U is recall@10
by float query among the unseen rows alone; `all` is that among all rows, and `hamming` that by
Hamming distance among all rows. Rows of rq are scored by the inner product with the decompressed
row, and by its cosine. `scifact` gives nDCG@10 of 300 claims among 5,183 abstracts. `few` has 5,000
rows of 1,536 dimensions: random features of sentences, in which few rows span few directions.
`speed` times the second look at 100 rows and encoding, on one thread. `gpu` times fits on a GPU,
and encoding there, on one core and on all; `differ` is how many codes of the GPU are not the CPU's.
"""

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

import embits
from embits import _core
from embits.evaluation import evaluate_retrieval, read_retrieval
from provenance import provenance
from unseen_rows import DATA, nearest, sentences, unit

QUERIES = 1000
NEURAL = {
    "neural": {},
    "neural-float": {"prefer": "float"},
    "neural-hamming": {"prefer": "hamming"},
    "neural-long": {"effort": "long"},
    "neural-long-float": {"effort": "long", "prefer": "float"},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["quality", "scifact", "few", "speed", "gpu"])
    parser.add_argument("--bits", default="64,128,256,512,1024")
    parser.add_argument("--methods", default="near-lossless,neural")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--device", default="cuda", help="of gpu")
    parser.add_argument("--json", type=Path, help="append every run here, a line each")
    options = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, kernels: {_core.available_simd()[-1]}")
    if options.what == "speed":
        speed()
        return
    if options.what == "gpu":
        gpu(rows_of(options.vectors), options)
        return
    X = {"quality": lambda: rows_of(options.vectors), "few": few_rows}.get(
        options.what, lambda: None
    )()
    for n_bits in map(int, options.bits.split(",")):
        for method in options.methods.split(","):
            runs = []
            for seed in range(options.seeds):
                run = (
                    scifact(method, n_bits, seed) if X is None else quality(X, method, n_bits, seed)
                )
                runs.append(run)
                if options.json:
                    about = {"what": options.what, "method": method, "bits": n_bits, "seed": seed}
                    line = about | run | {"about": provenance([seed])}
                    with options.json.open("a") as file:
                        print(json.dumps(line), file=file)
            mean = {name: np.mean([run[name] for run in runs]) for name in runs[0]}
            shown = "  ".join(f"{name} {value:.3f}" for name, value in mean.items())
            print(f"{options.what} {n_bits} bits {method}: {shown}", flush=True)


def rows_of(path):
    if path is None:
        return sentences()
    X = unit(np.load(path))
    return X[np.random.default_rng(0).permutation(len(X))]


def few_rows():
    """Random features of sentences: 1,536 dimensions with a falling spectrum."""
    rng = np.random.default_rng(1)
    X = sentences()[:10_000]
    return unit(np.tanh(3 * X @ rng.normal(size=(X.shape[1], 1536))))


def new_coder(method, n_bits, seed):
    if method in NEURAL:
        return embits.Neural(n_bits, random_state=seed, **NEURAL[method])
    return embits.coders.new_coder(method, n_bits, {"random_state": seed})


def quality(X, method, n_bits, seed):
    half, queries = len(X) // 2, np.arange(len(X) // 2, len(X) // 2 + QUERIES)
    if method == "rq":
        return residual_quantizer(X, half, queries, n_bits // 8)
    start = time.perf_counter()
    coder = new_coder(method, n_bits, seed).fit(X[:half])
    fitted = time.perf_counter() - start
    codes = coder.encode(X)
    encoded = time.perf_counter() - start - fitted
    bits = embits.BinaryVectors(None, codes, coder)
    unseen = np.arange(len(X)) >= half
    alone = bits.subset(unseen)
    return {
        "U": recall(
            alone.search(X[queries], 11, metric="asymmetric").rows + half, X, queries, half
        ),
        "all": recall(bits.search(X[queries], 11, metric="asymmetric").rows, X, queries),
        "hamming": recall(bits.search(codes[queries], 11).rows, X, queries),
        "decoded": recall(bits.search(codes[queries], 11, metric="decoded").rows, X, queries),
        "fit s": fitted,
        "code ms": 1e3 * encoded / len(X),
    }


def residual_quantizer(X, half, queries, n_bytes):
    import faiss

    start = time.perf_counter()
    quantizer = faiss.ResidualQuantizer(X.shape[1], n_bytes, 8)
    quantizer.train(X[:half])
    fitted = time.perf_counter() - start
    rows = quantizer.decode(quantizer.compute_codes(X))
    encoded = time.perf_counter() - start - fitted
    found = {"fit s": fitted, "code ms": 1e3 * encoded / len(X)}
    for name, vectors in (("inner", rows), ("cosine", unit(rows))):
        scores = X[queries] @ vectors.T
        found[f"{name} all"] = recall(np.argsort(-scores, axis=1)[:, :11], X, queries)
        alone = np.argsort(-scores[:, half:], axis=1)[:, :11] + half
        found[f"{name} U"] = recall(alone, X, queries, half)
    return found


def recall(found, X, queries, first=0):
    """Recall@10 of rows, of which the query itself does not count, among rows from `first` on."""
    true = nearest(X[first:], queries - first) + first
    shares = []
    for rows, near, query in zip(found.tolist(), true.tolist(), queries.tolist(), strict=True):
        others = [row for row in rows if row != query][:10]
        shares.append(len(set(others) & set(near)) / 10)
    return np.mean(shares)


def scifact(method, n_bits, seed):
    judged = read_retrieval(DATA / "retrieval" / "scifact")
    start = time.perf_counter()
    coder = new_coder(method, n_bits, seed).fit(judged.corpus.matrix)
    fitted = time.perf_counter() - start
    scores = evaluate_retrieval(judged, coder)
    ways = ("hamming", "asymmetric", "decoded")
    return {way: scores[way]["ndcg@10"] for way in ways} | {"fit s": fitted}


def speed():
    X = sentences()
    coder = embits.Neural(256).fit(X[:4000])
    codes = coder.encode(X[:2000])
    bits = embits.BinaryVectors(None, codes, coder)
    print(f"net of {coder.net.A.shape[0]} units a layer; medians")
    for simd in _core.available_simd():
        _core.use_simd(simd)
        decode = median(lambda: coder.net.decode(codes[:100], threads=1), 50)
        whole = [
            median(
                lambda look=look: bits.on(threads=1).search(
                    X[9000], 10, metric="asymmetric", rescore=embits.Rescore(look, "decoded")
                ),
                50,
            )
            for look in (0, 100)
        ]
        encode = median(lambda: coder.encode(X[:500]), 5) / 500
        print(
            f"{simd}: net of 100 rows {1e3 * decode:.2f} ms; a search of 2,000 rows "
            f"{1e3 * whole[0]:.2f} ms, with the second look {1e3 * whole[1]:.2f}; "
            f"encoding on all cores {1e3 * encode:.3f} ms a row"
        )


def gpu(X, options):
    import torch

    device, half = options.device, len(X) // 2
    is_cuda = device.startswith("cuda")
    name = torch.cuda.get_device_name(device) if is_cuda else device
    print(f"{name}, PyTorch {torch.__version__}, {os.cpu_count()} cores, {len(X):,} rows")
    embits.NearLossless(64, device=device, steps=10).fit(X[:500])  # the device starts
    for n_bits in map(int, options.bits.split(",")):
        for effort in ("default", "long"):
            torch.cuda.reset_peak_memory_stats() if is_cuda else None
            start = time.perf_counter()
            coder = embits.Neural(n_bits, effort=effort, device=device).fit(X[:half])
            run = {"fit s": time.perf_counter() - start}
            codes, there = coder.encode(X), torch.asarray(X).to(device)
            run["gpu us"] = 1e6 * median(lambda c=coder: c.encode(X, device=device), 5) / len(X)
            run["tensor us"] = 1e6 * median(lambda c=coder, t=there: c.encode(t), 5) / len(X)
            run["cores us"] = 1e6 * median(lambda c=coder: c.encode(X), 3) / len(X)
            run["core us"] = 1e6 * on_one_core(lambda c=coder: c.encode(X[:2000])) / 2000
            run["times"] = run["core us"] / run["gpu us"]
            run["differ"] = int((coder.encode(X, device=device) != codes).any(axis=1).sum())
            alone = embits.BinaryVectors(None, codes[half:], coder)
            queries = np.arange(half, half + QUERIES)
            found = alone.search(X[queries], 11, metric="asymmetric").rows + half
            run["U"] = recall(found, X, queries, half)
            found = embits.search.top_k(codes, codes[queries], 11).rows
            run["hamming"] = recall(found, X, queries)
            run["GB"] = torch.cuda.max_memory_allocated() / 1e9 if is_cuda else 0
            shown = "  ".join(f"{name} {value:.3f}" for name, value in run.items())
            print(f"{n_bits} bits, {effort}: {shown}", flush=True)
            if options.json:
                about = {"what": "gpu", "device": name, "bits": n_bits, "effort": effort}
                with options.json.open("a") as file:
                    print(json.dumps(about | run | {"about": provenance([0])}), file=file)


def on_one_core(work):
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    taken = median(work, 3)
    os.sched_setaffinity(0, allowed)
    return taken


def median(work, times):
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return np.median(taken)


if __name__ == "__main__":
    main()
