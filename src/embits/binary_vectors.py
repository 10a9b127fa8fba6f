"""BinaryVectors: the ids of rows, their codes, and the coder that made them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from pathlib import Path
from reprlib import repr as shortened
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from embits.checks import wanted_threads
from embits.coders import Coder, coder_checksum
from embits.errors import InputError, SizeWarning, warn_caller
from embits.file import store
from embits.file.contents import ByteCounts, byte_counts, to_contents
from embits.file.overwrite import check_target
from embits.ids.keys import Ids, RowNumbers
from embits.ids.subwords import Subwords
from embits.ids.vocabulary import Vocabulary
from embits.pretrained import Pretrained
from embits.search.cells import RECALLS, wanted_cells
from embits.search.plan import Machine
from embits.search.results import ids_of
from embits.searchable import MetricName as MetricName
from embits.searchable import Searchable
from embits.segment import (
    LENGTHS,
    Lengths,
    Segment,
    check_parts,
    concat_columns,
    slim_segment,
)
from embits.snapshot import Snapshot, calibrated, in_new_cells
from embits.vectors import WordVectors, is_id, normalize_ids


class BinaryRows(Searchable, Pretrained):
    """Copies of rows, and files of them; of files and of collections."""

    def on(self, device: str = "cpu", threads: int | None = None) -> BinaryVectors:
        """The same rows, searched elsewhere.

        Args:
            device: A GPU such as "cuda" (the extra `gpu`) searches by Hamming distance there, and
                gives the same rows; scores order the best of these. The first search copies the
                codes to the GPU, where they stay.
            threads: The most threads of a search; None uses every core.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(8), n_bits=64, method="lsh")
            >>> bits.on(threads=1).search(np.eye(8)[3], k=1).rows.tolist()
            [3]
        """
        wanted_threads(threads)
        bits = BinaryVectors.of(self.current)
        bits.machine = Machine(device, threads)
        return bits

    def get(
        self, ids: Any = None, columns: Iterable[str] | None = None, *, rows: Any = None
    ) -> dict[str, list[Any]]:
        """The values of columns for some rows: a list by the name of each column.

        Args:
            ids: Ids in any order, or a mask of n flags; `rows` are row numbers instead.
            columns: The names of columns; None is all of them. Missing values are None.

        Raises:
            UnknownWordError: There is no such id.
            InputError: There is no such column.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> bits.columns = {"year": np.array([2020, 2021, 2022])}
            >>> bits.get(["c", "a"], columns=["year"])
            {'year': [2022, 2020]}
        """
        now = self.current
        chosen = now.rows_of([ids] if is_id(ids) else ids, rows, "get")
        if isinstance(columns, str):
            raise InputError(f"columns is the single string {columns!r}, expected a list of names")
        names = now.columns.kinds if columns is None else columns
        return {name: now.column_values(name, chosen).tolist() for name in names}

    def to_arrow(self) -> Any:
        """The ids and columns of all rows as an Arrow table; needs pyarrow.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(2), n_bits=64, method="lsh", ids=["a", "b"])
            >>> bits.columns = {"year": np.array([2020, 2021])}
            >>> bits.to_arrow().to_pylist()
            [{'id': 'a', 'year': 2020}, {'id': 'b', 'year': 2021}]
        """
        now = self.current
        return now.columns.table(ids_of(np.arange(len(now)), now.ids))

    def check_undamaged(self) -> None:
        """Check a mapped file before its rows are copied: FormatError if it is damaged."""
        self.current.check_undamaged()

    @property
    def nbytes(self) -> int:
        """Bytes of a file of these rows, without its header of about 2 KB."""
        return self.byte_counts().total

    def byte_counts(self) -> ByteCounts:
        """Bytes of the codes, ids, order of the ids, coder, subwords and columns in a file.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(100), n_bits=64, method="lsh")
            >>> bits.byte_counts().codes, bits.byte_counts().words
            (800, 0)
        """
        return byte_counts(self.current)

    def subset(self, which: Any = None, *, rows: Any = None) -> BinaryVectors:
        """Some of the rows, copied into memory.

        Args:
            which: Ids, each once, in the order to be kept; or a mask of n flags. Rows without ids
                keep their numbers as ids.
            rows: Row numbers, instead of `which`.

        Raises:
            UnknownWordError: There is no such id.
            InputError: There is no such row, a row is given twice, or the mask is not of n flags.

        Example:
            >>> import numpy as np, embits
            >>> bits = embits.binarize(np.eye(3), n_bits=64, method="lsh", ids=["a", "b", "c"])
            >>> list(bits.subset(["c", "a"]).words), list(bits.subset(rows=[1]).words)
            (['c', 'a'], ['b'])
        """
        now = self.current
        now.check_undamaged()
        return BinaryVectors.of(
            Snapshot.of(now.coder, now.take(now.rows_of(which, rows)), now.subwords)
        )

    def slim(
        self, without: Iterable[str] = ("coder", "subwords"), *, half_decoder: bool = False
    ) -> BinaryVectors:
        """Leave out what a device does not need, for a smaller file.

        Asking for what was left out raises InputError or UnknownWordError.

        Args:
            without: "coder": no encoding, decoding, float queries and metric="decoded".
                "subwords": no codes of unknown words. "lengths": no inner products. "columns": no
                other values. "floats": no vectors that a collection keeps. "order": the rows are
                sorted by their words, and get other numbers.
            half_decoder: Keep the decoder in 16 bits.

        Raises:
            InputError: There is no such part, or no decoder to keep.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> slim = bits.slim(without=["coder", "order"])
            >>> slim.byte_counts().coder, slim.similarity("king", "king")
            (0, 1.0)
        """
        parts, now = check_parts(without), self.current
        now.check_undamaged()
        segment, coder = slim_segment(now.one_segment(), now.coder, parts, half_decoder)
        if now.subwords is None or "subwords" not in parts:
            return BinaryVectors.of(Snapshot.of(coder, segment, now.subwords))
        segment = replace(segment, ids=copy(segment.ids))
        segment.ids.lacks_subwords = True
        return BinaryVectors.of(Snapshot.of(coder, segment))

    def with_cells(self, cells: int | str = "auto", *, threads: int | None = None) -> BinaryVectors:
        """The same rows with cells, in memory, for searches with `recall` or `probes`.

        Rows keep their numbers. A thousand of them measure what searches read: see `calibrate`.

        Args:
            cells: How many; "auto" is 4 for each square root of the rows, but at most 5 % of the
                bytes of the codes.
            threads: None uses every core.

        Raises:
            InputError: There are more than 2^32 - 1 rows, or codes of more than 16,384 bits.

        Example:
            >>> import embits
            >>> bits = embits.binarize(embits.sample_vectors(), n_bits=64, method="lsh")
            >>> bits = bits.with_cells(20)
            >>> found = bits.search("music", k=5, recall=0.9)
            >>> found.ids[0], found.rows_read < len(bits)
            ('music', True)
        """
        now = self.current
        now.check_undamaged()
        segment, coder = now.one_segment(), now.coder
        segment = in_new_cells(
            segment, coder, wanted_cells(cells, len(segment), coder.n_bits_), threads
        )
        return BinaryVectors.of(Snapshot.of(coder, segment, now.subwords))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write one safetensors file, atomically.

        Args:
            path: The file. A file of codes is replaced.
            overwrite: Replace any other existing file as well.

        Raises:
            InputError: There is another file at `path`; or the coder is not registered.
            OSError: The file could not be written; a file that was there is unchanged.

        Warns:
            SizeWarning: Subwords are more than half of the file.
        """
        check_target(path, overwrite=overwrite, codes=True)
        now = self.current
        now.check_undamaged()
        segment = now.one_segment()
        store.write(Path(path), to_contents(segment, now.coder, now.subwords))
        if now.subwords is not None and 2 * (counts := byte_counts(now)).subwords > counts.total:
            share = f"{path}: subwords take {counts.subwords / counts.total:.0%} of the file"
            how = "bits.subwords = None, or --no-subwords on the command line"
            warn_caller(f"{share}; without them ({how}), unknown words have no codes", SizeWarning)

    def merged(self) -> BinaryVectors:
        """The same rows with all codes in one array in row order, and all ids in one vocabulary.

        Only the rows of a file without cells are not copied. FormatError: Something is damaged.
        """
        now = self.current
        now.check_undamaged()
        segment = now.one_segment()
        if segment.cells is not None:
            segment = replace(segment, codes=segment.codes_in_row_order, cells=None)
        return BinaryVectors.of(Snapshot.of(now.coder, segment, now.subwords))


