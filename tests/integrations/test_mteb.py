"""The encoder and search interfaces of mteb, on tasks made of local texts."""

import numpy as np
import pytest

import embits

TOPICS = {"music": "music song album guitar", "water": "river water boat lake"}


@pytest.fixture(scope="module")
def encoder():
    """An encoder of the sample of word vectors."""
    words = embits.binarize(embits.sample_vectors(), n_bits=128, method="itq")
    return embits.TextEncoder.from_words(words)


@pytest.fixture
def texts():
    """Texts of topics, and their topics."""
    rng = np.random.default_rng(0)
    topics = [name for name in TOPICS for _ in range(40)]
    return [" ".join(rng.choice(TOPICS[each].split(), 3)) for each in topics], topics


@pytest.mark.slow
def test_mteb_evaluates_an_encoder_and_a_search_on_a_local_task(encoder, texts):
    mteb = pytest.importorskip("mteb")
    datasets = pytest.importorskip("datasets")
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    from embits.integrations.mteb import EncoderModel, SearchModel

    found, topics = texts
    corpus = [{"id": f"d{i}", "title": "", "text": each} for i, each in enumerate(found)]
    queries = [{"id": name, "text": name} for name in TOPICS]
    relevant = {
        name: {f"d{i}": 1 for i, each in enumerate(topics) if each == name} for name in TOPICS
    }

    class Local(AbsTaskRetrieval):
        metadata = TaskMetadata(
            name="Local", description="local", reference=None, type="Retrieval", category="t2t",
            modalities=["text"], eval_splits=["test"], eval_langs=["eng-Latn"],
            main_score="ndcg_at_10", dataset={"path": "local/local", "revision": "1"},
            date=None, domains=None, task_subtypes=None, license=None, annotations_creators=None,
            dialect=None, sample_creation=None, bibtex_citation=None,
        )  # fmt: skip

        def load_data(self, **_):
            of = datasets.Dataset.from_list
            self.dataset = {
                "default": {
                    "test": {
                        "corpus": of(corpus),
                        "queries": of(queries),
                        "relevant_docs": relevant,
                        "top_ranked": None,
                    }
                }
            }
            self.data_loaded = True

    for model in (EncoderModel(encoder), SearchModel(encoder, n_bits=64)):
        results = mteb.evaluate(model, Local(), cache=None, overwrite_strategy="always")
        score = results.task_results[0].scores["test"][0]["main_score"]
        assert score > 0.9


@pytest.mark.filterwarnings("ignore:fitted on")
def test_searches_give_scores_by_id(encoder, texts):
    from embits.integrations.mteb import SearchModel

    model = SearchModel(encoder, n_bits=64)
    model.index([{"id": i, "text": each} for i, each in enumerate(texts[0])])
    query = [{"id": "q", "text": "water"}]
    found = model.search(query, top_k=5)["q"]
    assert len(found) == 5
    assert all(texts[1][int(each)] == "water" for each in found)
    only = model.search(query, top_k=5, top_ranked={"q": ["1", "2"]})["q"]
    assert set(only) == {"1", "2"}
    vectors = model.encode([{"text": ["a song", "a river"]}, {"text": ["music"]}])
    assert vectors.shape == (3, 50)
