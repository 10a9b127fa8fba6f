"""Semantic search with binary codes: recall, size and time, beside floats and sign bits.

    python examples/semantic_search.py                          # MiniLM sentences of --data
    python examples/semantic_search.py mine.npy                 # rows held out as queries
    python examples/semantic_search.py mine.npy --queries q.npy

Compares learned codes of 128, 256 and 384 bits with "ubinary" of sentence-transformers (the sign of
each dimension) and with an exact search of the floats. Three kinds of search: bits against bits, a
float query against bits, and candidates rescored with the floats, which stay on disk.
Takes about two minutes for 24,000 sentences on two cores, or half a minute with `--method itq`.
"""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np

import embits
from embits.arrays import unit_rows
from embits.evaluation.tasks.neighbors import best_rows, recalls
from embits.integrations.sentence_transformers import from_quantized, quantize_embeddings
from shared import arguments, megabytes, milliseconds, table

CORPUS, QUERIES = ("agnews_train10k", "dbpedia14k"), "agnews_test"
TIMED = 200


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("embeddings", type=Path, nargs="?", help="a .npy of your own")
    parser.add_argument("--queries", type=Path, help="a .npy (default: rows held out)")
    parser.add_argument("--bits", default="128,256,384", help="widths (default: %(default)s)")
    parser.add_argument("--method", default="near-lossless", help="(default: %(default)s)")
    parser.add_argument("--rescore", type=int, default=40, help="(default: %(default)s)")
    parser.add_argument("-k", type=int, default=10, help="(default: %(default)s)")
    options = parser.parse_args()
    corpus, queries, texts = load(options)
    print(f"{len(corpus):,} embeddings × {corpus.shape[1]} floats, {len(queries):,} queries\n")

    unit, asked = unit_rows(corpus), unit_rows(queries)
    truth = best_rows(lambda block: asked @ unit[block].T, len(unit), options.k)
    floats_ms = milliseconds(
        lambda i: np.argpartition(unit @ asked[i], -options.k)[-options.k :],
        min(TIMED, len(queries)),
    )
    rows = [("", "in memory", f"recall@{options.k}", "ms", "float query", "ms", "rescored", "ms")]
    rows.append(("floats", megabytes(unit.nbytes), "100.0 %", f"{floats_ms:.3f}", *4 * [""]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "floats.npy"
        np.save(path, corpus)
        floats = np.load(path, mmap_mode="r")  # on disk: only the rows of a shortlist are read
        bits = from_quantized(quantize_embeddings(corpus), dims=corpus.shape[1])
        rows.append((f"ubinary {bits.n_bits}", *measured(bits, queries, truth, floats, options)))
        for width in map(int, options.bits.split(",")):
            bits = embits.binarize(corpus, width, options.method)
            rows.append((f"embits {width}", *measured(bits, queries, truth, floats, options)))
        table(rows, indent="")
        if texts:
            show(bits, queries, truth, texts)


def load(options):
    """Corpus and queries in float32, and the texts of both where they are known."""
    folder = options.data / "sentences"
    if options.embeddings is None:
        corpus = np.concatenate([np.load(folder / f"{name}.npy") for name in CORPUS])
        queries = np.load(folder / f"{QUERIES}.npy")
        texts = [text for name in CORPUS for text in read_texts(folder / f"{name}.tsv.gz")]
        every = max(1, len(queries) // 1000)
        asked = read_texts(folder / f"{QUERIES}.tsv.gz")[::every]
        return corpus.astype("f4"), queries[::every].astype("f4"), (texts, asked) if texts else None
    corpus = np.load(options.embeddings, mmap_mode="r")
    if options.queries is not None:
        return corpus.astype("f4"), np.load(options.queries).astype("f4"), None
    held_out = np.zeros(len(corpus), dtype=bool)
    held_out[:: max(10, len(corpus) // 1000)] = True
    return corpus[~held_out].astype("f4"), corpus[held_out].astype("f4"), None


def read_texts(path: Path) -> list[str]:
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n").split("\t", 1)[1] for line in lines][1:]  # a line of titles


def measured(bits, queries, truth, floats, options) -> list[str]:
    """Memory, then recall and the median time of one query for each way to ask."""
    cells = [megabytes(bits.codes.nbytes)]
    rescored = {"rescore": embits.Rescore(options.rescore, by=floats)}
    for how in ({"metric": "hamming"}, {}, rescored):
        _, found = bits.search(queries, options.k, **how)
        ms = milliseconds(
            lambda i, how=how: bits.search(queries[i], options.k, **how), min(TIMED, len(queries))
        )
        cells += [f"{100 * recalls(truth, found).mean():.1f} %", f"{ms:.3f}"]
    return cells


def show(bits, queries, truth, texts) -> None:
    """The first query's answers, by floats and by bits."""
    corpus, asked = texts
    print(f"\nAsked: {asked[0][:90]}")
    _, by_bits = bits.search(queries[0], 3)
    for name, found in (("floats", truth[0, :3]), (f"{bits.n_bits} bits", by_bits)):
        for row in found:
            print(f"  {name:<9} {corpus[row][:80]}")


if __name__ == "__main__":
    main()
