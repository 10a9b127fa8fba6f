"""Text encoders: score against megabytes, answers on SciFact, and speed.

    python benchmarks/text_encoder.py quality wordllama MODEL glove.txt --out FILE.json
    python benchmarks/text_encoder.py answers wordllama MODEL glove.txt --out FILE.json
    python benchmarks/text_encoder.py speed encoder.safetensors --model2vec FOLDER

A source is "wordllama", the folder of a static model (MODEL), or a file of word vectors. Data is
read from $EMBITS_DATA (default ../shared/data). In FILE.json, a source that is measured again is
replaced.

`quality` stores the table of a source in many ways. Each has the same tokens, pooled with the same
weights; megabytes are those of the table, without tokenizer or words. Texts are compared by cosine.
The accuracy is that of the ten nearest training texts; nDCG@10 is on SciFact. Nothing is fitted on
these texts.

`answers` fits encoders and codes on the abstracts of SciFact as `embits index` does, and adds
the MiniLM vectors of the data. A hybrid is the sum of standardized scores, as `--hybrid` adds them;
what joins two encoders is computed here.
"""

import csv
import gzip
import itertools
import json
import os
import re
import time
from functools import cache
from pathlib import Path

import click
import numpy as np

import embits
from embits.arrays import unit_rows
from embits.text.answers import Words, _meanings, _standardized
from embits.text.sources import read_static
from embits.text.table import Table
from provenance import provenance

DATA = Path(os.environ.get("EMBITS_DATA", "../shared/data"))
ROOT = Path(__file__).parents[1]
STORED = ROOT / "benchmarks/results/text_encoder.json"
WIDTHS = (64, 128, 256, 512)
PARTS = {  # of the data, that this reads
    "ag_news": "sentences/agnews_test.tsv.gz",
    "dbpedia": "sentences/dbpedia14k.tsv.gz",
    "scifact": "retrieval/scifact/corpus.jsonl.gz",
}


def labelled(name):
    """Labels and texts of a set of `sentences`."""
    with gzip.open(DATA / "sentences" / name, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row[1] for row in rows], np.array([row[0] for row in rows])


def neighbors_accuracy(X, labels, Q, expected, k=10):
    """How many labels the majority of the k nearest training texts gives."""
    names, numbers = np.unique(labels, return_inverse=True)
    right = 0
    for start in range(0, len(Q), 1000):
        scores = Q[start : start + 1000] @ X.T
        near = numbers[np.argpartition(-scores, k, axis=1)[:, :k]]
        votes = np.stack([(near == number).sum(axis=1) for number in range(len(names))], axis=1)
        right += (names[votes.argmax(axis=1)] == expected[start : start + 1000]).sum()
    return right / len(Q)


@cache
def scifact():
    """Texts, questions, and the relevance of each pair (questions, texts)."""
    folder = DATA / "retrieval" / "scifact"
    corpus, queries = (
        list(
            map(
                json.loads, gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).splitlines()
            )
        )
        for name in ("corpus", "queries")
    )
    places = {each["_id"]: place for place, each in enumerate(corpus)}
    numbers = {each["_id"]: place for place, each in enumerate(queries)}
    relevance = np.zeros((len(queries), len(corpus)))
    for line in (folder / "qrels.tsv").read_text().splitlines()[1:]:
        query, text, grade = line.split("\t")
        relevance[numbers[query], places[text]] = float(grade)
    texts = [f"{each['title']} {each['text']}" for each in corpus]
    return texts, [each["text"] for each in queries], relevance


def ndcg(scores, relevance, k=10):
    """Mean nDCG@k of scores (questions, texts)."""
    discounts = 1 / np.log2(np.arange(2, k + 2))
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    gains = (np.take_along_axis(relevance, best, axis=1) * discounts).sum(axis=1)
    ideal = (-np.sort(-relevance, axis=1)[:, :k] * discounts).sum(axis=1)
    return float((gains / ideal).mean())


# -- score against megabytes -----------------------------------------------------------------------


