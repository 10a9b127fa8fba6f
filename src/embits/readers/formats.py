"""The table of formats: how each one is recognized and opened. A format is registered here only."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass

from embits._lazy import LazyProperty
from embits.errors import InputError
from embits.readers import source as magic
from embits.readers.arrays import is_safetensors, open_npy, open_npz, open_safetensors
from embits.readers.blocks import Blocks
from embits.readers.fasttext_binary import FastTextBlocks
from embits.readers.json_file import JsonBlocks, is_json
from embits.readers.parquet import ParquetBlocks
from embits.readers.several import SeveralBlocks
from embits.readers.source import Source, Stream
from embits.readers.text import TextBlocks, Word2VecBlocks, is_word2vec_binary

_HEAD_BYTES = 1 << 16


class Head:
    """The first bytes of a file of a kind that may hold vectors."""

    def __init__(self, source: Source) -> None:
        self.source = source
        source.check_regular()
        with source.path.open("rb") as file:
            self.raw = self._checked(file.read(_HEAD_BYTES))

    @LazyProperty
    def text(self) -> bytes:
        """The first bytes of the unpacked content, without a byte-order mark."""
        with Stream(self.source) as stream:
            content = self._checked(stream.peek(_HEAD_BYTES), " inside")
        return content.removeprefix(magic.BYTE_ORDER_MARK)

    def _checked(self, head: bytes, where: str = "") -> bytes:
        other = magic.known_other(head) if head else f"an empty file{where}"
        if other is not None:
            raise self.source.read_error(other, "vectors")
        return head


@dataclass(frozen=True)
class Format:
    name: str
    recognizes: Callable[[Head], bool]
    open: Callable[[Source], Blocks]
    is_streamed: bool = True  # whether `open` leaves rows on disk, to be read in blocks
    has_words: bool = False  # whether a file always holds its own words: others are refused


def recognize(source: Source) -> Format:
    """The format of a file, by its first bytes; options that it cannot have are refused."""
    if source.files:
        return SEVERAL
    head = Head(source)
    for form in FORMATS:
        if form.recognizes(head):
            if form.has_words and source.words is not None:
                raise InputError(f"{source.name} holds its own words, expected no `words`")
            if form.name != "Parquet" and (source.column or (source.ids and not source.words)):
                raise InputError(f"{source.name} is no Parquet table: it has no columns to name")
            return form
    where = f"byte {head.text.index(0)}"
    raise source.read_error("binary data of an unknown kind", "vectors", where)


def _holds_arrays(head: Head) -> bool:
    """Whether a .zip holds nothing but arrays of NumPy: a .npz."""
    if not head.raw.startswith(magic.ZIP):
        return False
    try:
        with zipfile.ZipFile(head.source.path) as archive:
            names = archive.namelist()
    except magic.DAMAGED_ARCHIVE as error:
        raise head.source.read_error(f"a damaged archive ({error})", "a whole file") from error
    return bool(names) and all(name.endswith(".npy") for name in names)


def _open_several(source: Source) -> Blocks:
    return SeveralBlocks(source, lambda one: recognize(one).open(one))


SEVERAL = Format("several files", lambda _: False, _open_several)

# The first that recognizes a file reads it: text, which has no magic bytes, comes last.
FORMATS = (
    Format("npy", lambda head: head.raw.startswith(magic.NPY), open_npy),
    Format("npz", _holds_arrays, open_npz, is_streamed=False),
    Format("Parquet", lambda head: head.raw.startswith(magic.PARQUET), ParquetBlocks),
    Format("safetensors", lambda head: is_safetensors(head.raw, head.source.size),
           open_safetensors),
    Format("fastText binary", lambda head: head.raw.startswith(magic.FASTTEXT), FastTextBlocks,
           is_streamed=False, has_words=True),
    Format("word2vec binary", lambda head: is_word2vec_binary(head.text), Word2VecBlocks,
           has_words=True),
    Format("JSON", lambda head: is_json(head.text), JsonBlocks, is_streamed=False, has_words=True),
    Format("text", lambda head: b"\0" not in head.text, TextBlocks, has_words=True),
)  # fmt: skip
