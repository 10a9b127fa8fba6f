"""The table of formats: each is recognized from content, and read in blocks as it is read whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embits import binarize_to_file, load
from embits.errors import ReadError
from embits.readers import blocks, formats, new_source, open_blocks, read_vectors, source
from embits.readers.blocks import Block, Blocks, Position
from embits.readers.formats import FORMATS, Format, Head, recognize
from embits.readers.source import Source
from embits.vectors import WordVectors
from tests.support import reader_corpus as corpus

NAMES = {
    "text": "text",
    "word2vec": "word2vec binary",
    "fasttext": "fastText binary",
    "npy": "npy",
    "npz": "npz",
    "safetensors": "safetensors",
    "json": "JSON",
    "parquet": "Parquet",
    "archives": "text",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors"  # the name does not tell the format


@pytest.mark.parametrize("name", NAMES)
def test_reading_in_blocks_gives_the_rows_of_reading_whole(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in corpus.FORMATS[name]:
        path.write_bytes(content)
        assert recognize(Source(path)).name == NAMES[name]
        whole = read_vectors(path)
        for chunk in (1, 7, 64):
            with monkeypatch.context() as patched:
                patched.setattr(source, "CHUNK_BYTES", chunk)
                patched.setattr(blocks, "BLOCK_BYTES", chunk)
                _check_blocks(path, whole)


def _check_blocks(path: Path, whole: WordVectors) -> None:
    for limit in (None, 3):
        opened = recognize(Source(path)).open(Source(path, limit))
        parts = list(opened.read(opened.first, words=opened.has_words))
        np.testing.assert_array_equal(
            np.concatenate([part.matrix for part in parts]), whole.matrix[:limit]
        )
        for part in parts:  # reading resumes at any block
            rest = list(opened.read(part.start, words=opened.has_words))
            np.testing.assert_array_equal(
                np.concatenate([part.matrix for part in rest]),
                whole.matrix[part.start.rows : limit],
            )
            assert rest[-1].end.rows == parts[-1].end.rows
        if opened.has_words:
            assert whole.words is not None
            assert [word for part in parts for word in part.words or ()] == whole.words[:limit]


def test_only_formats_that_are_streamed_are_opened_in_blocks(path: Path) -> None:
    for form in FORMATS:
        name = next(key for key, value in NAMES.items() if value == form.name)
        path.write_bytes(corpus.FORMATS[name][0])
        assert (open_blocks(new_source(path)) is not None) == form.is_streamed


# -- a format of one's own -------------------------------------------------------------------------


class _PairBlocks(Blocks):
    """`word=x;y` lines after the line `%pairs`."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, dims=2, first=Position(offset=1, place=2))

    def read(self, start: Position, *, words: bool = False) -> Iterator[Block]:
        for line in self.source.path.read_text().splitlines()[start.offset :]:
            word, _, numbers = line.partition("=")
            if numbers.count(";") != 1:
                raise self.source.read_error(repr(numbers), "two numbers", f"line {start.place}")
            row = np.array([numbers.split(";")], np.float32)
            end = Position(start.offset + 1, start.place + 1, start.rows + 1)
            yield Block(start, end, row, [word] if words else None, np.array([start.place]))
            start = end


def _is_pairs(head: Head) -> bool:
    return head.text.startswith(b"%pairs")


def test_a_format_is_added_by_one_line_of_the_table(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = Format("pairs", _is_pairs, _PairBlocks, has_words=True)
    monkeypatch.setattr(formats, "FORMATS", (pairs, *FORMATS))
    path.write_text("%pairs\nup=1;-1\ndown=-1;0.5\nup=3;3\n")
    with pytest.warns(UserWarning, match="1 repeated word left out, the first at row 4"):
        vectors = read_vectors(path)
    assert vectors.words == ["up", "down"]
    np.testing.assert_array_equal(vectors.matrix, [[1, -1], [-1, 0.5]])
    monkeypatch.setattr("embits.jobs.stream.STREAM_FROM", -1)
    with pytest.warns(UserWarning, match="1 repeated word left out, the first at row 4"):
        binarize_to_file(path, path.with_suffix(".bits"), n_bits=64, method="lsh")
    assert list(load(path.with_suffix(".bits")).words) == ["up", "down"]
    path.write_text("%pairs\nup=1\n")
    with pytest.raises(ReadError, match="line 2: found '1', expected two numbers"):
        read_vectors(path)
