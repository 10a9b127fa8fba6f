"""Tables of codes in databases: what they hold, rows in and out, searches, and errors."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import Progress, blocks, check_padding, packed_width
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.bounded_json import parse_json
from embits.checks import packed_queries, whole
from embits.coders import Coder, coder_checksum
from embits.columns import arrow
from embits.errors import DatabaseError, EmbitsError, FormatError, InputError, UnknownWordError
from embits.file.overwrite import OVERWRITE
from embits.ids.vocabulary import Vocabulary

BLOCK_BYTES = 8 << 20  # of a block of rows: small enough for a message to a server
Query: TypeAlias = str | int | NDArray[Any]
Codes: TypeAlias = NDArray[np.uint8]
Text: TypeAlias = str | bytes | Mapping[str, Any] | None  # a description as it is stored

__all__ = ["Neighbor", "Table", "from_arrow"]


class Rows(NamedTuple):
    """Rows of a table, in the order of their numbers."""

    numbers: NDArray[np.int64]
    codes: Codes
    ids: list[str] | None


class Neighbor(NamedTuple):
    """A row that a search returns, and its Hamming distance to the query."""

    word: str
    distance: int
    row: int


@dataclasses.dataclass(frozen=True)
class Description:
    """What the codes of a table are: stored beside them, it marks the table as ours."""

    embits: str  # the version that wrote them
    rows: int
    bits: int
    dims: int
    method: str
    words: bool  # whether the rows have ids of their own
    coder: str | None = None  # its checksum; tables of early versions have none
    index: str = "none"

    @classmethod
    def of(cls, bits: BinaryRows, index: str = "none") -> Self:
        method, coder = bits.coder.method, coder_checksum(bits.coder)
        named = ids_of(bits) is not None
        return cls(__version__, len(bits), bits.n_bits, bits.dims, method, named, coder, index)

    @classmethod
    def parse(cls, text: Text) -> Self | None:
        """What `to_json` wrote, or its fields; None if it is anything else."""
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            facts = text if isinstance(text, Mapping) else parse_json(text or "")
            names = (field.name for field in dataclasses.fields(cls))
            read = cls(**{name: facts[name] for name in names if facts.get(name) is not None})
            if type(read.words) is bool and type(read.bits) is int and read.bits > 0:
                return read
        return None

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


class Table(abc.ABC):
    """A table of codes. A tool says how it is opened, and selects and searches rows."""

    unordered: float = 0  # a search of at most so many rows orders ties in any way
    max_k: int | None = None

    def __init__(self, place: str, text: Text) -> None:
        description = check_ours(place, text)
        if description is None:
            raise InputError(f"there is no {place.removeprefix('the ')}; `embits export` makes one")
        self.place, self.description = place, description
        self.fields = ["id", "word"] if description.words else ["id"]

    @classmethod
    @abc.abstractmethod
    def opened(cls, *args: Any, **options: Any) -> contextlib.AbstractContextManager[Table]:
        """The table at a place, or of a connection."""

    @abc.abstractmethod
    def rows(self, field: str | None = None, value: str | int = 0) -> Rows:
        """All rows, or those with this value in `id` or `word`."""

    @abc.abstractmethod
    def search(
        self, code: Codes, k: int, where: str | None, params: Sequence[Any]
    ) -> Iterable[Sequence[Any]]:
        """The k rows nearest to a code: the values of `fields`, and the distance."""

    @classmethod
    def nearest(
        cls, source: Any, query: Query, k: int = 10, *, where: str | None = None,
        params: Sequence[Any] = (), coder: Coder | None = None, **options: Any,
    ) -> list[Neighbor]:  # fmt: skip
        """Find the k nearest rows by Hamming distance, ties in row order.

        Args:
            source: A file or address, or an open connection, which is faster for many queries.
            query: A word or row number, which is left out; a packed code (uint8 of shape
                (width,)); or a float vector of shape (dims,).
            k: The number of neighbors; fewer come back if there are fewer rows.
            where: A condition in the tool's own language, run unchanged: pass untrusted values
                through `params`.
            params: The values of the placeholders in `where`.
            coder: The coder for a float vector: `embits.load(file).coder` of the exported file.
            options: The name of the table, and other options of the tool.

        Raises:
            UnknownWordError: The word is not in the table.
            InputError: There is no such table or row, or the query or the coder does not fit.
            DatabaseError: The tool reports an error, such as one in `where`.
        """
        with cls.opened(source, **options) as table:
            row, code = table._row_and_code(query, coder)
            k = min(whole("k", k, 0, cls.max_k), 2**62)
            wanted = k + (row is not None)
            size = wanted + 16 if table.unordered else wanted
            while wanted:  # until all rows of the last distance are there
                answer = [
                    Neighbor(str(each[-2]), int(each[-1]), each[0])
                    for each in table.search(code, size, where, params)
                ]
                answer.sort(key=lambda each: (each.distance, each.row))
                is_all = size > table.unordered or len(answer) < size
                if is_all or answer[-1].distance > answer[wanted - 1].distance:
                    return [each for each in answer if each.row != row][:k]
                size *= 4
            return []

    @classmethod
    def read(cls, source: Any, coder: Coder, **options: Any) -> BinaryRows:
        """Read all rows back, in the order of their numbers.

        `coder` made the codes: `embits.load(file).coder` of the exported file. Raises as `nearest`
        does, and FormatError if the rows do not match their description.
        """
        with cls.opened(source, **options) as table:
            check_coder(coder, table.description.bits, table.description.coder, table.place)
            try:
                return from_rows(table.rows(), coder)
            except InputError as error:
                raise FormatError(f"{table.place} is damaged: {error}") from None

    def _row_and_code(self, query: Query, coder: Coder | None) -> tuple[int | None, Codes]:
        if isinstance(query, str | int | np.integer):
            return self._stored(query if isinstance(query, str) else int(query))
        n_bits, query = self.description.bits, np.asarray(query)
        if query.ndim != 1:
            raise InputError(f"the query has {query.ndim} dimensions, expected one code or vector")
        if query.dtype != np.uint8:
            if coder is None:
                raise InputError("the query is a float vector: pass the coder of the codes too")
            check_coder(coder, n_bits, self.description.coder, self.place)
            query = coder.encode(query[np.newaxis])[0]
        code = packed_queries(query, packed_width(n_bits))
        check_padding(code, n_bits)
        return None, code

    def _stored(self, query: str | int) -> tuple[int, Codes]:
        """The number and code of the row with this id or number."""
        if isinstance(query, str) and not self.description.words:  # ids are row numbers
            if len(query) > 18 or not query.isdecimal() or str(int(query)) != query:
                raise UnknownWordError(query, [])
            query = int(query)
        rows = self.rows("word" if isinstance(query, str) else "id", query)
        if len(rows.codes):
            return int(rows.numbers[0]), rows.codes[0]
        if isinstance(query, int):
            raise InputError(f"there is no row {query} in {self.place}")
        cases = sorted({query.lower(), query.upper(), query.title()} - {query})
        raise UnknownWordError(
            query, [each for each in cases if len(self.rows("word", each).codes)]
        )


class SqlTable(Table):
    """A table that is asked in SQL."""

    relation: str  # the table
    columns = "code"
    mark = "?"  # stands for a value

    @abc.abstractmethod
    def run(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows that a statement returns."""

    def packed(self, codes: list[bytes]) -> bytes:
        """Codes as the tool returns them, in the bits of embits."""
        return b"".join(codes)

    def select(self, what: str, rest: str) -> str:
        return f"select {', '.join(self.fields)}, {what} from {self.relation} {rest}"

    def with_value(self, field: str | None) -> str:
        """Select all rows, or those with a value in a field."""
        rest = "order by id" if field is None else f"where {field} = {self.mark}"
        return self.select(self.columns, rest)

    def rows(self, field: str | None = None, value: str | int = 0) -> Rows:
        selected = self.run(self.with_value(field), [] if field is None else [value])
        blob = self.packed([row[-1] for row in selected])
        width = packed_width(self.description.bits)
        if len(blob) != width * len(selected):
            raise FormatError(f"{self.place}: damaged: {len(blob)} bytes in {len(selected)} rows")
        ids = [row[1] for row in selected] if self.description.words else None
        codes = np.frombuffer(blob, np.uint8).reshape(-1, width)
        return Rows(np.array([row[0] for row in selected], np.int64), codes, ids)

    def by_distance(
        self, distance: str, where: str | None, params: Sequence[Any], k: int, then: str = ", id"
    ) -> list[tuple[Any, ...]]:
        """The k rows of the smallest distance, an expression in SQL."""
        condition = "" if where is None else f"where ({where}\n)"  # it may end in a comment
        rest = f"{condition} order by distance{then} limit {k}"
        return self.run(self.select(f"{distance} as distance", rest), params)