class BinaryVectors(BinaryRows):
    """Packed codes, the ids of their rows, and the coder that made them.

    Made by `embits.binarize` or `embits.load`. Any number of threads may search one object. The
    attributes are the arguments; the lengths are among the columns.

    Args:
        words: The ids of the rows, each once: strings or whole numbers, which are kept as their
            digits; for word vectors, the words. None uses row numbers.
        codes: Packed codes, uint8 (n, ceil(n_bits / 8)), first bit highest. Those of a file are
            mapped, and read-only: `bits.codes.copy()` is writable.
        coder: The fitted coder.
        subwords: What makes codes of unknown words, if the fastText model had it.
        lengths: The lengths of the vectors, of shape (n,), rounded to a byte each; or None.
        columns: Other values of the rows by name: NumPy or Arrow arrays of n values. `subset` and
            `concat` carry them; files hold those of NumPy's unsigned integers and floats. Assign
            another mapping to change them.

    Raises:
        InputError: The ids are not as many as the codes, one appears twice, or the coder differs.

    Example:
        >>> import numpy as np, embits
        >>> X = np.eye(3)
        >>> coder = embits.RandomHyperplanes(n_bits=32).fit(X)
        >>> bits = embits.BinaryVectors(["doc-1", "doc-2", "doc-3"], coder.encode(X), coder)
        >>> bits.search("doc-2", k=1).ids.tolist()
        ['doc-2']
    """

    def __init__(
        self,
        words: Ids | Sequence[str] | Sequence[int] | NDArray[Any] | None,
        codes: NDArray[np.uint8],
        coder: Coder,
        subwords: Subwords | None = None,
        *,
        lengths: Lengths | Any = None,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(coder, Coder):
            raise InputError(f"coder is {shortened(coder)}, expected a fitted coder")
        codes = coder.check_codes(codes)
        if lengths is not None:
            lengths = lengths if isinstance(lengths, Lengths) else Lengths.of(lengths)
            columns = {**(columns or {}), LENGTHS: lengths}
        segment = Segment(_as_ids(words, len(codes)), codes, _columns_of(columns or {}, len(codes)))
        self._current = Snapshot.of(coder, segment, subwords)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """The rows of a snapshot."""
        bits = cls.__new__(cls)
        bits._current = snapshot
        return bits

    @classmethod
    def of_segment(cls, segment: Segment, coder: Coder, subwords: Subwords | None = None) -> Self:
        """All rows of a segment."""
        return cls.of(Snapshot.of(coder, segment, subwords))

    @classmethod
    def encoded(cls, vectors: WordVectors, coder: Coder, *, lengths: bool = False) -> Self:
        """The codes that a fitted coder gives these vectors, with their lengths if asked for."""
        codes = coder.encode(vectors.matrix)
        found = Lengths.of_vectors(vectors.matrix) if lengths else None
        return cls(vectors.words, codes, coder, vectors.subwords, lengths=found)

    @property
    def current(self) -> Snapshot:
        """The rows: never changed."""
        return self._current

    @property
    def columns(self) -> Mapping[str, Any]:
        """Other values of the rows by name, among them their lengths; may be assigned."""
        return MappingProxyType(dict(self._current.all_columns))

    @columns.setter
    def columns(self, columns: Mapping[str, Any]) -> None:
        segment = self._current.one_segment()
        segment = replace(segment, columns=_columns_of(columns, len(segment)))
        self._current = Snapshot.of(self.coder, segment, self.subwords)

    @property
    def subwords(self) -> Subwords | None:
        """What makes codes of unknown words, if the fastText model had it."""
        return self._current.subwords

    @subwords.setter
    def subwords(self, subwords: Subwords | None) -> None:
        self._current = replace(self._current, subwords=subwords)

    def calibrate(self, queries: Any, *, threads: int | None = None) -> NDArray[np.float32]:
        """Measure with your own queries, which may be harder than rows, what `recall` reads.

        `save` keeps what was measured.

        Args:
            queries: As in `search`; a few hundred. Vectors measure all metrics; codes and ids
                those that take codes.
            threads: None uses every core.

        Returns:
            For each recall the share of the rows that queries of codes read, float32 (17, 2).

        Raises:
            InputError: There are no cells, no queries, or the queries do not fit.
        """
        now = self.current
        array = np.atleast_2d(now.queries(queries))
        if not len(array):
            raise InputError("there are no queries to calibrate with: give a few hundred")
        centers = calibrated(now, array, threads)
        self._current = now.with_centers(centers)
        return centers.curve[: len(RECALLS), [0, 3]]


def concat(files: Iterable[BinaryVectors]) -> BinaryVectors:
    """The rows of several BinaryVectors, one after the other, in memory.

    Args:
        files: At least one, of the same coder. Rows without ids get new numbers. Subwords are those
            of the first.

    Raises:
        InputError: A coder differs, an id repeats, or only some files have ids or a column.

    Example:
        >>> import numpy as np, embits
        >>> bits = embits.binarize(np.eye(4), n_bits=64, method="lsh", ids=["a", "b", "c", "d"])
        >>> list(embits.concat([bits.subset(["d"]), bits.subset(["a", "b"])]).words)
        ['d', 'a', 'b']
    """
    parts = list(files)
    if not parts or not all(isinstance(part, BinaryRows) for part in parts):
        raise InputError("concat needs a list of at least one BinaryVectors")
    snapshots = [part.current for part in parts]
    first = snapshots[0]
    for now in snapshots:
        now.check_undamaged()
        check_same_coder(first.coder, now.coder)
    have_ids = {not isinstance(now.ids, RowNumbers) for now in snapshots}
    if len(have_ids) > 1:
        some = "some of the files have ids and others have none"
        raise InputError(f"{some}: all must have them, or none")
    codes = np.concatenate([now.codes.in_row_order() for now in snapshots])
    words = list(chain.from_iterable(now.ids for now in snapshots)) if True in have_ids else None
    columns = concat_columns([now.all_columns for now in snapshots])
    segment = Segment(_as_ids(words, len(codes)), codes, columns)
    return BinaryVectors.of(Snapshot.of(first.coder, segment, first.subwords))


def check_same_coder(ours: Coder, theirs: Coder) -> None:
    """Refuse a coder that gives other codes, by InputError."""
    if ours is theirs:
        return
    a, b = (
        f"{c.method}, {c.n_bits_} bits from {c.n_features_in_} dimensions" for c in (ours, theirs)
    )
    if a != b:
        raise InputError(f"the coders differ: {b}, expected {a}")
    if coder_checksum(ours) != coder_checksum(theirs):
        raise InputError(f"the coders differ: both are {a}, but they were fitted differently")


def _columns_of(columns: Mapping[str, Any], n: int) -> dict[str, Any]:
    for name, column in columns.items():
        if len(column) != n:
            raise InputError(f"{len(column)} {name} for {n} codes")
    return dict(columns)


def _as_ids(ids: Any, n: int) -> Ids:
    if ids is None:
        return RowNumbers(n)
    index: Ids = ids if isinstance(ids, Ids) else Vocabulary.from_words(normalize_ids(ids))
    if len(index) != n:
        raise InputError(f"{len(index)} ids for {n} codes")
    return index
