"""gensim's methods for words: similarities, analogies, the odd one out, and their scores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits.arrays import invert, unit_rows
from embits.checks import wanted_rows, whole
from embits.errors import InputError
from embits.search.metrics import Prepared, bit_weights, metric_of
from embits.search.plan import Machine, Plan, scan
from embits.snapshot import Snapshot
from embits.vectors import is_id

Key: TypeAlias = str | int | NDArray[np.uint8]
WordMetric: TypeAlias = Literal["hamming", "decoded"]


class WordMethods:
    """Questions about words, or other ids, by the similarity of their codes; of BinaryVectors."""

    def similarity(self: Any, a: Key, b: Key, *, metric: WordMetric = "hamming") -> float:
        """Sokal-Michener similarity of ids or codes, (n11 + n00) / n: the share of equal bits.

        Args:
            metric: "decoded" gives the cosine of the vectors rebuilt from the codes, whitened if
                the coder whitens.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.array([[1.0, -1, 1], [1, 1, 1]]), method="sign")
            >>> round(bits.similarity(0, 1), 3)
            0.667
        """
        now: Snapshot = self.current
        if not metric_of(metric, needs="codes").is_distance:
            return float(np.prod(now.coder.directions(now.decode_keys([a, b])), axis=0).sum())
        differing = int(np.bitwise_count(now.code(a) ^ now.code(b)).sum())
        return 1 - differing / now.coder.n_bits_

    def most_similar(
        self: Any,
        positive: Key | Sequence[Key],
        negative: Key | Sequence[Key] = (),
        topn: int = 10,
        threads: int | None = None,
        *,
        metric: WordMetric = "hamming",
        where: Any = None,
        exclude: Any = None,
        rows: Any = None,
    ) -> list[tuple[str, float]]:
        """The closest words and their Sokal-Michener similarity, without those asked about.

        `threads`, `where`, `exclude` and `rows` are as in `search`.

        Args:
            positive: Ids or codes to be close to.
            negative: Those to be far from.
            topn: How many words.
            metric: "hamming" combines several words as the paper does for analogies, b - a + c as
                (b AND NOT a) OR c: the first positive, without the bits of the negatives, joined
                by the other positives. "decoded" adds and subtracts the vectors rebuilt from the
                codes, gives estimates of the cosine, and answers two to three times as many
                analogies.

        Raises:
            UnknownWordError: There is no such id, and no subwords to make it from.
        """
        wanted, unwanted = _as_list(positive), _as_list(negative)
        if not wanted:
            raise InputError("most_similar needs at least one positive word or id")
        topn, chosen = whole("topn", topn), metric_of(metric, needs="codes")
        now: Snapshot = self.current
        given = {row for key in (*wanted, *unwanted) if (row := now.row(key)) is not None}
        selection = now.filters((), where, exclude, rows)
        if chosen.is_distance:
            code = now.code(wanted[0]).copy()
            for key in unwanted:
                code &= invert(now.code(key), now.coder.n_bits_)
            for key in wanted[1:]:
                code |= now.code(key)
            prepared = Prepared(code)
        elif len(wanted) == 1 and not unwanted:
            prepared = chosen.prepare(now.coder, now.code(wanted[0]))
        else:
            query = _sum(now, wanted) - _sum(now, unwanted)
            prepared = Prepared(*bit_weights(now.coder, query, rebuilt=True))
        plan = Plan(chosen, wanted_rows(topn + len(given), len(now)), selection)
        values, found = scan(now, plan, prepared, Machine(threads=threads))
        similarities: Any = 1 - values / now.coder.n_bits_ if chosen.is_distance else values
        neighbors = [
            (now.ids[row], value)
            for row, value in zip(found.tolist(), similarities.tolist(), strict=True)
            if row not in given
        ]
        return neighbors[:topn]

    def doesnt_match(self: Any, words: Sequence[str]) -> str:
        """The word whose bits differ most from the majority of all the words."""
        if isinstance(words, str) or len(words) == 0:
            raise InputError("doesnt_match needs a list of at least one word or id")
        bits = np.unpackbits(self[list(words)], axis=1, count=self.n_bits)
        majority = 2 * bits.sum(axis=0) >= len(words)
        return words[int((bits != majority).sum(axis=1).argmax())]

    def evaluate_word_pairs(
        self: Any, pairs: str | os.PathLike[str], **options: Any
    ) -> tuple[float, float, float]:
        """Pearson and Spearman correlations with people's scores, and the percentage left out.

        As in gensim; `embits.evaluation.evaluate_word_pairs` lists the `options`.
        """
        from embits.evaluation.tasks.words import evaluate_word_pairs

        return evaluate_word_pairs(self, pairs, **options)

    def evaluate_word_analogies(
        self: Any, analogies: str | os.PathLike[str], **options: Any
    ) -> tuple[float, list[dict[str, Any]]]:
        """The accuracy on a file of analogies, and the questions of each section.

        As in gensim; `embits.evaluation.evaluate_word_analogies` lists the `options`.
        """
        from embits.evaluation.tasks.words import evaluate_word_analogies

        return evaluate_word_analogies(self, analogies, **options)


def _sum(now: Snapshot, keys: list[Any]) -> NDArray[np.float32]:
    if not keys:
        return np.zeros(now.coder.n_features_in_, np.float32)
    total: NDArray[np.float32] = unit_rows(now.decode_keys(keys)).sum(axis=0)
    return total


def is_single(key: Any) -> bool:
    """Whether a key is one id, row or code."""
    is_code = isinstance(key, np.ndarray) and key.ndim == 1 and key.dtype == np.uint8
    return is_code or is_id(key)


def _as_list(keys: Key | Iterable[Key]) -> list[Any]:
    if is_single(keys) or not isinstance(keys, Iterable):
        return [keys]
    listed = list(keys)
    for key in (keys, *listed):
        if isinstance(key, float) or "float" in str(getattr(key, "dtype", "")):  # also PyTorch's
            raise InputError("most_similar takes words, ids or codes: use bits.search(vector)")
    return listed