def check_ours(place: str, text: Text, overwrite: bool = True) -> Description | None:
    """The description of a table that is there; None is a table that is not.

    InputError: embits did not write it, or it is to be replaced without `overwrite`.
    """
    description = Description.parse(text)
    if description is None and text is not None:
        raise InputError(f"{place} is not one that embits wrote; choose another name")
    if description is not None and not overwrite:
        raise InputError(f"{place} exists: choose another name, or {OVERWRITE}")
    return description


@contextlib.contextmanager
def opened(
    source: Any, connect: Callable[[Any], Any], tool: str, *kinds: type[Exception]
) -> Iterator[Any]:
    """A connection: that of a user, or one to a place, which is closed again.

    Errors of the tool are raised as DatabaseError, in one line that names the place.
    """
    is_place = isinstance(source, str | os.PathLike)
    with one_line_errors(source if is_place else tool, *kinds), contextlib.ExitStack() as stack:
        connection = connect(source) if is_place else source
        if is_place and hasattr(connection, "close"):
            stack.callback(connection.close)
        yield connection


@contextlib.contextmanager
def nothing_new_if_it_fails(*places: Path) -> Iterator[None]:
    """Remove the files or folders that were not there before, if something is raised."""
    new = [place for place in places if not place.exists()]
    try:
        yield
    except BaseException:
        for place in new:
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            place.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def one_line_errors(place: Any, *kinds: type[Exception]) -> Iterator[None]:
    """Raise a tool's errors as DatabaseError, in one line that names the place."""
    try:
        yield
    except EmbitsError:
        raise
    except kinds as error:
        reason = " ".join(str(getattr(error, "message", "") or error).split())
        raise DatabaseError(f"{place}: {reason[:500]}") from None


