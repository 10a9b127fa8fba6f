"""Text encoders: score against megabytes, beside floats, int8 and PQ of the same table; and speed.

    python benchmarks/text_encoder.py quality wordllama            # or the folder of a static model
    python benchmarks/text_encoder.py answers wordllama MODEL ...  # floats and codes, with BM25
    python benchmarks/text_encoder.py speed encoder.safetensors --model2vec FOLDER

Data is read from $EMBITS_DATA (default ../shared/data). Accuracy is that of the ten nearest
training texts; nDCG@10 is on SciFact. All tables have the same tokens, pooled in the same way.
`answers` fits the token codes and the codes of texts as `embits index` does, and adds the MiniLM
vectors of the data.
"""

import csv
import gzip
import itertools
import json
import os
import time
from pathlib import Path

import click
import numpy as np

import embits
from embits.arrays import unit_rows
from embits.rows import Lengths
from embits.text.answers import search_texts
from embits.text.sources import read_static
from embits.text.table import Table
from embits.text.tokenizer import pack_tokenizer
from embits.text.tokens import TokenizerTokens

DATA = Path(os.environ.get("EMBITS_DATA", "../shared/data"))
WIDTHS = (64, 128, 256, 512)


def labelled(name):
    """Labels and texts of a set of `sentences`."""
    with gzip.open(DATA / "sentences" / name, "rt", encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [row[1] for row in rows], np.array([row[0] for row in rows])


def neighbors_accuracy(encode, train, test, k=10):
    """How many labels the majority of the k nearest training texts gives."""
    (texts, labels), (questions, expected) = train, test
    X, Q = encode(texts), encode(questions)
    names, numbers = np.unique(labels, return_inverse=True)
    right = 0
    for start in range(0, len(Q), 1000):
        scores = Q[start : start + 1000] @ X.T
        near = numbers[np.argpartition(-scores, k, axis=1)[:, :k]]
        votes = np.stack([(near == number).sum(axis=1) for number in range(len(names))], axis=1)
        right += (names[votes.argmax(axis=1)] == expected[start : start + 1000]).sum()
    return right / len(Q)


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


def tables(model, widths, seed):
    """The ways to store a table: name, megabytes, and its rows as floats."""
    vectors, n = model.vectors, len(model.vectors)
    yield "float32", vectors.nbytes, vectors
    units = np.abs(vectors).max(axis=0) / 127
    yield "int8", vectors.size + units.nbytes, np.rint(vectors / units) * units
    try:
        import faiss

        for n_bytes in (32, 64):
            pq = faiss.ProductQuantizer(vectors.shape[1], n_bytes, 8)
            pq.train(vectors)
            codes = pq.compute_codes(vectors)
            size = codes.nbytes + 256 * vectors.shape[1] * 4
            yield f"PQ, {n_bytes} bytes", size, pq.decode(codes)
    except ImportError:
        pass
    for width in widths:
        coder = embits.NearLossless(width, random_state=seed).fit(vectors)
        lengths = np.linalg.norm(vectors, axis=1)
        table = Table.of(coder.encode(vectors), width, vectors, lengths)
        parts = [table.codes, table.scales.steps, table.decoder, table.units, table.offset]
        yield f"{width} bits + length", sum(p.nbytes for p in parts), table.rows(np.arange(n))


def encoder_of(model, vectors):
    """A function that pools rows of floats for texts."""
    tokens = TokenizerTokens(pack_tokenizer(model.tokenizer), model.n_tokens, model.unknown)
    weights = np.ones(model.n_tokens) if model.weights is None else Lengths.of(model.weights).floats
    rows = np.arange(model.n_tokens) if model.rows is None else model.rows

    def encode(texts):
        batch = tokens.of(texts)
        sums = np.zeros((len(texts), vectors.shape[1]))
        for text, (start, end) in enumerate(zip([0, *batch.ends[:-1]], batch.ends, strict=True)):
            some = batch.tokens[start:end]
            sums[text] = weights[some] @ vectors[rows[some]]
        return unit_rows(sums.astype(np.float32))

    return encode


@click.group()
def main():
    """Measure text encoders."""


@main.command()
@click.argument("source")
@click.option("--bits", "widths", default="256,128,64")
@click.option("--seed", default=0)
def quality(source, widths, seed):
    """A table of score against megabytes."""
    model = read_static(source)
    news = labelled("agnews_train10k.tsv.gz"), labelled("agnews_test.tsv.gz")
    texts, labels = labelled("dbpedia14k.tsv.gz")
    wiki = (texts[:10000], labels[:10000]), (texts[10000:], labels[10000:])
    corpus, questions, relevance = scifact()
    print(f"{source}: {model.vectors.shape[0]:,} x {model.vectors.shape[1]}, seed {seed}")
    print("| table | MB | AG News, % | DBpedia, % | SciFact, nDCG@10 |")
    print("|---|---:|---:|---:|---:|")
    numbers = [int(each) for each in widths.split(",") if each]
    for name, size, vectors in tables(model, numbers, seed):
        encode = encoder_of(model, vectors.astype(np.float32))
        accuracies = [100 * neighbors_accuracy(encode, *each) for each in (news, wiki)]
        found = ndcg(encode(questions) @ encode(corpus).T, relevance)
        print(
            f"| {name} | {size / 1e6:.2f} | {accuracies[0]:.1f} | {accuracies[1]:.1f} "
            f"| {found:.3f} |",
            flush=True,
        )


class Given:
    """An encoder whose vectors are known."""

    def __init__(self, texts, vectors):
        self.vectors = dict(zip(texts, vectors, strict=True))

    def encode(self, texts):
        return np.stack([self.vectors[text] for text in texts])


def vectors_of_scifact(sources, seed):
    """Each encoder's name, and its vectors of the texts and of the questions."""
    corpus, questions, _ = scifact()
    for source in sources:
        encoder = embits.TextEncoder(source, 256, random_state=seed).fit(corpus)
        yield (
            f"{Path(source).name}, 256 bits a token",
            encoder.encode(corpus),
            encoder.encode(questions),
        )
    folder = DATA / "retrieval" / "scifact"
    yield "MiniLM", *(unit_rows(np.load(folder / f"{of}.npy")) for of in ("corpus", "queries"))


@main.command()
@click.argument("sources", nargs=-1)
@click.option("--seeds", default=3)
def answers(sources, seeds):
    """nDCG@10 on SciFact of every encoder, width and way to search."""
    corpus, questions, relevance = scifact()
    texts = {"text": np.array(corpus, dtype=object)}
    ways = ("code", "float query", "with BM25")
    print(f"| vectors | codes | {' | '.join(ways)} |\n|---|---|---:|---:|---:|")

    def graded(found):
        scores = np.zeros(relevance.shape)
        np.put_along_axis(
            scores, found.rows, 1 / (1 + np.arange(found.rows.shape[1]))[None], axis=1
        )
        return ndcg(scores, relevance)

    for name, X, Q in vectors_of_scifact(sources, 0):
        print(f"| {name} | floats | – | {ndcg(Q @ X.T, relevance):.3f} | – |", flush=True)
        for kind, n_bits in itertools.product((embits.NearLossless, embits.Neural), WIDTHS):
            runs = []
            for seed in range(seeds if kind is embits.NearLossless else 1):
                coder = kind(n_bits, random_state=seed).fit(X)
                bits = embits.BinaryVectors(None, coder.encode(X), coder, columns=texts)
                found = [
                    bits.search(coder.encode(Q), 10),
                    bits.search(Q, 10, metric="asymmetric"),
                    search_texts(bits, Given(questions, Q), questions, 10, hybrid=True),
                ]
                runs.append([graded(each) for each in found])
            cells = " | ".join(f"{each:.3f}" for each in np.mean(runs, axis=0))
            print(f"| {name} | {kind.__name__}, {n_bits} bits | {cells} |", flush=True)


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
