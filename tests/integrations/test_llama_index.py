"""The vector store for LlamaIndex: nodes come back whole, filters, modes, other processes."""

import asyncio

import numpy as np
import pytest

import embits

pytest.importorskip("llama_index.core")
pytest.importorskip("pyarrow")

from llama_index.core import Document, StorageContext, VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from embits.integrations.llama_index import EmbitsVectorStore

DIMS, ROWS = 24, 60
X = np.random.default_rng(0).standard_normal((ROWS, DIMS))


def node(i, **options):
    metadata = {"n": i, "label": ["news", "sport", "art"][i % 3], "tags": [f"t{i % 4}", "all"]}
    if i % 5:
        metadata["part"] = i / 2
    made = TextNode(id_=f"n{i}", text=f"text {i}", metadata=metadata, embedding=X[i].tolist())
    made.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=f"doc{i % 7}")
    return made.model_copy(update=options)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = EmbitsVectorStore(tmp_path_factory.mktemp("stores") / "nodes", n_bits=128)
    assert store.add([node(i) for i in range(ROWS)]) == [f"n{i}" for i in range(ROWS)]
    return store


@pytest.fixture
def own(tmp_path):
    store = EmbitsVectorStore(tmp_path / "own", n_bits=64)
    store.add([node(i) for i in range(10)])
    return store


@pytest.fixture(scope="module")
def oracle():
    """LlamaIndex's own store, which compares every node in Python."""
    store = SimpleVectorStore()
    store.add([node(i) for i in range(ROWS)])
    return store


def ids(store, **options):
    query = VectorStoreQuery(query_embedding=X[0].tolist(), similarity_top_k=ROWS, **options)
    return set(store.query(query).ids)


def test_nodes_come_back_whole_and_with_cosines(store):
    query = VectorStoreQuery(query_embedding=(X[7] * 3).tolist(), similarity_top_k=4)
    found = store.query(query)
    cosines = X @ X[7] / np.linalg.norm(X, axis=1) / np.linalg.norm(X[7])
    best = np.argsort(-cosines)[:4]
    assert found.ids == [f"n{row}" for row in best]
    assert np.allclose(found.similarities, cosines[best], atol=0.01)
    assert found.nodes == [node(row, embedding=None) for row in best]


FILTERS = [
    ("n", "==", 7), ("n", "!=", 7), ("n", ">", 40), ("n", ">=", 40), ("n", "<", 3.5),
    ("n", "<=", 3),
    ("n", "in", [1, 2, 99]), ("n", "nin", [1, 2]), ("label", "==", "art"), ("label", "!=", "art"),
    ("label", "in", ["art", "news"]), ("tags", "contains", "t2"), ("tags", "any", ["t1", "t2"]),
    ("tags", "all", ["t1", "all"]), ("part", ">", 20), ("part", "!=", 0.5), ("part", "nin", [0.5]),
    ("part", "is_empty", None), ("tags", "is_empty", None), ("nobody", "==", 1),
    ("nobody", "!=", 1), ("nobody", "is_empty", None), ("doc_id", "==", "doc3"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "operator", "value"), FILTERS)
def test_filters_pass_the_nodes_that_the_simple_store_passes(store, oracle, key, operator, value):
    each = MetadataFilter(key=key, operator=FilterOperator(operator), value=value)
    filters = MetadataFilters(filters=[each])
    assert ids(store, filters=filters) == ids(oracle, filters=filters)


@pytest.mark.parametrize("condition", ["and", "or", "not"])
def test_filters_are_combined_and_nested(store, oracle, condition):
    parts = [
        MetadataFilter(key="n", operator=">", value=20),
        MetadataFilter(key="label", value="art"),
    ]
    filters = MetadataFilters(filters=parts, condition=condition)
    found = ids(store, filters=filters)
    assert 0 < len(found) < ROWS
    assert found == ids(oracle, filters=filters)
    nested = MetadataFilters(filters=[filters, MetadataFilter(key="n", operator="<", value=30)])
    assert ids(store, filters=nested) == found & {f"n{i}" for i in range(30)}
    assert len(ids(store, filters=MetadataFilters(filters=[]))) == ROWS


