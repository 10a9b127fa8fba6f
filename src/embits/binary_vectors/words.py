"""gensim's methods for words: similarities, analogies, the odd one out, and their scores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import unit_rows
from embits.binary_vectors.codes import Key
from embits.binary_vectors.queries import check_metric
from embits.binary_vectors.radius import RadiusQueries
from embits.bits import invert
from embits.errors import InputError
from embits.search import top_k
from embits.search.filters import Filters

Metric: TypeAlias = Literal["hamming", "decoded"]
METRICS = ("hamming", "decoded")


class WordQueries(RadiusQueries):
    """Questions about words, or other ids, by the similarity of their codes."""

    def similarity(self, a: Key, b: Key, *, metric: Metric = "hamming") -> float:
        """Sokal-Michener similarity, (n11 + n00) / n: the share of bits that agree.

        Args:
            a: An id, row or code.
            b: Another one.
            metric: "decoded" gives the cosine of the vectors rebuilt from the codes.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.array([[1.0, -1, 1], [1, 1, 1]]), method="sign")
            >>> round(bits.similarity(0, 1), 3)
            0.667
        """
        check_metric(metric, METRICS)
        if metric == "decoded":
            return float(np.prod(unit_rows(self.decode([a, b])), axis=0).sum())
        differing = int(np.bitwise_count(self._code(a) ^ self._code(b)).sum())
        return 1 - differing / self.n_bits

    def most_similar(
        self,
        positive: Key | Sequence[Key],
        negative: Key | Sequence[Key] = (),
        topn: int = 10,
        threads: int | None = None,
        *,
        metric: Metric = "hamming",
        where: Any = None,
        exclude: Any = None,
        k: None = None,
    ) -> list[tuple[str, float]]:
        """The closest words and their Sokal-Michener similarity, without those asked about.

        Args:
            positive: Ids, rows or codes to be close to.
            negative: Those to be far from.
            topn: How many words.
            threads: None uses every core.
            metric: "hamming" combines several words as the paper does for analogies, b - a + c as
                (b AND NOT a) OR c: the first positive, without the bits of the negatives, joined
                by the other positives. "decoded" adds and subtracts the vectors rebuilt from the
                codes, and gives estimates of the cosine. It answers two to three times as many
                analogies.
            where: The words that may be found: words, rows, a boolean mask or a selection, as in
                `search`.
            exclude: Those that may not, in the same forms.
            k: The name that `search` has for `topn`; refused here.

        Raises:
            InputError: An argument is wrong.
            UnknownWordError: There is no such id, and no subwords to make it from.
        """
        if k is not None:
            raise InputError(f"most_similar has no argument k: pass topn={k!r}")
        wanted, unwanted = _as_list(positive), _as_list(negative)
        if not wanted:
            raise InputError("most_similar needs at least one positive word or id")
        if isinstance(topn, bool) or not isinstance(topn, int | np.integer) or topn < 0:
            raise InputError(f"topn is {topn!r}, expected a whole number of 0 or more")
        check_metric(metric, METRICS)
        asked = {row for key in (*wanted, *unwanted) if (row := self._row(key)) is not None}
        allowed = self._filters((), where, exclude)
        most = topn + len(asked)
        values, rows = self._closest(wanted, unwanted, most, threads, metric, allowed)
        neighbors = [
            (self.words[row], value)
            for row, value in zip(rows.tolist(), values.tolist(), strict=True)
            if row not in asked
        ]
        return neighbors[:topn]

    def _closest(
        self,
        wanted: list[Any],
        unwanted: list[Any],
        k: int,
        threads: int | None,
        metric: Metric,
        where: Filters,
    ) -> tuple[NDArray[np.floating], NDArray[np.int64]]:
        """Similarities and rows of the k codes closest to a combination of others."""
        if metric == "decoded":
            if len(wanted) == 1 and not unwanted:
                weights = self._decoded_weights(self._code(wanted[0]))
            else:
                query = self._sum(wanted) - self._sum(unwanted)
                weights = self._query_weights(query, rebuilt=True)
            return self._score(*weights, k, threads, where)
        code = self._code(wanted[0]).copy()
        for key in unwanted:
            code &= invert(self._code(key), self.n_bits)
        for key in wanted[1:]:
            code |= self._code(key)
        distances, rows = top_k(self.codes, code, k, threads, where=where)
        return 1 - distances / self.n_bits, rows

    def _sum(self, keys: list[Any]) -> NDArray[np.float32]:
        """The sum of the rebuilt directions."""
        total: NDArray[np.float32] = unit_rows(self.decode(keys)).sum(axis=0)
        return total

    def _row(self, key: Key) -> int | None:
        if isinstance(key, str):
            return self.words.find(key)
        return int(key) if isinstance(key, int | np.integer) else None

    def doesnt_match(self, words: Sequence[str]) -> str:
        """The word whose bits differ most from the majority of all the words."""
        if isinstance(words, str) or len(words) == 0:
            raise InputError("doesnt_match needs a list of at least one word or id")
        bits = np.unpackbits(self[list(words)], axis=1, count=self.n_bits)
        majority = 2 * bits.sum(axis=0) >= len(words)
        return words[int((bits != majority).sum(axis=1).argmax())]

    def evaluate_word_pairs(
        self, pairs: str | os.PathLike[str], **options: Any
    ) -> tuple[float, float, float]:
        """Pearson and Spearman correlations with people's scores, and the percentage left out.

        As in gensim; `embits.evaluation.evaluate_word_pairs` lists the `options`.
        """
        from embits.evaluation.tasks.similarity import evaluate_word_pairs

        return evaluate_word_pairs(self, pairs, **options)

    def evaluate_word_analogies(
        self, analogies: str | os.PathLike[str], **options: Any
    ) -> tuple[float, list[dict[str, Any]]]:
        """The accuracy on a file of analogies, and the questions of each section.

        As in gensim; `embits.evaluation.evaluate_word_analogies` lists the `options`.
        """
        from embits.evaluation.tasks.analogy import evaluate_word_analogies

        return evaluate_word_analogies(self, analogies, **options)


def _as_list(keys: Key | Iterable[Key]) -> list[Any]:
    if isinstance(keys, str | int | np.integer):
        return [keys]
    if isinstance(keys, np.ndarray) and keys.ndim == 1 and keys.dtype == np.uint8:
        return [keys]
    if _holds_floats(keys):
        raise InputError(
            "most_similar takes words, ids, rows or codes, not float vectors: use "
            "bits.search(vector)"
        )
    return list(keys) if isinstance(keys, Iterable) else [keys]


def _holds_floats(keys: Any) -> bool:
    """Whether it is a float vector, several of them, or a list of floats."""
    kind = getattr(keys, "dtype", None)
    if kind is not None:
        return "float" in str(kind)  # NumPy's and PyTorch's
    return isinstance(keys, list | tuple) and any(
        isinstance(key, float | np.floating) or "float" in str(getattr(key, "dtype", ""))
        for key in keys
    )
