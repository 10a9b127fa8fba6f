"""The vector store for LangChain: the framework's own tests, metadata, filters, other processes."""

import asyncio
import json
import string

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import embits

pytest.importorskip("langchain_core")
standard = pytest.importorskip("langchain_tests.integration_tests")
pytest.importorskip("pyarrow")

from langchain_core.documents import Document  # noqa: E402
from langchain_core.embeddings import DeterministicFakeEmbedding  # noqa: E402

from embits.integrations.langchain import EmbitsVectorStore  # noqa: E402

EMBEDDING = DeterministicFakeEmbedding(size=24)


class TestStandard(standard.VectorStoreIntegrationTests):
    """The tests that LangChain gives to authors of vector stores."""

    @pytest.fixture
    def vectorstore(self, tmp_path):
        return EmbitsVectorStore(self.get_embeddings(), tmp_path / "store")


@pytest.fixture
def store(tmp_path):
    store = EmbitsVectorStore(EMBEDDING, tmp_path / "store", n_bits=128)
    metadatas = [
        {"year": 2019, "label": "news", "tags": ["a", "b"], "score": 0.5, "good": True},
        {"year": 2021.5, "label": "news", "tags": ["b"], "nested": {"deep": [1, None, {"x": "y"}]}},
        {"year": "unknown", "label": None, "tags": [], "id": 7, "text": "own", "good": False},
        {"large": 2**80, "larger": 10**400, "mixed": [1, "x", None, [2], True, {}]},
    ]
    store.add_texts(["a river", "a song", "a tree", "a bird"], metadatas, ids=list("abcd"))
    return store


def found(store, filter):
    return "".join(sorted(each.id for each in store.similarity_search("x", k=9, filter=filter)))


FILTERS = [
    ({"label": "news"}, "ab"),
    ({"label": ["news", "other"], "year": 2019}, "a"),
    ({"year": 2019.0}, "a"),
    ({"year": {"$gte": 2019}}, "ab"),
    ({"year": {"$gt": 2019, "$lt": 3000}}, "b"),
    ({"year": {"$lte": 2020}}, "a"),
    ({"year": "unknown"}, "c"),
    ({"year": {"$gt": "a"}}, "c"),
    ({"year": {"$in": [2019, "unknown", 1.5]}}, "ac"),
    ({"year": {"$nin": [2019, "unknown"]}}, "bd"),
    ({"label": {"$ne": "news"}}, "cd"),
    ({"label": None}, "cd"),
    ({"label": {"$ne": None}}, "ab"),
    ({"good": True}, "a"),
    ({"good": 1}, ""),
    ({"id": 7, "text": "own"}, "c"),
    ({"nobody": 1}, ""),
    ({"tags": {"$contains": "b"}}, "ab"),
    ({"tags": {"$any": ["a", "z"]}}, "a"),
    ({"tags": {"$all": ["a", "b"]}}, "a"),
    ({"$or": [{"year": 2019}, {"good": False}]}, "ac"),
    ({"$and": [{"label": "news"}, {"$not": {"year": 2019}}]}, "b"),
    ({"nested": None}, "acd"),
    ({"tags": None}, "d"),
    ({"tags": {"$contains": 2**80}}, ""),
    ({"large": {"$gt": 10}}, "d"),
    ({"mixed": {"$all": [1, "x", True]}}, "d"),
    ({"mixed": {"$any": ["y", False]}}, ""),
    ({"$or": []}, ""),
    ({}, "abcd"),
    (lambda document: "nested" in document.metadata, "b"),
    (lambda document: False, ""),
]


@pytest.mark.parametrize(("filter", "expected"), FILTERS)
def test_a_filter_is_on_the_values_that_were_given(store, filter, expected):
    assert found(store, filter) == expected


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"year": {"$regex": "a"}}, "no operator '\\$regex'"),
        ({"year": {"deep": 1}}, "no operator 'deep'"),
        ({"$nor": [{"year": 1}]}, "'\\$nor'"),
        ({"$nor": []}, "'\\$nor'"),
        ({"$or": {"year": 1}}, "filter is 'year', expected a mapping"),
        ("year", "filter is 'year', expected a mapping"),
        ({"year": {"$in": 3}}, "takes a list of plain values, found 3"),
        ({"year": {"$gt": [3]}}, "takes a plain value"),
        ({"year": object()}, "takes a plain value"),
        ({"year": {"$gt": None}}, "takes a plain value, found None"),
    ],
)
def test_a_filter_that_cannot_be_mapped_is_refused_in_one_line(store, filter, message):
    with pytest.raises(embits.EmbitsError, match=message) as caught:
        store.similarity_search("x", filter=filter)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "metadata", [{"when": object()}, {"pair": (1, 2)}, {1: "number"}, {"not": float("nan")}]
)
def test_metadata_that_json_would_change_is_refused_and_nothing_is_added(store, metadata):
    with pytest.raises(embits.InputError, match="cannot be stored"):
        store.add_texts(["good", "bad"], [{}, metadata])
    assert found(store, None) == "abcd"


