"""The identity of a job: whether it is the one that was interrupted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from embits.coders import Coder
from embits.coders.identity import coder_checksum
from embits.readers.source import Words

_EDGE_BYTES = 1 << 16


def file_identity(path: Path) -> dict[str, Any]:
    """A file's path, size and time of change, and a checksum of its first and last bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        digest.update(file.read(_EDGE_BYTES))
        file.seek(max(0, status.st_size - _EDGE_BYTES))
        digest.update(file.read(_EDGE_BYTES))
    return {
        "path": str(path.resolve()),
        "size": status.st_size,
        "changed": status.st_mtime_ns,
        "edges": digest.hexdigest(),
    }


def words_identity(words: Words | None) -> Any:
    """The same for a file of words; for a sequence of words, its checksum."""
    if words is None:
        return None
    if isinstance(words, str | os.PathLike):
        return file_identity(Path(words))
    digest = hashlib.sha256()
    for word in words:
        digest.update(str(word).encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()


def coder_identity(coder: Coder) -> list[Any]:
    """A fitted coder's method, parameters, and the checksum of what it has learned."""
    return [coder.method, repr(sorted(coder.get_params().items())), coder_checksum(coder)]
