"""`embits search`: the nearest rows of queries from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from embits.binary_vectors import BinaryVectors
from embits.cli.options import (
    FILE,
    DecimalNumber,
    WholeNumber,
    filter_options,
    json_option,
    output_option,
    read_ids,
    words_file_option,
)
from embits.cli.output import print_json, printable, table
from embits.cli.ray_options import ADDRESS, Cluster, search_ray_options
from embits.collection import load
from embits.errors import InputError, named_if_missing
from embits.search import SearchResult

_BATCH = 1024  # queries that are searched for at once: results are printed as they are found


@click.command()
@click.argument("file", type=ADDRESS)
@click.argument("queries", type=ADDRESS)
@click.option("-k", "k", type=WholeNumber(min=1), default=10, help="Rows for each query.")
@click.option(
    "--metric",
    type=click.Choice(["hamming", "asymmetric", "decoded"]),
    default="hamming",
    help="Compare bits, float queries with bits, or the vectors rebuilt from codes.",
)
@filter_options
@click.option(
    "--oversample",
    type=DecimalNumber(min=1),
    metavar="N",
    help="Find N times as many rows by bits, then rescore them by --metric or --floats.",
)
@click.option(
    "--floats",
    type=FILE,
    metavar="FILE",
    help="Rescore by the cosines with the original vectors, by id, or in the order of the rows.",
)
@words_file_option("File with the names of the queries of a matrix, one per line.")
@click.option("--tsv", is_flag=True, help="Print lines of query, id and value.")
@output_option(ADDRESS, help="With --ray: Parquet file to write.", required=False)
@search_ray_options
@json_option
def command(
    file: Path,
    queries: Path,
    k: int,
    metric: Literal["hamming", "asymmetric", "decoded"],
    where: Any,
    exclude: Any,
    oversample: float | None,
    floats: Path | None,
    words_file: Path | None,
    tsv: bool,
    output: Path | None,
    force: bool,
    as_json: bool,
    cluster: Cluster | None,
) -> None:
    """Find the rows of FILE that are nearest to each of the QUERIES.

    FILE may be a collection. QUERIES is a file of vectors in any format that embits reads, or a
    text file with an id of FILE on each line. The values are distances, smallest first; with
    --metric asymmetric or decoded they are scores, largest first. --floats orders 4 times as many
    rows as wanted, or --oversample times, by their cosines with the queries. With --ray, FILE is a
    collection that the workers of a cluster search.

    \b
    embits search docs.safetensors questions.npy -k 5
    embits search docs.safetensors questions.npy --floats docs.npy --oversample 8
    embits search news questions.parquet --metric asymmetric --where allowed.txt --json
    embits search s3://bucket/codes s3://bucket/questions -o s3://bucket/nearest.parquet --ray
    """
    if (cluster is None) != (output is None) or (force and cluster is None):
        raise click.UsageError(
            "--ray needs -o, the Parquet file to write; -o and --force need --ray"
        )
    if cluster is not None:
        options = {"k": k, "metric": metric, "where": where, "exclude": exclude}
        cluster.search(file, queries, output, as_json, **options)
        return
    if tsv and as_json:
        raise click.UsageError("give --tsv or --json, not both")
    if oversample is not None and metric == "hamming" and floats is None:
        raise click.UsageError("--oversample needs --metric asymmetric or --floats FILE")
    bits = load(file)
    originals = None if floats is None else _read_originals(bits, floats)
    needs_floats = "--floats" if floats else "--metric asymmetric" * (metric == "asymmetric")
    names, vectors = _read_queries(bits, queries, words_file, needs_floats)
    allowed = None if where is None and exclude is None else bits.select(where, exclude)
    answers: list[dict[str, Any]] = []
    for start in range(0, len(names), _BATCH):
        found = bits.search(
            vectors[start : start + _BATCH], k, metric=metric, where=allowed,
            oversample=oversample, floats=originals,
        )  # fmt: skip
        for answer in _answers(bits, names[start : start + _BATCH], found):
            if as_json:
                answers.append(answer)
            else:
                _show(answer, tsv)
    if as_json:
        print_json({"file": str(file), "k": k, "metric": metric, "queries": answers})


def _read_queries(
    bits: BinaryVectors, path: Path, words_file: Path | None, needs_floats: str
) -> tuple[Sequence[str], Any]:
    """The names and vectors of the queries; ids are refused for the option `needs_floats`."""
    from embits.readers import read_rows

    if (ids := _ids(bits, path)) is not None:
        if needs_floats:
            raise InputError(f"{path}: found ids; {needs_floats} needs float vectors")
        return ids, bits[ids]
    names, matrix = read_rows(path, words_file)
    if matrix.shape[1] != bits.dims:
        raise InputError(f"{path}: vectors of {matrix.shape[1]} dimensions, expected {bits.dims}")
    return names or [str(row) for row in range(len(matrix))], matrix


def _read_originals(bits: BinaryVectors, path: Path) -> Any:
    """The float vectors from which the codes were made, with their ids if both have some.

    A `.npy` is mapped. Its ids are in a file of the same name that ends in `.words`.
    """
    from embits.ids.keys import RowNumbers
    from embits.readers import read_vectors
    from embits.readers.arrays import map_npy
    from embits.readers.source import Source
    from embits.readers.words import read_words
    from embits.vectors import WordVectors

    beside = path.with_suffix(".words")
    if path.suffix.lower() == ".npy":
        matrix = map_npy(Source(path))
        words = read_words(beside) if beside.is_file() else None
    else:
        floats = read_vectors(path)
        words, matrix = floats.words, floats.matrix
    if words is None or isinstance(bits.words, RowNumbers) or len(set(words)) < len(words):
        return matrix
    return WordVectors(words, matrix)


def _ids(bits: BinaryVectors, path: Path) -> list[str] | None:
    """The ids of a text file; None if its first line is not an id."""
    with named_if_missing(path), path.open("rb") as file:
        first = file.readline(1 << 16)
    try:
        known = first.decode().rstrip("\r\n") in bits
    except UnicodeDecodeError:
        return None
    return read_ids(path) if known else None


def _answers(
    bits: BinaryVectors, names: Sequence[str], found: SearchResult
) -> Iterator[dict[str, Any]]:
    value_name = found._fields[0].removesuffix("s")  # distance or score
    for name, values, rows in zip(names, np.atleast_2d(found[0]), found.rows, strict=True):
        ids = bits.ids(rows).tolist()
        neighbors = [
            {"id": str(each), value_name: value if isinstance(value, int) else round(value, 6)}
            for each, value in zip(ids, values.tolist(), strict=True)
        ]
        yield {"query": name, "neighbors": neighbors}


def _show(answer: dict[str, Any], tsv: bool) -> None:
    query = printable(answer["query"])
    neighbors = [tuple(each.values()) for each in answer["neighbors"]]
    if tsv:
        for id, value in neighbors:
            click.echo(f"{query}\t{printable(id)}\t{value}")
        return
    click.echo(query)
    table([(id, _aligned(value)) for id, value in neighbors] or [("none",)])


def _aligned(value: float) -> str:
    """A distance as it is; a score with a fixed number of decimals."""
    return str(value) if isinstance(value, int) else f"{value:.4f}"
