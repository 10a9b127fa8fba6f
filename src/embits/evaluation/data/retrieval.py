"""Readers for retrieval data sets: documents, queries and relevance judgements.

    corpus.npy    with corpus_ids.txt; or corpus.jsonl or corpus.parquet of texts with their ids
    queries.npy   with query_ids.txt; or queries.jsonl or queries.parquet
    qrels.tsv     query-id, corpus-id and score, with or without a header; or qrels/test.tsv

This is BEIR's layout with the embeddings beside the texts. The embeddings may also be in the JSONL
or Parquet file: a field or column of lists of numbers.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from embits.errors import InputError, ReadError
from embits.evaluation.data.files import lines_of, malformed
from embits.readers import read_vectors
from embits.readers.parquet import open_table
from embits.vectors import WordVectors

Qrels: TypeAlias = dict[str, dict[str, int]]

ID_NAMES = ("_id", "id", "doc_id", "docid", "corpus-id", "corpus_id", "query_id", "query-id", "qid")
EMBEDDING_NAMES = ("embedding", "embeddings", "emb", "vector", "vectors")
QRELS = ("qrels.tsv", "qrels.txt", "qrels/test.tsv")
_ID_FILES = {"corpus": ("corpus_ids.txt",), "queries": ("query_ids.txt", "queries_ids.txt")}
_QREL = "query-id corpus-id score, with a whole number as the score"


@dataclass(frozen=True)
class RetrievalSet:
    """A retrieval data set.

    Attributes:
        corpus: The documents: ids and embeddings.
        queries: The queries: ids and embeddings of the same dimensions.
        qrels: Relevance of documents by query id and document id; above 0 is relevant. Ids may be
            missing in `corpus` and `queries`.
    """

    corpus: WordVectors
    queries: WordVectors
    qrels: Qrels

    @property
    def dims(self) -> int:
        """Dimensions of the embeddings."""
        return self.corpus.dims


def read_retrieval(folder: Path) -> RetrievalSet:
    """Read the files of a folder in the layout of this module.

    Raises:
        ReadError: A file is missing or malformed, the ids of a file repeat, the dimensions of
            queries and documents differ, or no query is judged.
        MissingExtraError: A Parquet file, and pyarrow is not installed.
    """
    corpus, queries = read_embeddings(folder, "corpus"), read_embeddings(folder, "queries")
    if corpus.dims != queries.dims:
        raise ReadError(
            f"{folder}: queries of {queries.dims} dimensions, expected {corpus.dims} as in the "
            "corpus"
        )
    path = next((folder / name for name in QRELS if (folder / name).is_file()), folder / QRELS[0])
    qrels = read_qrels(path)
    if not set(qrels) & set(queries.words or ()):
        raise ReadError(f"{path}: no id of its queries is in the file of queries")
    return RetrievalSet(corpus, queries, qrels)


def read_qrels(path: Path) -> Qrels:
    """Read relevance judgements: BEIR's three columns, or TREC's four, whose second is not used."""
    qrels: Qrels = {}
    for place, (number, line) in enumerate(lines_of(path, has_comments=False)):
        fields = line.split("\t") if "\t" in line else line.split()
        try:
            score = int(fields[-1])
        except ValueError:
            if place == 0 and len(fields) in (3, 4):
                continue  # a header
            raise malformed(path, number, line, _QREL) from None
        if len(fields) not in (3, 4):
            raise malformed(path, number, line, _QREL)
        query, document = fields[0].strip(), fields[-2].strip()
        if document in qrels.setdefault(query, {}):
            raise malformed(path, number, line, "each pair of ids once")
        qrels[query][document] = score
    if not qrels:
        raise ReadError(f"{path}: found no judgements, expected lines of {_QREL}")
    return qrels


def read_embeddings(folder: Path, name: str) -> WordVectors:
    """The ids and embeddings of "corpus" or "queries"."""
    files = {suffix: folder / f"{name}{suffix}" for suffix in (".npy", ".jsonl", ".parquet")}
    npy, jsonl, parquet = (path if path.is_file() else None for path in files.values())
    listed = next((folder / file for file in _ID_FILES[name] if (folder / file).is_file()), None)
    texts = jsonl or parquet
    try:
        if npy and listed:
            return read_vectors(npy, words=listed)
        if jsonl:
            ids, rows = _read_jsonl(jsonl, with_embeddings=npy is None)
            return read_vectors(npy, words=ids) if npy else WordVectors(ids, np.array(rows))
        if parquet:
            return read_vectors(
                npy or parquet, words=parquet if npy else None, ids=_id_column(parquet)
            )
    except InputError as error:  # an id repeats, or the .npy is a file of another format
        raise ReadError(f"{texts or listed}: {error}") from None
    expected = f"{name}.npy with {_ID_FILES[name][0]}, {name}.jsonl or {name}.parquet"
    raise ReadError(f"{folder}: found no {name} with ids, expected {expected}")


def _id_column(path: Path) -> str:
    names = open_table(path).schema_arrow.names
    column = next((name for name in ID_NAMES if name in names), None)
    if column is None:
        raise ReadError(f"{path}: found no column of ids, expected {', '.join(ID_NAMES)}")
    return column


def _read_jsonl(path: Path, *, with_embeddings: bool) -> tuple[list[Any], list[list[float]]]:
    ids: list[Any] = []
    rows: list[list[float]] = []
    for number, line in lines_of(path):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise malformed(path, number, line, f'a JSON object such as {{"{ID_NAMES[0]}": "d1"}}')
        found = [name for name in ID_NAMES if name in record]
        if not found:
            raise malformed(path, number, line, f"an id ({', '.join(ID_NAMES)})")
        ids.append(record[found[0]])
        if with_embeddings:
            values = next((record[name] for name in EMBEDDING_NAMES if name in record), None)
            if values is None:
                names = ", ".join(EMBEDDING_NAMES)
                raise malformed(path, number, line, f"an embedding ({names}), or a .npy beside")
            if not _is_row(values, len(rows[0]) if rows else None):
                raise malformed(path, number, str(values), "a list of as many finite numbers")
            rows.append(values)
    if not ids:
        raise ReadError(f"{path}: found no lines, expected JSON objects with {ID_NAMES[0]}")
    return ids, rows


def _is_row(values: Any, dims: int | None) -> bool:
    """Whether these are `dims` finite numbers, or any number of them."""
    if not isinstance(values, list) or not values or len(values) != (dims or len(values)):
        return False
    return all(isinstance(value, int | float) and math.isfinite(value) for value in values)