def ids_of(bits: BinaryRows) -> Vocabulary | None:
    """The ids of the rows; None if they only have numbers."""
    return bits.words if isinstance(bits.words, Vocabulary) else None


def id_sizes(bits: BinaryRows) -> NDArray[np.int64]:
    """The bytes of each id, or [0] without ids."""
    ids = ids_of(bits)
    ends = ids.ends.astype(np.int64) if ids else np.zeros(1, np.int64)
    sizes: NDArray[np.int64] = np.diff(ends, prepend=0)
    return sizes


def check_limits(
    bits: BinaryRows, tool: str, most_bits: int, most_id_bytes: float = math.inf
) -> None:
    """Refuse codes of more bits, or ids of more bytes, than a tool can hold."""
    if bits.n_bits > most_bits:
        raise InputError(f"{bits.n_bits:,} bits, expected at most {most_bits:,} in {tool}")
    if (sizes := id_sizes(bits)).max() > most_id_bytes:
        reason = f"the id of row {sizes.argmax()} has {sizes.max():,} bytes"
        raise InputError(f"{reason}, expected at most {most_id_bytes:,} in {tool}")


def check_name(pattern: str, expected: str, what: str, name: Any) -> str:
    """A name that matches a regular expression, which `expected` says in words."""
    if not isinstance(name, str) or not re.fullmatch(pattern, name, re.ASCII):
        raise InputError(f"{what} is {name!r}, expected {expected}")
    return name


def to_export(bits: Any) -> BinaryRows:
    """What is to be exported, with all codes in one array and fast slices of its ids."""
    if not isinstance(bits, BinaryRows):
        kind = type(bits).__name__
        raise InputError(f"bits is {kind}, expected BinaryVectors; embits.binarize makes them")
    merged = bits.merged()
    if (ids := ids_of(merged)) is not None:
        _ = ids.ends  # the words are unpacked: slices are faster from then on
    return merged