@pytest.mark.parametrize("operator", ["text_match", "text_match_insensitive"])
def test_what_cannot_be_mapped_is_refused_in_one_line(store, operator):
    filters = MetadataFilters(filters=[MetadataFilter(key="label", operator=operator, value="ar")])
    with pytest.raises(embits.InputError, match="no operator 'text_match") as caught:
        ids(store, filters=filters)
    assert "\n" not in str(caught.value)
    with pytest.raises(embits.InputError, match="hybrid"):
        ids(store, mode="hybrid")
    with pytest.raises(embits.InputError, match="embedding"):
        store.query(VectorStoreQuery(query_str="text"))


def test_ids_of_nodes_and_documents_limit_a_query(store):
    assert ids(store, node_ids=["n3", "nobody", "n5"]) == {"n3", "n5"}
    assert ids(store, doc_ids=["doc3"]) == {f"n{i}" for i in range(3, ROWS, 7)}
    assert ids(store, node_ids=["n3", "n5"], doc_ids=["doc3"]) == {"n3"}
    assert len(ids(store, node_ids=[], doc_ids=[])) == ROWS  # as an index asks for all


def test_mmr_finds_nodes_that_differ(own):
    own.add([node(0, id_="twin")])
    query = VectorStoreQuery(query_embedding=X[0].tolist(), similarity_top_k=2)
    assert set(own.query(query).ids) == {"n0", "twin"}
    query.mode, query.mmr_threshold = "mmr", 0.1
    found = own.query(query)
    assert len({"n0", "twin"} & set(found.ids)) == 1
    assert asyncio.run(own.aquery(query)) == found


def test_nodes_are_deleted_replaced_and_seen_by_other_processes(own, tmp_path):
    other = EmbitsVectorStore(tmp_path / "own")
    with pytest.raises(embits.InputError, match="'n3' appears twice"):
        own.add([node(3, text="new"), node(3, text="newer")])
    own.add([node(3, text="newer")])
    assert [each.get_content() for each in other.get_nodes(["n3", "nobody", "n1"])] == [
        "newer",
        "text 1",
    ]
    other.delete("doc1")
    assert [each.node_id for each in own.get_nodes()] == [
        "n0",
        "n2",
        "n4",
        "n5",
        "n6",
        "n7",
        "n9",
        "n3",
    ]
    filters = MetadataFilters(filters=[MetadataFilter(key="n", operator=">", value=5)])
    assert [each.node_id for each in own.get_nodes(filters=filters)] == ["n6", "n7", "n9"]
    own.delete_nodes(["n7", "n0", "nobody"], filters)
    assert len(other.get_nodes(["n7", "n0"])) == 1
    for nothing in ({}, {"filters": MetadataFilters(filters=[])}):
        with pytest.raises(embits.InputError, match="takes node_ids or filters"):
            own.delete_nodes(**nothing)
    assert own.get_nodes()
    other.clear()
    assert own.get_nodes() == []
    assert own.query(VectorStoreQuery(query_embedding=X[0].tolist())).ids == []
    own.delete("doc1")


def test_every_kind_of_node_comes_back(own):
    vector = X[0].tolist()
    nodes = [
        ImageNode(
            id_="image", image="aGk=", embedding=vector, metadata={"deep": {"x": [None, {"y": 1}]}}
        ),
        IndexNode(id_="index", text="over", index_id="other", embedding=vector),
        TextNode(
            id_="odd", text="", embedding=vector, metadata={"doc_id": 5, "text": "own", "id": None}
        ),
    ]
    own.add(nodes)
    for given, found in zip(nodes, own.get_nodes(["image", "index", "odd"]), strict=True):
        assert type(found) is type(given)
        assert found == given.model_copy(update={"embedding": None})


def test_an_index_of_documents_is_kept_and_asked_again(tmp_path):
    store = EmbitsVectorStore(tmp_path / "index")
    documents = [Document(text=f"about {name}", metadata={"name": name}) for name in ("x", "y")]
    VectorStoreIndex.from_documents(
        documents, StorageContext.from_defaults(vector_store=store), embed_model=MockEmbedding(8)
    )
    again = EmbitsVectorStore(tmp_path / "index")
    index = VectorStoreIndex.from_vector_store(again, embed_model=MockEmbedding(8))
    filters = MetadataFilters(filters=[MetadataFilter(key="name", value="y")])
    (found,) = index.as_retriever(filters=filters).retrieve("anything")
    assert (found.text, found.metadata) == ("about y", {"name": "y"})
    index.delete_ref_doc(documents[1].doc_id)
    assert [each.text for each in index.as_retriever().retrieve("anything")] == ["about x"]