def opened(source, n_bits=256, seed=0, kind="near-lossless", lengths=True):
    """The text encoder of a source."""
    if not Path(source).is_file():
        return embits.TextEncoder(source, n_bits, method=kind, random_state=seed).opened()
    vectors = word_vectors(source)
    coder = {"near-lossless": embits.NearLossless, "neural": embits.Neural}[kind]
    coder = coder(n_bits, random_state=seed).fit(vectors.matrix)
    bits = embits.BinaryVectors.encoded(vectors, coder, lengths=lengths)
    return embits.TextEncoder.from_words(bits, random_state=seed)


@cache
def word_vectors(path):
    return embits.read_vectors(path)


def vectors_of(source):
    return word_vectors(source).matrix if Path(source).is_file() else read_static(source).vectors


def counts(encoder, texts):
    """The weights of the rows of the table in each text, as a sparse matrix."""
    from scipy.sparse import csr_array

    model = encoder.model_
    batch, own = model.tokens.of(texts), model.weights
    weights = model.token_weights(encoder.weights)[batch.tokens]
    if own is not None:
        weights = weights * own.floats[batch.tokens]
    rows = batch.tokens if model.rows is None else model.rows[batch.tokens]
    shape = len(texts), len(encoder.table_)
    return csr_array((weights, rows.astype(np.int32), np.concatenate([[0], batch.ends])), shape)