def row_blocks(
    bits: BinaryRows, progress: Progress | None, max_rows: int = 1 << 16
) -> Iterator[tuple[range, Codes, list[str] | None]]:
    """Yield blocks of row numbers, codes and ids, and report progress after each."""
    ids, largest = ids_of(bits), bits.codes.shape[1] + id_sizes(bits).max() + 16  # bytes of a row
    for rows in blocks(len(bits), max(1, min(max_rows, BLOCK_BYTES // largest))):
        yield range(rows.start, rows.stop), bits.codes[rows], None if ids is None else ids[rows]
        if progress is not None:
            progress(rows.stop, len(bits))


def arrow_tables(
    bits: BinaryRows, columns: Callable[[Codes], dict[str, Any]], progress: Progress | None,
    index: str = "none",
) -> Iterator[Any]:  # fmt: skip
    """Yield Arrow tables of `id`, `word` if there are ids, and the columns that hold the codes.

    The first one has no rows. The metadata of their schema describes the codes.
    """
    pa, description = arrow(), Description.of(bits, index).to_json()
    no_ids: list[str] | None = None if ids_of(bits) is None else []
    first = range(0), bits.codes[:0], no_ids
    for numbers, codes, ids in itertools.chain([first], row_blocks(bits, progress)):
        words = {} if ids is None else {"word": pa.array(ids, pa.string())}
        arrays = {"id": pa.array(numbers, pa.int64()), **words}
        arrays |= {name: pa.array(column) for name, column in columns(codes).items()}
        fields = [pa.field(name, each.type, nullable=False) for name, each in arrays.items()]
        yield pa.table(list(arrays.values()), pa.schema(fields, {"embits": description}))


def from_arrow(table: Any, coder: Coder) -> BinaryRows:
    """Read codes of a table that Arrow can read, such as the result of a query, in its order.

    Args:
        table: It has `id`, `word` if the rows have ids, and the codes as `export` writes them to
            LanceDB (`code`) or to DuckDB and Parquet (`c0`, `c1`, …).
        coder: The coder that made the codes; only `read` checks that it is the one.

    Raises:
        InputError: The table has other columns, or the codes have another width.
    """
    return from_rows(arrow_rows(table, coder.n_bits_), coder)


def arrow_rows(table: Any, n_bits: int) -> Rows:
    """The rows of a table for `from_arrow`."""
    table, width = arrow().table(table), packed_width(n_bits)
    names = table.column_names
    is_list, parts = "code" in names, integer_columns(n_bits)
    needed = ["id", *(["code"] if is_list else parts), *({"word"} & {*names})]
    if wrong := [each for each in needed if each not in names or table[each].null_count]:
        has = f"columns {', '.join(names)} with {', '.join(wrong)} missing or null"
        raise InputError(f"{has}, expected id and the codes: code, or {', '.join(parts)}")
    if is_list:
        flat = arrow().compute.list_flatten(table["code"]).to_numpy()
    else:
        numbers = np.stack([table[name].to_numpy() for name in parts], axis=1)
        flat = numbers.astype(">u8").view(np.uint8)[:, :width]
    if flat.size != width * len(table) or (not is_list and f"c{len(parts)}" in names):
        raise InputError(f"the codes of the table do not have the coder's {n_bits} bits")
    ids = table["word"].to_pylist() if "word" in names else None
    return Rows(table["id"].to_numpy(), flat.reshape(-1, width), ids)


def from_rows(rows: Rows, coder: Coder) -> BinaryRows:
    """Rows as BinaryVectors. Without ids, numbers with gaps are the ids."""
    ids: Any = rows.ids
    if ids is None and not np.array_equal(rows.numbers, np.arange(len(rows.numbers))):
        ids = rows.numbers
    return from_codes(rows.codes, coder, ids)


def from_codes(codes: NDArray[Any], coder: Coder, ids: Any = None) -> BinaryRows:
    """Packed codes, the coder that made them, and their ids as BinaryVectors."""
    checked = coder.check_codes(codes)
    check_padding(checked, coder.n_bits_)
    return BinaryVectors(ids, checked, coder)


def check_coder(coder: Coder, n_bits: int, checksum: str | None, place: str) -> None:
    """Refuse a coder of another width, or with another checksum than this one if it is known."""
    if coder.n_bits_ != n_bits:
        raise InputError(f"the coder makes {coder.n_bits_} bits, {place} holds {n_bits}")
    if checksum is not None and checksum != coder_checksum(coder):
        other = f"the coder (method {coder.method!r}) did not make the codes in {place}"
        raise InputError(f"{other}; pass the coder of the file that was exported")


def integers(codes: Codes) -> NDArray[np.uint64]:
    """Packed codes as integers of 64 bits, shape (n, ceil(n_bits / 64)), first bit highest.

    >>> [hex(number) for number in integers(np.array([[0x80, 0x01]], np.uint8))[0]]
    ['0x8001000000000000']
    """
    padded = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return np.ascontiguousarray(padded).view(">u8").astype(np.uint64)


def integer_columns(n_bits: int) -> list[str]:
    """The names of columns of `integers`."""
    return [f"c{at}" for at in range(-(-n_bits // 64))]
