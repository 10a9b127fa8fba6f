"""The description that an export stores beside the codes, as JSON.

It marks a table as one that embits wrote, names the coder, and holds a checksum of the rows, so
that a later export does not replace rows that were changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.binary_vectors import BinaryVectors
from embits.coders.identity import coder_checksum
from embits.errors import InputError
from embits.ids.vocabulary import Vocabulary

_BLOCK_ROWS = 1 << 16


@dataclasses.dataclass(frozen=True)
class Description:
    """What codes in a database are.

    Attributes:
        embits: The version that wrote them.
        rows: The number of rows that were written.
        bits: Bits of a code.
        dims: Dimensions of the vectors.
        method: The coder's method.
        coder: The coder's checksum.
        words: Whether the rows have ids of their own.
        digest: The checksum of the rows as they were written.
        index: The kind of index, "none" if there is none.
    """

    embits: str
    rows: int
    bits: int
    dims: int
    method: str
    coder: str
    words: bool
    digest: str
    index: str = "none"

    @classmethod
    def of(cls, bits: BinaryVectors, index: str = "none") -> Self:
        """Describe codes that are about to be written."""
        words = bits.words if isinstance(bits.words, Vocabulary) else None
        return cls(
            embits=__version__,
            rows=len(bits),
            bits=bits.n_bits,
            dims=bits.dims,
            method=bits.coder.method,
            coder=coder_checksum(bits.coder),
            words=words is not None,
            digest=rows_digest(bits.codes, words),
            index=index,
        )

    @classmethod
    def parse(cls, text: str | bytes | None) -> Self | None:
        """Return what `to_json` wrote, or None if it is anything else."""
        with contextlib.suppress(ValueError, TypeError):
            found = cls(**json.loads(text or ""))
            kinds = {field.name: type(getattr(found, field.name)).__name__ for field in _FIELDS}
            if kinds == {field.name: field.type for field in _FIELDS} and found.bits > 0:
                return found
        return None

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(dataclasses.asdict(self))


_FIELDS = dataclasses.fields(Description)


def rows_digest(codes: NDArray[np.uint8], words: Sequence[str] | None) -> str:
    """A checksum of all codes and ids in row order."""
    digest = hashlib.blake2b(digest_size=16)
    for start in range(0, len(codes), _BLOCK_ROWS):
        digest.update(np.ascontiguousarray(codes[start : start + _BLOCK_ROWS]).tobytes())
        if words is not None:
            digest.update(b"".join(_framed(words[start : start + _BLOCK_ROWS])))
    return digest.hexdigest()


def _framed(words: Sequence[str]) -> Iterator[bytes]:
    for word in words:
        text = word.encode()
        yield len(text).to_bytes(8, "little") + text


def check_ours(found: Description | None, place: str) -> Description:
    """Return a description that is there.

    Raises:
        InputError: It is not one that embits wrote.
    """
    if found is None:
        raise InputError(f"{place} is not one that embits wrote; choose another name")
    return found


def check_unchanged(found: Description, rows: Any, place: str) -> None:
    """Check that the rows of a table are those that the last export wrote.

    Args:
        found: The table's description.
        rows: What is in the table now, as `tables.Rows`.
        place: The table, for the message.

    Raises:
        InputError: Rows were added, removed or changed.
    """
    same = np.array_equal(rows.numbers, np.arange(found.rows))
    if not same or rows_digest(rows.codes, rows.words) != found.digest:
        raise InputError(
            f"rows of {place} were changed since embits wrote it; choose another name, or drop "
            "it first if its rows may be lost"
        )
