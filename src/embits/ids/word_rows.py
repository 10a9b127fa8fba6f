"""`key_to_index`: words and their rows as a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from embits.ids.keys import Keys


class WordRows(Mapping[str, int]):
    """A vocabulary as a mapping word -> row, like `key_to_index` in gensim but without a dict."""

    def __init__(self, vocabulary: Keys) -> None:
        self._vocabulary = vocabulary

    def __getitem__(self, word: str) -> int:
        return self._vocabulary.row(word)

    def __iter__(self) -> Iterator[str]:
        return iter(self._vocabulary)

    def __len__(self) -> int:
        return len(self._vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self._vocabulary
