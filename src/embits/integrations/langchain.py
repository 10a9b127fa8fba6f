"""A vector store for LangChain: documents in a collection."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryRows
from embits.errors import InputError, MissingExtraError
from embits.integrations.documents import Documents, combine, existing_rows, matches, texts_of

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
except ImportError as missing:
    raise MissingExtraError("LangChain", "langchain") from missing

_OPS = {"$eq": "==", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_COMBINED = "$and", "$or", "$not"
_OPS |= {f"${op}": op for op in ("in", "nin", "contains", "any", "all")}


class EmbitsVectorStore(VectorStore):  # type: ignore[misc]
    """Documents in the collection in the folder `path`, which is made if there is none.

    The options are those of `embits.open_collection`. A filter maps keys to a value, a list of
    values, or operators as in `{"year": {"$gte": 2020}}`, and `$and`, `$or` and `$not` combine
    filters; or it is a function of a document, which reads all documents.

    Example:
        >>> import tempfile
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = EmbitsVectorStore(DeterministicFakeEmbedding(size=8), folder.name)
        >>> store.add_texts(["a river", "a song"], [{"year": 2019}, {"year": 2024}], ids=["a", "b"])
        ['a', 'b']
        >>> store.similarity_search("a song", k=1, filter={"year": {"$gte": 2020}})
        [Document(id='b', metadata={'year': 2024}, page_content='a song')]
        >>> folder.cleanup()
    """

    def __init__(self, embedding: Embeddings, path: str | os.PathLike[str], **options: Any) -> None:
        self.embedding, self._documents = embedding, Documents(path, options)
        self.collection = self._documents.collection

    @property
    def embeddings(self) -> Embeddings:
        return self.embedding

    def add_texts(self, texts: Iterable[str], metadatas: Any = None, **kwargs: Any) -> list[str]:
        """Add texts, or replace those whose `ids` exist; an id may be given once."""
        texts, ids = list(texts), kwargs.get("ids")
        metadatas, ids = metadatas or [{}] * len(texts), ids or [None] * len(texts)
        if not len(texts) == len(metadatas) == len(ids):
            raise InputError(f"{len(metadatas)} metadatas, {len(ids)} ids for {len(texts)} texts")
        names = [str(uuid.uuid4() if each is None else each) for each in ids]
        data, vectors = [each or {} for each in metadatas], self.embedding.embed_documents(texts)
        self._documents.put(names, texts, vectors, data)
        return names

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Delete documents by their ids; None deletes all. Ids that are unknown are ignored."""
        bits = self._documents.bits()
        self.collection.remove(bits.ids(existing_rows(bits, ids)).tolist())
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in this order; ids that are unknown are left out."""
        return _documents(bits := self._documents.bits(), existing_rows(bits, ids))

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        return self.similarity_search_by_vector(self.embedding.embed_query(query), k, **kwargs)

    def similarity_search_by_vector(self, embedding: Any, k: int = 4, **kwargs: Any) -> Any:
        return _documents(*self._nearest(embedding, k, **kwargs)[:2])

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> Any:
        """The documents nearest to a text, and their cosines."""
        bits, rows, cosines = self._nearest(self.embedding.embed_query(query), k, **kwargs)
        return list(zip(_documents(bits, rows), cosines, strict=True))

    def max_marginal_relevance_search(self, query: str, *args: Any, **kwargs: Any) -> Any:
        vector = self.embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, *args, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: Any, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Of the `fetch_k` nearest documents, k that differ, by their decoded vectors."""
        bits, rows, _ = self._nearest(embedding, fetch_k, **kwargs)
        vectors: Any = bits.decode(rows=rows) if rows else []
        chosen = maximal_marginal_relevance(np.array(embedding), vectors, lambda_mult, k)
        return _documents(bits, [rows[each] for each in chosen])

    def _nearest(self, vector: Any, k: int, filter: Any = None, **options: Any) -> Any:
        flags = partial(_flags, filter) if filter else None
        return self._documents.nearest(vector, k, flags, options)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: min(max((1 + cosine) / 2, 0.0), 1.0)

    @classmethod
    def from_texts(cls, texts: Any, embedding: Any, metadatas: Any = None, **options: Any) -> Any:
        """A store with texts; the options are those of the class, with `path`, and `ids`."""
        ids, store = options.pop("ids", None), cls(embedding, **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store


def _documents(bits: BinaryRows, rows: Any) -> list[Document]:
    each = texts_of(bits, rows)
    return [Document(id=name, page_content=text, metadata=data) for name, text, data in each]


def _flags(filter: Any, bits: BinaryRows) -> NDArray[np.bool_]:
    if callable(filter):
        return np.array([bool(filter(each)) for each in _documents(bits, range(len(bits)))], bool)
    if not isinstance(filter, Mapping) or any(
        str(key)[:1] == "$" and key not in _COMBINED for key in filter
    ):
        expected = "a mapping of keys, $and, $or and $not; or a function"
        raise InputError(f"filter is {filter!r:.80}, expected {expected}")
    parts = []
    for key, condition in filter.items():
        if key in _COMBINED:
            each = [_flags(one, bits) for one in ([condition] if key == "$not" else condition)]
            parts.append(combine(each, key[1:], len(bits)))
            continue
        if not isinstance(condition, Mapping):
            condition = {"$in" if isinstance(condition, list | tuple | set) else "$eq": condition}
        parts += [matches(bits, key, _OPS.get(op, op), value) for op, value in condition.items()]
    return combine(parts, "and", len(bits))
