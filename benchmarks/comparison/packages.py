"""The quantizers of other packages as contenders; each package is imported when it is needed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measures import Clock, Fitted, Floats, Maker, Rows, Search, unit

CORES = len(os.sched_getaffinity(0))


def faiss_maker(factory: str) -> Maker:
    """An index of FAISS, by the words of its index factory."""
    import faiss

    def make(sample: Floats, X: Floats) -> Fitted:
        faiss.omp_set_num_threads(CORES)
        clock = Clock()
        index = faiss.index_factory(X.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(sample)
        fit_s = clock.lap()
        shared = faiss.serialize_index(index).nbytes
        clock.lap()
        index.add(X)
        encode_us = 1e6 * clock.lap() / len(X)
        n_bytes = (faiss.serialize_index(index).nbytes - shared) / len(X)

        def search(queries: Floats, k: int) -> Rows:
            faiss.omp_set_num_threads(1)
            return index.search(queries, k)[1]

        ways: dict[str, Search] = {"": search}
        if "_Nnone" in factory:  # additive quantizers, whose rows differ in length
            directions = faiss.IndexFlatIP(X.shape[1])
            directions.add(unit(index.reconstruct_n(0, len(X))))
            ways["cosine"] = lambda queries, k: directions.search(queries, k)[1]
        return Fitted(ways, n_bytes, shared, fit_s, encode_us)

    return make


def scann_maker(block: int) -> Maker:
    """ScaNN's anisotropic hashing without partitions: 4 bits for each block of dimensions.

    Its file has a byte for each block; in memory two blocks share one.
    """
    import scann

    def make(sample: Floats, X: Floats) -> Fitted:
        builder = scann.scann_ops_pybind.builder(sample, 10, "dot_product")
        builder.score_ah(block, anisotropic_quantization_threshold=0.2)
        clock = Clock()
        rows = list(range(len(X)))
        index = builder.set_n_training_threads(CORES).build(docids=rows[: len(sample)])
        fit_s = clock.lap()
        if len(X) > len(sample):  # the sample is the first half of the rows, or all of them
            index.upsert(rows[len(sample) :], X[len(sample) :], batch_size=1000)
        encode_us = 1e6 * clock.lap() / max(len(X) - len(sample), 1)

        def search(queries: Floats, k: int) -> Rows:
            found = [index.search(query, final_num_neighbors=k)[0] for query in queries]
            return np.array(found, dtype=np.int64)

        n_bytes = -(-X.shape[1] // block) / 2
        return Fitted({"": search}, n_bytes, scann_codebook(index), fit_s, encode_us)

    return make


def scann_codebook(index: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        index.serialize(folder)
        return (Path(folder) / "ah_codebook.pb").stat().st_size


def turbovec_maker(n_bits: int) -> Maker:
    """turbovec's TurboQuant, calibrated on the sample; dimensions padded to a multiple of 8."""
    import turbovec

    def padded(X: Floats) -> Floats:
        return np.pad(X, ((0, 0), (0, -X.shape[1] % 8)))

    def make(sample: Floats, X: Floats) -> Fitted:
        sample, X = padded(sample), padded(X)
        clock = Clock()
        index = turbovec.TurboQuantIndex(dim=X.shape[1], bit_width=n_bits)
        index.calibrate(sample)
        fit_s = clock.lap()
        shared = len(index.to_bytes())
        clock.lap()
        index.add(X)
        encode_us = 1e6 * clock.lap() / len(X)
        n_bytes = (len(index.to_bytes()) - shared) / len(X)
        ways: dict[str, Search] = {"": lambda queries, k: index.search(padded(queries), k)[1]}
        return Fitted(ways, n_bytes, shared, fit_s, encode_us)

    return make


def rabitqlib_maker(n_bits: int) -> Maker:
    """RaBitQ of its authors' library: one cluster, whose center is the mean of the sample."""
    import rabitqlib

    def built(X: Floats, center: Floats) -> Any:
        index = rabitqlib.IvfIndex(X.shape[1], len(X), 1, n_bits, metric="ip")
        index.build(X, center, np.zeros(len(X), dtype=np.uint32), num_threads=CORES)
        return index

    def make(sample: Floats, X: Floats) -> Fitted:
        clock = Clock()
        center = sample.mean(axis=0, keepdims=True)
        fit_s = clock.lap()
        index = built(X, center)
        encode_us = 1e6 * clock.lap() / len(X)
        few = X[: len(X) // 2]
        whole, part = saved_size(index), saved_size(built(few, center))
        n_bytes = (whole - part) / (len(X) - len(few))
        shared = round(whole - n_bytes * len(X))
        ways: dict[str, Search] = {"": lambda queries, k: index.search(queries, k, 1)[0]}
        return Fitted(ways, n_bytes, shared, fit_s, encode_us)

    return make


def usearch_maker(dtype: str) -> Maker:
    """usearch's number formats, searched exactly; its index keeps the smallest graph it accepts."""
    from usearch.index import Index

    def make(sample: Floats, X: Floats) -> Fitted:
        clock = Clock()
        graph = {"connectivity": 2, "expansion_add": 1}
        index = Index(ndim=X.shape[1], metric="ip", dtype=dtype, **graph)
        index.add(np.arange(len(X)), X, threads=CORES)
        encode_us = 1e6 * clock.lap() / len(X)

        def search(queries: Floats, k: int) -> Rows:
            keys = index.search(queries, k, exact=True, threads=1).keys
            return np.asarray(keys, dtype=np.int64).reshape(len(queries), -1)

        return Fitted({"": search}, index.serialized_length / len(X), 0, 0.0, encode_us)

    return make


def saved_size(index: Any) -> int:
    """Bytes of an index in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        index.save(str(path))
        return path.stat().st_size