keys = st.text(string.printable, max_size=5) | st.sampled_from(
    ["id", "text", "metadata", "lengths"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(keys, values, max_size=4), min_size=1, max_size=4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_metadata_of_any_shape_come_back_as_they_were_given(tmp_path, metadatas):
    store = EmbitsVectorStore(EMBEDDING, tmp_path / "any", n_bits=64)
    store.delete()
    texts = [json.dumps(each) for each in metadatas]
    ids = store.add_texts(texts, metadatas)
    again = EmbitsVectorStore(EMBEDDING, tmp_path / "any")
    assert [each.metadata for each in again.get_by_ids(ids)] == metadatas
    assert [each.page_content for each in again.get_by_ids(ids)] == texts


def test_a_store_goes_on_where_another_process_stopped(store, tmp_path):
    other = EmbitsVectorStore(EMBEDDING, tmp_path / "store")
    document = Document(id="e", page_content="a stone", metadata={"year": 1})
    store.add_documents([document])
    assert other.similarity_search("a stone", k=1) == [document]
    other.delete(["e", "nobody"])
    assert store.get_by_ids(["e", "b", "a"]) == other.get_by_ids(["b", "a"])
    assert [each.id for each in store.get_by_ids(["b", "e", "a"])] == ["b", "a"]
    other.delete()
    assert store.similarity_search("a stone") == []
    with pytest.raises(embits.InputError, match="'e' appears twice"):
        store.add_texts(["one", "two"], ids=["e", "e"])
    assert other.similarity_search("one") == []
    assert store.add_texts(["one", "two", "three"], ids=[0, "0a", None])[:2] == ["0", "0a"]
    assert len(other.similarity_search("one")) == 3


def test_scores_are_cosines_and_relevance_is_between_0_and_1(tmp_path):
    store = EmbitsVectorStore(EMBEDDING, tmp_path / "store")
    texts = [f"text {i}" for i in range(60)]
    store.add_texts(texts, ids=texts)
    X = np.array(EMBEDDING.embed_documents(texts))
    q = np.array(EMBEDDING.embed_query("text 7"))
    cosines = X @ q / np.linalg.norm(X, axis=1) / np.linalg.norm(q)
    best = np.argsort(-cosines)[:4]
    found = store.similarity_search_with_score("text 7", k=4)
    assert [each.id for each, _ in found] == [texts[row] for row in best]
    assert np.allclose([score for _, score in found], cosines[best], atol=0.01)
    relevance = store.similarity_search_with_relevance_scores("text 7", k=4)
    assert [score for _, score in relevance] == pytest.approx((1 + cosines[best]) / 2, abs=0.01)


def test_documents_of_marginal_relevance_differ_from_each_other(tmp_path):
    store = EmbitsVectorStore(EMBEDDING, tmp_path / "store")
    store.add_texts(
        ["same", "same", "same", "other"], [{"n": i} for i in range(4)], ids=list("abcd")
    )
    near = store.similarity_search("same", k=2)
    assert {each.page_content for each in near} == {"same"}
    different = store.max_marginal_relevance_search("same", k=2, lambda_mult=0.1)
    assert [each.page_content for each in different] == ["same", "other"]
    options = {"search_type": "mmr", "search_kwargs": {"k": 2, "filter": {"n": {"$lt": 3}}}}
    assert {each.page_content for each in store.as_retriever(**options).invoke("same")} == {"same"}
    vector = EMBEDDING.embed_query("same")
    found = asyncio.run(store.amax_marginal_relevance_search("same", k=2, lambda_mult=0.1))
    assert found == different
    assert store.max_marginal_relevance_search_by_vector(vector, 2, lambda_mult=0.1) == different


def test_a_store_is_made_from_texts(tmp_path):
    made = EmbitsVectorStore.from_texts(
        ["a", "b"], EMBEDDING, [{"n": 1}, {"n": 2}], path=tmp_path / "store"
    )
    assert made.similarity_search("b", k=1)[0].metadata == {"n": 2}
    assert made.embeddings is EMBEDDING
    coder = embits.RandomHyperplanes(n_bits=64).fit(np.eye(24))
    other = EmbitsVectorStore(EMBEDDING, tmp_path / "other", coder=coder)
    other.add_texts(["a", "b"])
    assert other.similarity_search("b", k=1)[0].page_content == "b"
    with pytest.raises(embits.InputError, match="1 metadatas, 2 ids for 2 texts"):
        other.add_texts(["a", "b"], [{}])
