"""A vector store for LlamaIndex: nodes in a collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.binary_vectors import BinaryRows
from embits.collection import Collection
from embits.errors import InputError, MissingExtraError
from embits.integrations.documents import Documents, combine, existing_rows, matches, texts_of

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
    from llama_index.core.schema import BaseNode, MetadataMode
    from llama_index.core.vector_stores import types
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ImportError as missing:
    raise MissingExtraError("LlamaIndex", "llama-index") from missing

_DOCUMENT = "string:ref_doc_id"  # the column of the document that a node is of
_NODE = "_node_content", "_node_type"  # what a node is restored from
_MMR_ROWS = 4  # that are found for each one returned


class EmbitsVectorStore(types.BasePydanticVectorStore):  # type: ignore[misc]
    """Nodes in a collection, with the query modes `default` and `mmr`.

    Args:
        path: The folder of the collection, which is made if there is none.
        options: Those of `embits.open_collection`, such as `n_bits` for a new collection.

    Example:
        >>> import tempfile
        >>> from llama_index.core.schema import TextNode
        >>> from llama_index.core.vector_stores.types import VectorStoreQuery
        >>> folder = tempfile.TemporaryDirectory()
        >>> store = EmbitsVectorStore(folder.name)
        >>> store.add([TextNode(text="a song", id_="b", embedding=[0.5, -1.0], metadata={"n": 1})])
        ['b']
        >>> store.query(VectorStoreQuery(query_embedding=[0.4, -1.0])).nodes[0].metadata
        {'n': 1}
        >>> folder.cleanup()
    """

    stores_text: bool = True
    path: str
    _documents: Documents = PrivateAttr()

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        super().__init__(path=os.fspath(path), stores_text=True)
        self._documents = Documents(path, options)

    @property
    def client(self) -> Collection:
        return self._documents.collection

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Add nodes, or replace those whose ids already exist; an id may be given once."""
        ids = [each.node_id for each in nodes]
        texts = [each.get_content(metadata_mode=MetadataMode.NONE) for each in nodes]
        data = [node_to_metadata_dict(each, remove_text=True) for each in nodes]
        stored = [{name: each.pop(name) for name in _NODE} for each in data]
        self._documents.put(ids, texts, [each.get_embedding() for each in nodes], data, stored)
        return ids

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        if len(self._documents.bits()):
            self.client.remove(where={_DOCUMENT: ref_doc_id})

    def delete_nodes(self, node_ids: Any = None, filters: Any = None, **kwargs: Any) -> None:
        """Delete the nodes with these ids that pass a filter; ids that are unknown are ignored."""
        if node_ids is None and not (filters and filters.filters):
            raise InputError("delete_nodes takes node_ids or filters; clear() deletes all nodes")
        bits = self._documents.bits()
        self.client.remove(bits.ids(_rows(bits, node_ids, filters)).tolist())

    def clear(self) -> None:
        self.client.remove(self._documents.bits().ids().tolist())

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        """The nodes with these ids, in this order, that pass a filter."""
        bits = self._documents.bits()
        return _nodes(bits, _rows(bits, node_ids, filters))

    def query(self, query: types.VectorStoreQuery, **kwargs: Any) -> types.VectorStoreQueryResult:
        """The nearest nodes, with their cosines; other arguments are those of `search`."""
        k, is_mmr, vector = query.similarity_top_k, query.mode == "mmr", query.query_embedding
        if vector is None or not (is_mmr or query.mode == "default"):
            raise InputError(f"mode {query.mode}: expected 'default' or 'mmr', and an embedding")
        threshold = kwargs.pop("mmr_threshold", query.mmr_threshold)
        is_limited = query.node_ids or query.doc_ids or query.filters  # an index gives empty lists
        limits = {"ids": query.node_ids or None, "filters": query.filters, "of": query.doc_ids}
        limit, n = is_limited and partial(_rows, **limits), k * _MMR_ROWS if is_mmr else k
        bits, rows, cosines = self._documents.nearest(vector, n, limit, kwargs)
        if is_mmr and rows:
            near = list(bits.decode(rows=rows))
            cosines, rows = get_top_k_mmr_embeddings(vector, near, None, k, rows, None, threshold)
        nodes = _nodes(bits, rows)
        return types.VectorStoreQueryResult(nodes, cosines, [node.node_id for node in nodes])


def _nodes(bits: BinaryRows, rows: Any) -> list[BaseNode]:
    return [metadata_dict_to_node(data, text or None) for _, text, data in texts_of(bits, rows)]


def _rows(bits: BinaryRows, ids: Any, filters: Any, of: Any = None) -> NDArray[np.int64]:
    """The rows of ids that pass a filter, and are `of` some documents."""
    rows = existing_rows(bits, ids)
    if filters is not None and filters.filters:
        rows = rows[_flags(bits, filters)[rows]]
    return rows[matches(bits, "ref_doc_id", "in", of)[rows]] if of else rows


def _flags(bits: BinaryRows, filter: Any) -> NDArray[np.bool_]:
    if not isinstance(filter, types.MetadataFilters):
        return matches(bits, filter.key, filter.operator.value, filter.value)
    parts = [_flags(bits, each) for each in filter.filters]
    return combine(parts, filter.condition or "and", len(bits))
