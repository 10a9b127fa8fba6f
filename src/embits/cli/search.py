"""Rows near the queries of a file, near each other, and near words.

`embits search`, `duplicates`, `neighbors`, `similarity` and `analogy`.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from embits.arrays import blocks
from embits.binary_vectors import BinaryRows, MetricName
from embits.cli import options
from embits.cli.output import counted, json_text, print_json, printable, progress_bar, show, table
from embits.collection import load
from embits.collection.parquet import manifest_at
from embits.errors import InputError, ReadError
from embits.file.atomic import atomic_write
from embits.file.overwrite import check_target
from embits.ids.keys import RowNumbers
from embits.readers import new_source, read_rows, read_vectors
from embits.readers.arrays import map_npy
from embits.readers.source import Source
from embits.readers.words import words_beside
from embits.search import GroupsResult
from embits.search.cells import Probes
from embits.search.plan import Rescore, metric_for
from embits.vectors import WordVectors
from embits.word_methods import WordMetric

_BLOCK = 10_000  # duplicates whose ids are looked up at a time
_BATCH = 1024  # queries that are searched for at once


@click.command()
@click.argument("file", type=click.Path())  # or an address, which `load` opens
@click.argument("queries", type=options.ADDRESS)
@options.count("-k", default=10, help="Rows for each query.")
@options.metric_option(None)
@options.filter_options
@click.option(
    "--rescore", type=options.WholeNumber(min=1),
    help="Order the N best rows again: by --floats, by the vectors that a collection keeps, or by "
    "--metric after a search by Hamming distance.",
)  # fmt: skip
@click.option("--oversample", type=options.DecimalNumber(min=1), hidden=True)  # deprecated
@click.option(
    "--second-look", type=options.WholeNumber(),
    help="Score the N best rows again by their decoded vectors [default: as the coder was fitted].",
)  # fmt: skip
@click.option(
    "--recall", type=options.DecimalNumber(min=0, max=1),
    help="Read only the cells that find this share of the rows (see `embits cells`).",
)  # fmt: skip
@click.option(
    "--probes", type=options.WholeNumber(min=1), help="Read N cells for each query instead."
)
@options.file_option(
    "--floats", help="Rescore by the original vectors in FILE, matched by id or in row order."
)
@options.file_option("--words", "words_file", help="Names of the queries of a matrix, by line.")
@click.option("--no-ids", is_flag=True, help="Number the queries; take no names from their file.")
@click.option("--tsv", is_flag=True, help="Print lines of query, id and value.")
@options.output_option(
    options.OUTPUT_ADDRESS, help="With --ray: Parquet file to write.", required=False
)
@options.search_ray_options
@options.json_option
def search(
    file: str,
    queries: Path,
    metric: MetricName | None,
    floats: Path | None,
    words_file: Path | None,
    no_ids: bool,
    tsv: bool,
    output: Path | None,
    force: bool,
    as_json: bool,
    cluster: options.Cluster | None,
    k: int,
    rescore: int | None,
    oversample: float | None,
    second_look: int | None,
    recall: float | None,
    probes: int | None,
    **filters: Any,
) -> None:
    """Find the rows of FILE that are nearest to each of the QUERIES.

    FILE may be a collection. QUERIES is a file of vectors in any format that embits reads, or a
    text file with an id of FILE on each line. Vectors find rows by scores, largest first; ids, and
    vectors with --metric hamming, by distances, smallest first. With --floats, 4 times as many
    rows are found (--rescore sets their number) and sorted by their exact cosines. With --ray, the
    workers of a cluster search FILE, a collection.

    \b
    embits search docs.safetensors questions.npy -k 5
    embits search docs.safetensors questions.npy --floats docs.npy --rescore 80
    embits search news questions.npy --where "year >= 2020" --where "label in news, sport"
    embits search news questions.parquet --metric asymmetric --where allowed.txt --json
    embits search s3://bucket/codes s3://bucket/questions -o s3://bucket/nearest.parquet --ray
    """
    if (cluster is None) != (output is None) or (force and cluster is None):
        needs = "--ray needs -o, the Parquet file to write; -o and --force need --ray"
        raise click.UsageError(needs)
    if cluster is not None:
        asked = {"k": k, "metric": metric, "second_look": second_look, "target": output}
        kinds = manifest_at(file).columns if filters["where"] else {}
        asked |= options.read_filters(filters, kinds=kinds)
        cluster(lambda ray, **on: ray.search(file, queries, **asked, **on), options.FOUND, as_json)
        return
    if tsv and as_json:
        raise click.UsageError("give --tsv or --json, not both")
    if recall is not None and probes is not None:
        raise click.UsageError("give --recall or --probes, not both")
    bits = load(file)
    if oversample is not None and rescore is None:
        rescore = math.ceil(k * min(oversample, len(bits)))
    stages = [] if second_look is None else [Rescore(second_look, "decoded")]
    if floats is not None or rescore is not None:
        stages.append(Rescore(rescore, None if floats is None else _read_originals(bits, floats)))
    names, vectors = _read_queries(bits, queries, words_file, False if no_ids else None)
    chosen = metric_for(metric, vectors)
    if vectors.dtype == np.uint8 and (floats or chosen.needs == "floats"):
        option = "--floats" if floats else f"--metric {chosen.name}"
        raise InputError(f"{queries}: found ids; {option} needs float vectors")
    how: dict[str, Any] = {
        "metric": chosen.name,
        **options.parsed(bits, filters),
        "recall": recall if probes is None else Probes(probes),
        "rescore": stages or None,
    }
    answers = _answers(bits, names, vectors, k, how)
    if as_json:
        print_json({"file": file, "k": k, "metric": chosen.name, "queries": list(answers)})
        return
    for answer in answers:
        query, found = printable(answer["query"]), [each.values() for each in answer["neighbors"]]
        for id, value in found if tsv else ():
            click.echo(f"{query}\t{printable(id)}\t{value}")
        if not tsv:  # distances as they are, scores with a fixed number of decimals
            click.echo(query)
            _table([(id, str(v) if isinstance(v, int) else f"{v:.4f}") for id, v in found])


def _read_queries(
    bits: BinaryRows, path: Path, words_file: Path | None, from_file: Literal[False] | None
) -> tuple[Sequence[str], NDArray[Any]]:
    """The names of the queries, and their vectors; of ids, the codes."""
    source = new_source(path, words=words_file, ids=from_file)
    source.check_regular()
    with source.path.open("rb") as file:
        first = file.readline(1 << 16).decode(errors="replace").rstrip("\r\n")
    if first in bits:
        ids = options.read_ids(source.path, len(bits))
        return ids, bits[ids]
    try:
        names, matrix = read_rows(source)
    except ReadError as error:
        hint = f"; or one id per line, but there is no {first!r:.60}" if first.isprintable() else ""
        raise ReadError(f"{error}{hint}") from error
    if matrix.shape[1] != bits.dims:
        raise InputError(f"{path}: vectors of {matrix.shape[1]} dimensions, expected {bits.dims}")
    return names or [str(row) for row in range(len(matrix))], matrix


def _read_originals(bits: BinaryRows, path: Path) -> WordVectors | NDArray[Any]:
    """The original vectors, with their ids if both have some; those of a `.npy` are in `.words`."""
    if path.suffix.lower() == ".npy":
        words, matrix = words_beside(path), map_npy(Source(path))
    else:
        floats = read_vectors(path)
        words, matrix = floats.words, floats.matrix
    by_row = words is None or isinstance(bits.words, RowNumbers) or len(set(words)) < len(words)
    return matrix if by_row else WordVectors(words, matrix)


def _answers(
    bits: BinaryRows, names: Sequence[str], queries: NDArray[Any], k: int, how: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    for batch in blocks(len(names), _BATCH):  # answers are printed as they are found
        found = bits.search(queries[batch], k, **how)
        field = found._fields[0].removesuffix("s")  # distance, score or cosine
        for name, ids, values in zip(names[batch], found.ids, found[0], strict=True):
            pairs = zip(ids.tolist(), values.tolist(), strict=True)
            neighbors = [{"id": each, field: round(value, 6)} for each, value in pairs]
            yield {"query": name, "neighbors": neighbors}


@click.command()
@options.file_argument
@options.count(
    "--within", "distance", least=0, required=True, metavar="BITS", help="Most bits that differ."
)
@options.output_option(required=False, help="Write the groups to this file.")
@options.force_option()
@options.json_option
def duplicates(file: Path, distance: int, output: Path | None, force: bool, as_json: bool) -> None:
    """Print groups of rows of FILE whose codes are nearly equal.

    Rows that differ in at most BITS bits share a group, directly or through other rows. Each row is
    printed with the number of bits in which it differs from the first of its group, which may be
    more than BITS.

    \b
    embits duplicates glove.safetensors --within 8
    embits duplicates pages.safetensors --within 3 --json -o duplicates.json
    """
    if output is not None:
        check_target(output, [file], force)
    bits = load(file)
    with progress_bar("comparing", quiet=as_json) as progress:
        groups = bits.duplicates(distance, progress=progress)
    n_groups = len(groups.offsets) - 1
    n_duplicates = len(groups.rows) - n_groups
    facts = {"file": str(file), "within": distance, "rows": len(bits)}
    texts = _json(bits, groups, facts) if as_json else _lines(bits, groups)
    found = f"{counted(n_duplicates, 'duplicate')} in {counted(n_groups, 'group')}"
    line = f"{found} of {counted(len(bits))} within {distance} of {bits.n_bits} bits"
    if output is None:
        sys.stdout.writelines(texts if as_json else chain(texts, [f"{line}\n"]))
        return
    with atomic_write(output) as target:
        target.writelines(text.encode() for text in texts)
    facts |= {"groups": n_groups, "duplicates": n_duplicates, "output": str(output)}
    show(facts, f"{line}, in {output}", as_json)


def _each(bits: BinaryRows, groups: GroupsResult) -> Iterator[dict[str, list[Any]]]:
    """The groups as JSON objects; the ids are looked up for some groups at a time."""
    parts = blocks(len(groups.rows), _BLOCK)
    ids = chain.from_iterable(bits.ids(groups.rows[part]).tolist() for part in parts)
    for begin, end in pairwise(groups.offsets.tolist()):
        rows, distances = groups.rows[begin:end].tolist(), groups.distances[begin:end].tolist()
        yield {"ids": list(islice(ids, end - begin)), "rows": rows, "distances": distances}


def _json(bits: BinaryRows, groups: GroupsResult, facts: dict[str, Any]) -> Iterator[str]:
    """One JSON object, a group on each line."""
    yield json_text(facts)[:-1] + ', "groups": ['
    between = "\n"
    for group in _each(bits, groups):
        yield between + json_text(group)
        between = ",\n"
    yield f'\n], "duplicates": {len(groups.rows) - len(groups.offsets) + 1}}}\n'


def _lines(bits: BinaryRows, groups: GroupsResult) -> Iterator[str]:
    """A line for each row, with a blank line after each group."""
    for group in _each(bits, groups):
        for id, distance in zip(group["ids"], group["distances"], strict=True):
            yield f"{distance:>5}  {printable(str(id))}\n"
        yield "\n"


@click.command()
@options.file_argument
@options.words_argument
@options.count("-k", "--topn", "k", default=10, help="Number of neighbors.")
@options.metric_option("hamming", needs="codes")
@options.filter_options
@options.json_option
def neighbors(
    file: Path, words: tuple[str, ...], k: int, metric: WordMetric, as_json: bool, **filters: Any
) -> None:
    """Print the words closest to each WORD, a word or id of FILE.

    Upper and lower case do not matter if FILE has the word only in lower case. The numbers are the
    share of equal bits, from 0 to 1; with --metric decoded, estimated cosines.

    \b
    embits neighbors glove.safetensors queen
    embits neighbors glove.safetensors queen jupiter -k 5 --json
    embits neighbors glove.safetensors queen --where nouns.txt
    """
    bits = load(file)
    allowed = options.parsed(bits, filters)
    queries: list[dict[str, Any]] = []
    for word in words:
        start = time.perf_counter()
        found = bits.most_similar(_existing(bits, word), topn=k, metric=metric, **allowed)
        ms = round(1e3 * (time.perf_counter() - start), 4)
        queries.append({"word": word, "ms": ms, "neighbors": _as_dicts(found)})
    if as_json:
        print_json({"file": str(file), "k": k, "queries": queries})
        return
    for each in queries:
        click.echo(f"{printable(each['word'])}  ({each['ms']:.2f} ms)")
        _show_words(each["neighbors"])


@click.command()
@options.file_argument
@click.argument("a")
@click.argument("b")
@options.json_option
def similarity(file: Path, a: str, b: str, as_json: bool) -> None:
    """Print the similarity of A and B, words or ids of FILE.

    It is the share of equal bits, from 0 to 1 (the Sokal-Michener similarity).

    \b
    embits similarity glove.safetensors car automobile
    """
    bits = load(file)
    value = round(bits.similarity(_existing(bits, a), _existing(bits, b)), 6)
    show({"a": a, "b": b, "similarity": value}, f"{value:.3f}", as_json)


@click.command()
@options.file_argument
@click.argument("a")
@click.argument("b")
@click.argument("c")
@options.count("-k", "--topn", "k", default=5, help="Number of answers.")
@options.metric_option("decoded", needs="codes")
@options.json_option
def analogy(file: Path, a: str, b: str, c: str, k: int, metric: WordMetric, as_json: bool) -> None:
    """A is to B as C is to what?

    Prints the words closest to B - A + C, computed with the vectors rebuilt from the codes. With
    --metric hamming, the codes themselves are combined: (B AND NOT A) OR C.

    \b
    embits analogy glove.safetensors man king woman
    """
    bits = load(file)
    a_, *positive = (_existing(bits, word) for word in (a, b, c))
    answers = _as_dicts(bits.most_similar(positive, [a_], topn=k, metric=metric))
    if as_json:
        print_json({"a": a, "b": b, "c": c, "answers": answers})
    else:
        click.echo(printable(f"{a} : {b} = {c} : ?"))
        _show_words(answers)


def _existing(bits: BinaryRows, word: str) -> str:
    """The word as given or, if the file has only that, in lower case."""
    return word if word in bits or word.lower() not in bits else word.lower()


def _as_dicts(found: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    return [{"word": word, "similarity": round(value, 6)} for word, value in found]


def _show_words(answers: list[dict[str, Any]]) -> None:
    _table([(each["word"], f"{each['similarity']:.3f}") for each in answers])


def _table(rows: list[tuple[str, ...]]) -> None:
    table(rows or [("none",)])
