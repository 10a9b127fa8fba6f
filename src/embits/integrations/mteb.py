"""Models for the package mteb: text encoders, as vectors or as codes that are searched."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.coders import NearLossless
from embits.errors import InputError
from embits.integrations import package
from embits.text.answers import Encoder, search_texts, vectors_of


class EncoderModel:
    """A text encoder with the encoder interface of mteb: `mteb.evaluate(EncoderModel(e), tasks)`.

    Args:
        encoder: A TextEncoder, or anything whose `encode` turns a list of texts into vectors.
        name: The name of the model in results, `organization/model`.
    """

    def __init__(self, encoder: Encoder, name: str = "embits/text-encoder") -> None:
        self.encoder, self.name = encoder, name

    def encode(self, inputs: Any, **_: Any) -> NDArray[np.float32]:
        """Vectors of the texts of batches, (n, dims)."""
        texts = chain.from_iterable(batch["text"] for batch in inputs)
        return vectors_of(self.encoder, list(texts))

    def similarity(self, a: Any, b: Any) -> Any:
        """Cosines of all pairs, (n, m), as a tensor."""
        cosines = unit_rows(np.asarray(a)) @ unit_rows(np.asarray(b)).T
        return import_module("torch").from_numpy(cosines)

    def similarity_pairwise(self, a: Any, b: Any) -> Any:
        """Cosines of pairs, (n,), as a tensor."""
        cosines = (unit_rows(np.asarray(a)) * unit_rows(np.asarray(b))).sum(axis=1)
        return import_module("torch").from_numpy(cosines)

    @property
    def mteb_model_meta(self) -> Any:
        meta = package("mteb", "mteb's tasks", "mteb").models.model_meta.ModelMeta
        return meta.create_empty({"name": self.name})


class SearchModel(EncoderModel):
    """The same with the search interface: texts are codes of `n_bits`, and queries floats."""

    def __init__(
        self, encoder: Encoder, n_bits: int = 256, name: str = "embits/text-search"
    ) -> None:
        super().__init__(encoder, name)
        self.n_bits = n_bits
        self._bits: BinaryRows | None = None

    def index(self, corpus: Any, **_: Any) -> None:
        """Fit a coder on the texts of a corpus, and encode them."""
        texts = [" ".join(filter(None, (each.get("title"), each["text"]))) for each in corpus]
        vectors = vectors_of(self.encoder, texts)
        coder = NearLossless(self.n_bits).fit(vectors)
        ids = [str(each["id"]) for each in corpus]
        self._bits = BinaryVectors(ids, coder.encode(vectors), coder)

    def search(
        self, queries: Any, *, top_k: int, top_ranked: Mapping[str, Any] | None = None, **_: Any
    ) -> dict[str, dict[str, float]]:
        """The ids and scores of the nearest texts of each query, or of those in `top_ranked`."""
        if self._bits is None:
            raise InputError("there is no corpus: call index first")
        names, texts = [str(each["id"]) for each in queries], [each["text"] for each in queries]
        where = None if top_ranked is None else [list(top_ranked[name]) for name in names]
        found = search_texts(self._bits, self.encoder, texts, top_k, where=where)
        return {
            name: {id: float(score) for id, score in zip(ids, scores, strict=True) if id}
            for name, ids, scores in zip(names, found.ids, found[0], strict=True)
        }
