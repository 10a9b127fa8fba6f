"""Codes into FAISS's binary indexes and back, bit for bit.

FAISS packs bits as embits does, first bit highest, and wants widths in whole bytes: other
widths go with the padding bits of their last byte, which are zero and change no distance.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks
from embits.binary_vectors import BinaryVectors
from embits.bits import has_padding_bits
from embits.coders import Coder
from embits.errors import InputError, MissingExtraError, ReadError
from embits.file.atomic import atomic_write
from embits.integrations import Facts
from embits.integrations.words_sidecar import read_words_beside, write_words_beside
from embits.search.arguments import packed_codes
from embits.words.vocabulary import RowNumbers, Vocabulary

ROWS_AT_ONCE = 1 << 15
TRAINING_ROWS_A_LIST = 64  # FAISS asks for 39 at least, and takes 256 at most
_SETTINGS: dict[str, tuple[str, ...]] = {
    "flat": (),
    "ivf": ("nlist", "nprobe"),
    "hnsw": ("M", "efConstruction", "efSearch"),
}
_LEAST = {"M": 2}
_MOST_IN_A_GRAPH = 2**31 - 1  # HNSW's links are int32


def to_faiss(
    bits: BinaryVectors | NDArray[np.uint8],
    kind: str = "flat",
    *,
    progress: Progress | None = None,
    seed: int = 0,
    **settings: int,
) -> Any:
    """A FAISS index of the codes, in memory, in row order.

    Args:
        bits: BinaryVectors, or packed codes of shape (n, width).
        kind: "flat" (`IndexBinaryFlat`, exact), "ivf" (`IndexBinaryIVF`: codes in lists around
            centers, of which a query visits some) or "hnsw" (`IndexBinaryHNSW`: a graph).
        progress: Called with (rows done, rows) as they are added.
        seed: Which rows the centers of "ivf" are learned from.
        settings: By FAISS's names: for "ivf" `nlist` (√n) and `nprobe` (an eighth of the
            lists); for "hnsw" `M` (32), `efConstruction` (40) and `efSearch` (128).

    Returns:
        An `IndexBinary` of width 8 ceil(n_bits / 8), whose ids are the rows.

    Raises:
        InputError: There is no such kind, or a setting is unknown or out of range.
        MissingExtraError: FAISS is not installed.

    Example:
        >>> import numpy as np, embits
        >>> from embits.integrations.faiss import codes_from_faiss, to_faiss
        >>> bits = embits.binarize(np.eye(20), n_bits=100, method="lsh")
        >>> index = to_faiss(bits)
        >>> index.ntotal, index.d, bool((codes_from_faiss(index) == bits.codes).all())
        (20, 104, True)
    """
    faiss = _faiss()
    codes = bits.codes if isinstance(bits, BinaryVectors) else packed_codes(bits)
    _check(kind, settings, len(codes))
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


def codes_from_faiss(index: Any) -> NDArray[np.uint8]:
    """The packed codes in a FAISS index, uint8 of shape (n, width), in the order of their ids.

    Args:
        index: An `IndexBinaryFlat`, `IndexBinaryIVF` or `IndexBinaryHNSW`, or the path of a file
            of one. FAISS reads such a file, not embits: take one from a stranger with care.

    Raises:
        InputError: Another kind of index, or ids that are not the rows 0 to n - 1.
        ReadError: FAISS cannot read the file.
        MissingExtraError: FAISS is not installed.
    """
    faiss = _faiss()
    # What is passed on looks into `opened`, which must live as long: C++ frees it with its name.
    opened = _read(faiss, Path(index)) if isinstance(index, str | os.PathLike) else index
    if not isinstance(opened, faiss.IndexBinary):
        raise _not_read_back(opened)
    kind = faiss.downcast_IndexBinary(opened)
    if isinstance(kind, faiss.IndexBinaryHNSW):
        kind = faiss.downcast_IndexBinary(kind.storage)
    if isinstance(kind, faiss.IndexBinaryFlat):
        flat: NDArray[np.uint8] = faiss.vector_to_array(kind.xb)
        return flat.reshape(kind.ntotal, kind.code_size)
    if isinstance(kind, faiss.IndexBinaryIVF):
        return _codes_in_lists(faiss, kind)
    raise _not_read_back(kind)


def from_faiss(index: Any, coder: Coder, words: Iterable[str] | None = None) -> BinaryVectors:
    """BinaryVectors out of a FAISS index: its codes, and the coder that made them.

    Args:
        index: What `codes_from_faiss` takes.
        coder: The fitted coder, such as that of the file which was exported.
        words: The words in row order; None takes the `.words` beside a file, if there is one.

    Raises:
        InputError: The codes are not of the coder's width, or the words are not as many.
        ReadError: FAISS cannot read the file.
    """
    codes = coder.check_codes(codes_from_faiss(index))
    if has_padding_bits(codes, coder.n_bits_):
        raise InputError(f"the index holds codes of more than the coder's {coder.n_bits_} bits")
    if words is None and isinstance(index, str | os.PathLike):
        words = read_words_beside(Path(index))
    names = RowNumbers(len(codes)) if words is None else Vocabulary.from_words(words)
    return BinaryVectors(names, codes, coder)


def export(
    bits: BinaryVectors,
    target: str,
    *,
    progress: Progress | None = None,
    kind: str = "flat",
    nlist: int | None = None,
    nprobe: int | None = None,
    M: int | None = None,
    efConstruction: int | None = None,
    efSearch: int | None = None,
    seed: int = 0,
) -> Facts:
    """Write a FAISS index of the codes, whole or not at all, and their words beside it.

    Args:
        bits: What to write.
        target: The file; words go to a `.words` file of the same name, one a line.
        progress: Called with (rows done, rows) as they are added.
        kind: As `to_faiss` takes it; the settings and the seed too.
    """
    given = {"nlist": nlist, "nprobe": nprobe, "M": M, "efConstruction": efConstruction,
             "efSearch": efSearch}  # fmt: skip
    settings = {name: value for name, value in given.items() if value is not None}
    index = to_faiss(bits, kind, progress=progress, seed=seed, **settings)
    faiss, path = _faiss(), Path(target)
    with atomic_write(path) as file:
        faiss.write_index_binary(index, faiss.PyCallbackIOWriter(file.write, 1 << 20))
        write_words_beside(path, bits.words)
    used = {"nlist": index.nlist, "nprobe": index.nprobe} if kind == "ivf" else {}
    return {"kind": kind, **used, **settings, "bytes": path.stat().st_size}


def _check(kind: str, settings: dict[str, int], n: int) -> None:
    if kind not in _SETTINGS:
        raise InputError(f"there is no kind {kind!r} of index; there are {', '.join(_SETTINGS)}")
    if unknown := sorted(set(settings) - set(_SETTINGS[kind])):
        known = ", ".join(_SETTINGS[kind]) or "no settings"
        raise InputError(f"an index of kind {kind!r} takes {known}, not {', '.join(unknown)}")
    for name, value in settings.items():
        least = _LEAST.get(name, 1)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or not least <= value < 2**31:
            raise InputError(f"{name} is {value!r}, expected a whole number of {least} or more")
    if kind == "ivf" and n == 0:
        raise InputError("an index of kind 'ivf' needs codes to learn its lists from")
    if kind == "hnsw" and n > _MOST_IN_A_GRAPH:
        raise InputError(f"an index of kind 'hnsw' holds {_MOST_IN_A_GRAPH} codes at most, not {n}")


def _trained_lists(
    faiss: Any,
    codes: NDArray[np.uint8],
    seed: int,
    nlist: int | None = None,
    nprobe: int | None = None,
) -> Any:
    """An empty `IndexBinaryIVF` with its centers."""
    n, width = len(codes), 8 * codes.shape[1]
    nlist = math.isqrt(n) if nlist is None else int(nlist)
    if nlist > n:
        raise InputError(f"nlist is {nlist}, expected no more lists than there are codes ({n})")
    nprobe = -(-nlist // 8) if nprobe is None else int(nprobe)
    if nprobe > nlist:
        raise InputError(f"nprobe is {nprobe}, expected no more than there are lists ({nlist})")
    index = faiss.IndexBinaryIVF(faiss.IndexBinaryFlat(width), width, nlist)
    index.nprobe = nprobe
    index.cp.min_points_per_centroid = 1  # or FAISS writes a warning for small numbers of codes
    size = min(n, TRAINING_ROWS_A_LIST * nlist)
    sample = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    index.train(np.ascontiguousarray(codes[sample]))
    return index


def _codes_in_lists(faiss: Any, index: Any) -> NDArray[np.uint8]:
    codes = np.empty((index.ntotal, index.code_size), dtype=np.uint8)
    seen = np.zeros(index.ntotal, dtype=bool)
    for number in range(index.nlist):
        size = index.invlists.list_size(number)
        if size == 0:
            continue
        rows = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
        if rows.min() < 0 or rows.max() >= len(codes):
            raise InputError(f"the index has ids beyond its {len(codes)} codes: they are no rows")
        packed = faiss.rev_swig_ptr(index.invlists.get_codes(number), size * index.code_size)
        codes[rows] = packed.reshape(size, index.code_size)
        seen[rows] = True
    if not seen.all():
        raise InputError(f"the index has no code of id {int(seen.argmin())}: its ids are no rows")
    return codes


def _not_read_back(index: Any) -> InputError:
    return InputError(
        "codes are read back from IndexBinaryFlat, IndexBinaryIVF and IndexBinaryHNSW, "
        f"not from {type(index).__name__}"
    )


def _read(faiss: Any, path: Path) -> Any:
    if not path.is_file():
        raise ReadError(f"{path}: found no such file, expected a FAISS index")
    try:
        return faiss.read_index_binary(str(path))
    except (RuntimeError, MemoryError) as error:  # FAISS's message names its own source first
        reason = " ".join(str(error).split()).rpartition("Error: ")[2]
        raise ReadError(f"{path}: FAISS cannot read it as a binary index: {reason}") from None


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtraError("FAISS indexes", "faiss") from None
    return faiss