def rivals(vectors):
    """Ways to store a table without embits: name, bytes, and its rows as floats.

    Rows may be turned and cut to fewer dimensions, for questions are pooled from the same rows.
    """
    n, dims = vectors.shape
    yield "float32", vectors.nbytes, vectors
    yield "float16", vectors.nbytes // 2, vectors.astype(np.float16)
    for kept in (dims, 128, 64):  # as model2vec stores and cuts them
        first = vectors[:, :kept]
        unit = np.abs(first).max() / 127
        yield f"first {kept}, int8" if kept < dims else "int8", first.size, np.rint(first / unit)
    lengths = np.linalg.norm(vectors, axis=1)
    lengths = np.exp(np.rint(np.log(np.maximum(lengths, 1e-9)) * 16) / 16)  # a byte each
    directions = unit_rows(vectors.astype(np.float32))
    axes = np.linalg.eigh(directions.T @ directions)[1][:, ::-1]
    for kept, n_bits in itertools.product((32, 64, 128, dims), (2, 4)):
        numbers = directions @ axes[:, :kept]
        limit = {2: 1.6, 4: 2.7}[n_bits] * numbers.std(axis=0)
        levels = np.floor((numbers / limit + 1) * 2 ** (n_bits - 1)).clip(0, 2**n_bits - 1)
        rows = ((levels + 0.5) / 2 ** (n_bits - 1) - 1) * limit
        size = n * (kept * n_bits // 8 + 1) + 4 * kept
        yield f"PCA {kept}, {n_bits} bits + length", size, rows * lengths[:, None]
    import faiss

    sizes = (8, 16, 32, 64) if dims % 64 == 0 else (10, 15, 30, 60)
    for n_bytes, turned in itertools.product(sizes, (False, True)):
        rows = vectors
        if turned:
            matrix = faiss.OPQMatrix(dims, n_bytes)
            matrix.niter = 20
            matrix.train(vectors)
            rows = matrix.apply(vectors)
        pq = faiss.ProductQuantizer(dims, n_bytes, 8)
        pq.train(rows)
        size = n * n_bytes + 256 * dims * 2  # codebooks as float16
        yield f"{'OPQ' if turned else 'PQ'} {n_bytes}", size, pq.decode(pq.compute_codes(rows))
    for k in (1024, 4096):  # model2vec's "vocabulary quantization"
        means = faiss.Kmeans(dims, k, niter=20, seed=0, min_points_per_centroid=1)
        means.train(directions)
        _, nearest = means.index.search(directions, 1)
        rows = means.centroids[nearest[:, 0]] * lengths[:, None]
        yield f"k-means {k}, float16", k * dims * 2 + 3 * n, rows


def chosen(seeds, neural):
    """The coders: seed 0 first, and Neural with that seed alone."""
    linear = [("near-lossless", n, seed) for seed in range(seeds) for n in WIDTHS]
    return [*linear[: len(WIDTHS)], *(("neural", n, 0) for n in neural), *linear[len(WIDTHS) :]]


def in_bits(source, vectors, seeds, neural):
    """Tables of embits: facts, bytes, and rows as floats."""
    for kind, n_bits, seed in chosen(seeds, neural):
        table = opened(source, n_bits, seed, kind).table_
        every = np.arange(len(table))
        size = table.codes.nbytes + sum(each.nbytes for each in table.decoding().values())
        facts = {"bits": n_bits, "method": kind, "seed": seed}
        yield facts | {"lengths": True}, size + table.scales.steps.nbytes, table.rows(every)
        if kind == "near-lossless":
            table = Table.of(table.codes, n_bits, vectors)
            yield facts | {"lengths": False}, size, unit_rows(table.rows(every))


@click.group()
def main():
    """Measure text encoders."""


@main.command()
@click.argument("sources", nargs=-1)
@click.option("--seeds", default=3)
@click.option("--neural", default="128,256", help="Widths of Neural.")
@click.option("--out", type=Path, default=STORED)
def quality(sources, seeds, neural, out):
    """Score against megabytes."""
    widths = [int(each) for each in neural.split(",") if each]
    news, asked = labelled("agnews_train10k.tsv.gz"), labelled("agnews_test.tsv.gz")
    wiki, labels = labelled("dbpedia14k.tsv.gz")
    corpus, questions, relevance = scifact()
    for source in sources:
        vectors, encoder = vectors_of(source), opened(source, 64)
        texts = [counts(encoder, each) for each in (news[0], asked[0], wiki, corpus, questions)]
        stored = (({"table": name}, size, rows) for name, size, rows in rivals(vectors))
        rows, about = [], {"shape": list(vectors.shape)}
        about |= provenance(range(seeds), table=vectors, **data())
        bits = in_bits(source, vectors, seeds, widths)
        for facts, size, matrix in itertools.chain(stored, bits):
            matrix = np.asarray(matrix, np.float32)
            a, b, c, d, e = (unit_rows(np.asarray(each @ matrix, np.float32)) for each in texts)
            scores = {
                "ag_news": neighbors_accuracy(a, news[1], b, asked[1]),
                "dbpedia": neighbors_accuracy(c[:10000], labels[:10000], c[10000:], labels[10000:]),
                "scifact": ndcg(e @ d.T, relevance),
            }
            rows.append(facts | {"bytes": int(size)} | scores)
            put(out, "quality", source, {**about, "rows": rows})


def data():
    return {name: DATA / path for name, path in PARTS.items()}


def rounded(row):
    return {name: round(value, 4) for name, value in row.items() if type(value) is float}


def put(path, part, source, found):
    """Print the last row that was found for a source, and store all of them."""
    print(Path(source).name, json.dumps(found["rows"][-1]), flush=True)
    stored = json.loads(path.read_text()) if path.exists() else {}
    rows = [
        {k: round(v, 4) if type(v) is float else v for k, v in x.items()} for x in found["rows"]
    ]
    stored.setdefault(part, {})[Path(source).name] = {**found, "rows": rows}
    text = json.dumps(stored, indent=1)
    row = r"\{\s+(\"(?:table|method|bits)[^{}]*?)\s+\}"  # on one line
    path.write_text(re.sub(row, lambda x: "{" + re.sub(r"\s+", " ", x[1]) + "}", text) + "\n")


# -- answers on SciFact ----------------------------------------------------------------------------


def graded(found, relevance):
    """nDCG@10 of the rows that a search found."""
    scores = np.zeros(relevance.shape)
    np.put_along_axis(scores, found.rows, 1 / (1 + np.arange(found.rows.shape[1]))[None], axis=1)
    return ndcg(scores, relevance)


def ways(bits, Q, coder, relevance):
    """nDCG@10 of the searches of one encoder, and the standardized scores of all rows."""
    near = np.stack([_meanings(bits, query) for query in Q])
    found = {
        "code": graded(bits.search(coder.encode(Q), 10), relevance),
        "float query": graded(bits.search(Q, 10, metric="asymmetric"), relevance),
    }
    return found, near


@main.command()
@click.argument("sources", nargs=-1)
@click.option("--seeds", default=3)
@click.option("--neural", default="MiniLM,wordllama", help="Encoders with Neural codes too.")
@click.option("--out", type=Path, default=STORED)
def answers(sources, seeds, neural, out):
    """nDCG@10 on SciFact of every encoder, width and way to search."""
    corpus, questions, relevance = scifact()
    texts = embits.BinaryVectors(
        None,
        np.zeros((len(corpus), 1), np.uint8),
        embits.SignBits().fit(np.eye(8)),
        columns={"text": np.array(corpus, dtype=object)},
    )
    words = np.stack([_standardized(Words.of(texts).scores(each)) for each in questions])
    bm25 = ndcg(words, relevance)
    minilm = {}  # standardized scores of MiniLM: by coder, width and seed
    folder = DATA / "retrieval/scifact"
    for source in ("MiniLM", *sources):
        rows = []
        if source == "MiniLM":
            files = (folder / f"{each}.npy" for each in ("corpus", "queries"))
            X, Q = (unit_rows(np.load(file).astype(np.float32)) for file in files)
        else:
            encoder = opened(source).fit(corpus)
            X, Q = encoder.encode(corpus), encoder.encode(questions)
        about = {"bm25": bm25, **provenance(range(seeds), vectors=X, **data())}
        coders = chosen(seeds, WIDTHS if source in neural.split(",") else ())
        coders = [("floats", None, 0), *coders]
        for kind, n_bits, seed in coders:
            if kind == "floats":
                found = {"float query": ndcg(Q @ X.T, relevance)}
                near = np.stack([_standardized(each) for each in Q @ X.T])
            else:
                make = embits.Neural if kind == "neural" else embits.NearLossless
                coder = make(n_bits, random_state=seed).fit(X)
                bits = embits.BinaryVectors(None, coder.encode(X), coder)
                found, near = ways(bits, Q, coder, relevance)
            found["with BM25"] = ndcg(near + words, relevance)
            if source == "MiniLM":
                minilm[kind, n_bits, seed] = near
            elif (kind, n_bits, seed) in minilm:
                both = near + minilm[kind, n_bits, seed]
                found |= {"with MiniLM": ndcg(both, relevance)}
                found |= {"with MiniLM and BM25": ndcg(both + words, relevance)}
            rows.append({"method": kind, "bits": n_bits, "seed": seed, **found})
            put(out, "answers", source, {**about, "rows": rows})


# -- speed -----------------------------------------------------------------------------------------


@main.command()
@click.argument("file")
@click.option("--model2vec", "folder", help="The folder of a model of model2vec.")
@click.option("--turns", default=5)
def speed(file, folder, turns):
    """Texts a second on one core, in turns: the encoder of FILE, model2vec and WordLlama."""
    os.environ["RAYON_NUM_THREADS"] = os.environ["TOKENIZERS_PARALLELISM"] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    texts = labelled("agnews_test.tsv.gz")[0]
    encoders = {"embits": embits.TextEncoder(file).opened().encode}
    if folder:
        from model2vec import StaticModel

        model = StaticModel.from_pretrained(folder, force_download=False)
        encoders["model2vec"] = lambda texts: model.encode(texts, use_multiprocessing=False)
    else:
        from tokenizers import Tokenizer
        from wordllama.inference import WordLlamaInference

        llama = read_static("wordllama")
        tokenizer = Tokenizer.from_str(llama.tokenizer)
        encoders["WordLlama"] = WordLlamaInference(llama.vectors, tokenizer).embed
    times = {name: [] for name in encoders}
    for turn in range(turns + 1):
        for name, encode in encoders.items():
            begin = time.process_time()
            encode(list(texts))
            if turn:  # the first one warms up
                times[name].append(time.process_time() - begin)
    for name, taken in times.items():
        ratio = np.median(np.array(taken) / times["embits"])
        print(f"{name}: {len(texts) / np.median(taken):,.0f} texts/s, {ratio:.2f} x the time")


if __name__ == "__main__":
    main()
