"""Codes to FAISS's binary indexes and back, bit for bit.

FAISS packs bits as embits does, first bit highest, padded to bytes. A FAISS file has no place for a
description: `export` writes the coder's checksum after the index, where FAISS does not read.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryRows
from embits.checks import choice, packed_codes, whole
from embits.coders import Coder, coder_checksum
from embits.errors import InputError, MissingFileError, ReadError
from embits.integrations import Facts, package
from embits.integrations.files import atomic_with_words
from embits.integrations.table import check_coder, from_codes, to_export
from embits.readers.words import words_beside

ROWS_AT_ONCE = 1 << 15
TRAINING_ROWS_PER_LIST = 64  # FAISS needs 39 or more, and uses 256 or fewer
_SETTINGS: dict[str, tuple[str, ...]] = {
    "flat": (),
    "ivf": ("nlist", "nprobe"),
    "hnsw": ("M", "efConstruction", "efSearch"),
}
_MARK = b"\nembits coder "  # before the coder's checksum, at the end of a file
_CHECKSUM_BYTES = 32
_MAX_INT = 2**31 - 1


def to_faiss(
    bits: BinaryRows | NDArray[np.uint8], kind: str = "flat", *,
    progress: Progress | None = None, seed: int = 0, **settings: int,
) -> Any:  # fmt: skip
    """Build an `IndexBinary` of width 8 ceil(n_bits / 8) in memory; its ids are the row numbers.

    Args:
        bits: BinaryRows, or packed codes of shape (n, width).
        kind: "flat" (`IndexBinaryFlat`, exact), "ivf" (`IndexBinaryIVF`, inverted lists) or "hnsw"
            (`IndexBinaryHNSW`, a graph).
        progress: Called with (rows done, rows) as they are added.
        seed: Draws the rows that the centers of "ivf" are trained on.
        settings: FAISS's own names: for "ivf" `nlist` (√n) and `nprobe` (an eighth of the
            lists); for "hnsw" `M` (32), `efConstruction` (40) and `efSearch` (128).

    Raises:
        InputError: There is no such kind, or a setting is unknown or out of range.

    Example:
        >>> import numpy as np, embits
        >>> from embits.integrations.faiss import from_faiss, to_faiss
        >>> bits = embits.binarize(np.eye(20), n_bits=100, method="lsh")
        >>> index = to_faiss(bits)
        >>> index.ntotal, index.d, bool((from_faiss(index, bits.coder).codes == bits.codes).all())
        (20, 104, True)
    """
    faiss = package("faiss", "FAISS indexes", "faiss")
    codes = np.asarray(bits.codes) if isinstance(bits, BinaryRows) else packed_codes(bits)
    known = _SETTINGS[choice("kind", kind, _SETTINGS)]
    if unknown := sorted(set(settings) - set(known)):
        takes = ", ".join(known) or "no settings"
        raise InputError(f"an index of kind {kind!r} takes {takes}, not {', '.join(unknown)}")
    for name, value in settings.items():
        whole(name, value, 2 if name == "M" else 1, _MAX_INT)
    width = 8 * codes.shape[1]
    if kind == "flat":
        index = faiss.IndexBinaryFlat(width)
    elif kind == "ivf":
        index = _trained_lists(faiss, codes, seed, **settings)
    else:
        index = faiss.IndexBinaryHNSW(width, settings.get("M", 32))
        index.hnsw.efConstruction = settings.get("efConstruction", 40)
        index.hnsw.efSearch = settings.get("efSearch", 128)
    for rows in blocks(len(codes), ROWS_AT_ONCE):
        index.add(np.ascontiguousarray(codes[rows]))
        if progress is not None:
            progress(rows.stop, len(codes))
    return index


def from_faiss(index: Any, coder: Coder, ids: Any = None) -> BinaryRows:
    """Read the codes of a FAISS index, in the order of its ids.

    Args:
        index: An `IndexBinaryFlat`, `IndexBinaryIVF` or `IndexBinaryHNSW`, or the path of a file
            of one. FAISS itself reads the file: only open files that you trust.
        coder: The fitted coder that made the codes: `embits.load(file).coder` of the exported
            file, or `embits.integrations.sentence_transformers.sign_coder(dims)` for signs. Only
            a file that `export` wrote names its coder, which is checked.
        ids: Ids of the rows; None reads the `.words` file of a file of that name, or numbers them.

    Raises:
        InputError: The index is of another kind, its ids are not the rows 0 to n - 1, or its codes
            do not have the coder's width; or another coder made the codes of the file.
        ReadError: FAISS cannot read the file.
    """
    faiss = package("faiss", "FAISS indexes", "faiss")
    if isinstance(index, str | os.PathLike):
        path = Path(index)
        if not path.is_file():
            raise MissingFileError(path)
        try:
            index = faiss.read_index_binary(str(path))
        except (RuntimeError, MemoryError) as error:  # FAISS's message starts with its source file
            reason = " ".join(str(error).split()).rpartition("Error: ")[2]
            raise ReadError(f"{path}: FAISS cannot read it as a binary index: {reason}") from None
        check_coder(coder, coder.n_bits_, _stored_checksum(path), str(path))
        ids = words_beside(path) if ids is None else ids
    if not isinstance(index, faiss.IndexBinary):
        raise InputError(f"{type(index).__name__} is not a binary index of FAISS")
    held = faiss.downcast_IndexBinary(index)  # a view: `index` must outlive it
    if isinstance(held, faiss.IndexBinaryHNSW):
        held = faiss.downcast_IndexBinary(held.storage)
    if isinstance(held, faiss.IndexBinaryFlat):
        codes = faiss.vector_to_array(held.xb).reshape(held.ntotal, held.code_size)
        return from_codes(codes, coder, ids)
    if isinstance(held, faiss.IndexBinaryIVF):
        return from_codes(_codes_in_lists(faiss, held), coder, ids)
    raise InputError(f"codes are read from flat, IVF and HNSW, not from {type(held).__name__}")


def export(
    bits: BinaryRows, target: str, *, progress: Progress | None = None, kind: str = "flat",
    seed: int = 0, overwrite: bool = False, **settings: int,
) -> Facts:  # fmt: skip
    """Write a FAISS index of the codes: see `integrations.export`, and `to_faiss` for the options.

    The words go to a `.words` file of the same name, one per line.
    """
    bits, faiss, path = to_export(bits), package("faiss", "FAISS indexes", "faiss"), Path(target)
    with atomic_with_words(path, bits, overwrite) as file:
        index = to_faiss(bits, kind, progress=progress, seed=seed, **settings)
        faiss.write_index_binary(index, faiss.PyCallbackIOWriter(file.write, 1 << 20))
        file.write(_MARK + coder_checksum(bits.coder).encode())
    used = {"nlist": index.nlist, "nprobe": index.nprobe} if kind == "ivf" else {}
    return {"kind": kind, **used, **settings, "bytes": path.stat().st_size}


def _trained_lists(
    faiss: Any, codes: NDArray[np.uint8], seed: int, nlist: Any = None, nprobe: Any = None
) -> Any:
    n, width = len(codes), 8 * codes.shape[1]
    if not n:
        raise InputError("an index of kind 'ivf' needs codes to train its lists on")
    nlist = math.isqrt(n) if nlist is None else whole("nlist", nlist, 1, n)
    index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(width), width, nlist)
    index.nprobe = -(-nlist // 8) if nprobe is None else whole("nprobe", nprobe, 1, nlist)
    index.cp.min_points_per_centroid = 1  # no warning for few codes
    size = min(n, TRAINING_ROWS_PER_LIST * nlist)
    sample = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    index.train(np.ascontiguousarray(codes[sample]))
    return index


def _codes_in_lists(faiss: Any, index: Any) -> NDArray[np.uint8]:
    codes = np.empty((index.ntotal, index.code_size), dtype=np.uint8)
    seen = np.zeros(index.ntotal, dtype=bool)
    for number in range(index.nlist):
        if not (size := index.invlists.list_size(number)):
            continue
        rows = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
        if rows.min() < 0 or rows.max() >= len(codes):
            raise InputError(f"the index has ids beyond its {len(codes)} codes, not row numbers")
        packed = faiss.rev_swig_ptr(index.invlists.get_codes(number), size * index.code_size)
        codes[rows] = packed.reshape(size, index.code_size)
        seen[rows] = True
    if not seen.all():
        raise InputError(f"no code has the id {int(seen.argmin())}: the ids are not row numbers")
    return codes


def _stored_checksum(path: Path) -> str | None:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_MARK) - _CHECKSUM_BYTES))
        mark, _, checksum = file.read().rpartition(_MARK)
    is_ours = not mark and len(checksum) == _CHECKSUM_BYTES and checksum.isalnum()
    return checksum.decode() if is_ours else None
