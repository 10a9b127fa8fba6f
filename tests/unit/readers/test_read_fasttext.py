"""fastText's .bin, held against gensim, and its subwords."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embits.errors import InputError, ReadError, ReadWarning, UnknownWordError
from embits.ids.subwords import Subwords
from embits.readers import read_vectors

SENTENCES = [
    ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"],
    ["größe", "naïve", "東京", "café", "🙂", "x", "überraschung"],
] * 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    fasttext = pytest.importorskip("gensim.models.fasttext")
    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    trained = fasttext.FastText(
        SENTENCES,
        vector_size=7,
        min_count=1,
        epochs=2,
        bucket=97,
        min_n=2,
        max_n=5,
        workers=1,
        seed=1,
    )
    fasttext.save_facebook_model(trained, str(path))
    return path, fasttext.load_facebook_vectors(str(path))


def test_word_vectors_are_those_of_gensim(model: tuple[Path, Any]) -> None:
    path, expected = model
    vectors = read_vectors(path)
    assert vectors.words == expected.index_to_key
    np.testing.assert_allclose(vectors.matrix, expected.vectors, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("word", ["unseen", "東京都", "größen", "🙂🙂", "fo", "y"])
def test_unseen_words_have_the_vectors_of_gensim(model: tuple[Path, Any], word: str) -> None:
    path, expected = model
    subwords = read_vectors(path).subwords
    assert subwords is not None
    assert (subwords.minn, subwords.maxn, subwords.buckets.shape) == (2, 5, (97, 7))
    np.testing.assert_allclose(
        subwords.vector(word), expected.get_vector(word), rtol=1e-5, atol=1e-8
    )


def test_limit_reads_the_first_words(model: tuple[Path, Any]) -> None:
    path, expected = model
    vectors = read_vectors(path, limit=3)
    assert vectors.words == expected.index_to_key[:3]
    np.testing.assert_allclose(vectors.matrix, expected.vectors[:3], rtol=1e-5, atol=1e-8)


class TestSubwords:
    def test_hashing_is_fasttexts_with_its_signed_bytes(self) -> None:
        def fnv(ngram: str) -> int:
            h = 2166136261
            for byte in ngram.encode():
                h = ((h ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) % 2**32
            return h

        subwords = Subwords(np.zeros((1_000, 2), np.float32), minn=3, maxn=4)
        # n-grams count characters, not bytes
        assert subwords.rows("éa") == [fnv(g) % 1_000 for g in ["<éa", "<éa>", "éa>"]]

    def test_a_lone_mark_is_no_ngram(self) -> None:
        subwords = Subwords(np.zeros((1_000, 2), np.float32), minn=1, maxn=1)
        assert len(subwords.rows("ab")) == 2

    def test_a_word_without_ngrams_is_unknown(self) -> None:
        with pytest.raises(UnknownWordError, match="'a'"):
            Subwords(np.zeros((10, 2), np.float32), minn=4, maxn=6).vector("a")

    def test_the_end_of_sentence_has_none(self) -> None:
        assert Subwords(np.zeros((10, 2), np.float32), minn=1, maxn=6).rows("</s>") == []

    def test_float16_buckets_give_float32_vectors(self) -> None:
        vector = Subwords(np.full((10, 2), 0.5, np.float16), minn=3, maxn=6).vector("word")
        assert vector.dtype == np.float32
        assert vector.tolist() == [0.5, 0.5]

    @pytest.mark.parametrize(
        ("shape", "minn", "maxn"), [((0, 2), 3, 6), ((5,), 3, 6), ((5, 2), 6, 3), ((5, 2), 0, 0)]
    )
    def test_wrong_sizes_are_refused(self, shape: tuple[int, ...], minn: int, maxn: int) -> None:
        with pytest.raises(InputError):
            Subwords(np.zeros(shape, np.float32), minn, maxn)


def fasttext_bytes(
    words: tuple[bytes, ...] = (b"</s>", b"cat"),
    labels: tuple[bytes, ...] = (),
    dims: int = 3,
    bucket: int = 4,
    minn: int = 3,
    maxn: int = 6,
    model: int = 2,
    version: int = 12,
    n_words: int | None = None,
    pruned: int = -1,
    quantised: bool = False,
    rows: int | None = None,
) -> bytes:
    entries = len(words) + len(labels)
    n_words = len(words) if n_words is None else n_words
    n_rows = len(words) + bucket
    matrix = np.arange(n_rows * dims, dtype="<f4")
    return b"".join(
        [
            struct.pack("<ii", 793712314, version),
            struct.pack("<12id", dims, 5, 5, 1, 5, 1, 2, model, bucket, minn, maxn, 100, 1e-4),
            struct.pack("<3iqq", entries + n_words - len(words), n_words, len(labels), 10, pruned),
            *(word + b"\0" + struct.pack("<qb", 5, 0) for word in words),
            *(label + b"\0" + struct.pack("<qb", 5, 1) for label in labels),
            struct.pack("<?qq", quantised, n_rows if rows is None else rows, dims),
            matrix.tobytes(),
        ]
    )


def read(tmp_path: Path, content: bytes, **options: Any) -> Any:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    return read_vectors(path, **options)


class TestByHand:
    def test_the_end_of_sentence_is_its_own_row(self, tmp_path: Path) -> None:
        vectors = read(tmp_path, fasttext_bytes())
        assert vectors.words == ["</s>", "cat"]
        assert vectors.matrix[0].tolist() == [0, 1, 2]

    def test_a_word_is_the_mean_of_its_row_and_its_ngrams(self, tmp_path: Path) -> None:
        vectors = read(tmp_path, fasttext_bytes())
        used = [np.array([3, 4, 5]), *vectors.subwords.buckets[vectors.subwords.rows("cat")]]
        np.testing.assert_allclose(vectors.matrix[1], np.mean(used, axis=0), rtol=1e-6)

    def test_labels_of_a_supervised_model_are_left_out(self, tmp_path: Path) -> None:
        assert read(tmp_path, fasttext_bytes(labels=(b"__label__x",), model=3)).words == [
            "</s>",
            "cat",
        ]

    def test_a_model_without_ngrams_has_no_subwords(self, tmp_path: Path) -> None:
        vectors = read(tmp_path, fasttext_bytes(bucket=0, minn=0, maxn=0))
        assert vectors.subwords is None
        assert vectors.matrix.tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_an_old_supervised_model_has_none_either(self, tmp_path: Path) -> None:
        assert read(tmp_path, fasttext_bytes(model=3, version=11)).subwords is None

    def test_words_that_are_not_utf8_are_escaped_after_hashing(self, tmp_path: Path) -> None:
        with pytest.warns(ReadWarning, match="not in valid UTF-8.* word 2"):
            assert read(tmp_path, fasttext_bytes((b"a", b"\xff"))).words == ["a", "\\xff"]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"version": 10}, "fastText version 10"),
            ({"quantised": True}, r"a quantised model \(.ftz\)"),
            ({"pruned": 3}, "a pruned dictionary"),
            ({"rows": 2**40}, "a matrix of 1099511627776 x 3, expected 6 x 3"),
            ({"n_words": 2**30}, "1073741824 words"),
            ({"n_words": -1}, "-1 words"),
            ({"minn": 7}, "n-grams of 7 to 6"),
            ({"maxn": -3}, "n-grams of 3 to -3"),
        ],
    )
    def test_what_cannot_be_is_refused_with_its_byte(
        self, tmp_path: Path, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ReadError, match=rf"model\.bin, byte \d+: found .*{message}"):
            read(tmp_path, fasttext_bytes(**options))

    def test_sizes_beyond_the_file_are_refused(self, tmp_path: Path) -> None:
        content = bytearray(fasttext_bytes())
        struct.pack_into("<i", content, 8 + 4 * 8, 2**31 - 1)
        with pytest.raises(ReadError):
            read(tmp_path, bytes(content))
        struct.pack_into("<i", content, 8, -5)
        with pytest.raises(ReadError, match="-5 dims"):
            read(tmp_path, bytes(content))

    def test_every_truncation_is_refused(self, tmp_path: Path) -> None:
        whole = fasttext_bytes()
        for size in range(4, len(whole), 3):
            with pytest.raises(ReadError):
                read(tmp_path, whole[:size])

    def test_no_flipped_byte_does_more_than_refuse(self, tmp_path: Path) -> None:
        whole = fasttext_bytes()
        for at in range(len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= 0xFF
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReadWarning)
                try:
                    read(tmp_path, bytes(damaged))
                except ReadError:
                    continue
