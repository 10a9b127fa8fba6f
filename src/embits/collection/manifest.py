"""The manifest of a collection: which files it consists of, in row order.

`_embits.json` is replaced atomically with each change. Files that it does not list are no part of
the collection (docs/file-format.md).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal, NoReturn

from embits._version import __version__
from embits.bounded_json import Limits, parse_json
from embits.checks import read_small
from embits.columns import KIND
from embits.errors import FormatError
from embits.file.atomic import atomic_write

MANIFEST = "_embits.json"
CODER = "_coder.safetensors"  # readers of Parquet folders skip names that start with _
FORMAT = "embits collection"
FORMAT_0_1 = "embits codes"
VERSION = 1
VERSION_WITH_MORE = 2  # of collections that earlier versions would read without a part
VERSION_WITH_LOG = 3
VERSIONS = VERSION, VERSION_WITH_MORE, VERSION_WITH_LOG
MAX_BYTES = 1 << 24
_LIMITS = Limits(MAX_BYTES, 1_000_000, 100_000)
MAX_ROWS = 1 << 48

_FACTS = (
    "bits", "dims", "generation", "next_piece", "next_number", "method", "coder", "ids",
    "coder_file", "keep", "fitted_rows", "refit_at", "log",
)  # fmt: skip
# What a field may be: a number of 0 to the one given, or a text that matches.
_RULES: dict[str, Any] = {
    **dict.fromkeys((*_FACTS[:5], "rows", "first", "fitted_rows", "refit_at"), MAX_ROWS),
    **dict.fromkeys(("method", "coder", "column"), "(?s).*"),
    **dict.fromkeys(("header", "sha256"), "[0-9a-f]{64}"),
    "file": "[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}",  # never a path that leads out of the folder
    "ids": "given|numbers",
    "coder_file": r"_coder-\d{8,200}\.safetensors",
    "keep": "float16|int8",
    "log": r"log-\d{8,200}\.jsonl",
}
_OPTIONAL = "ids", "first", "header", "column", *_FACTS[8:]


@dataclass(frozen=True)
class Removed:
    """The bitmap of the removed rows of a piece."""

    file: str  # a bit for each row of the piece, 1 if it is removed; first row highest
    rows: int  # that are removed
    sha256: str  # of the file


@dataclass(frozen=True)
class Beside:
    """A file beside the codes of a piece, of the same rows: Arrow."""

    file: str
    sha256: str  # of the file


@dataclass(frozen=True)
class Piece:
    """A file of codes: an embits file without coder, or Parquet; and the files beside it."""

    file: str
    rows: int  # with those that are removed
    first: int = 0  # the number of its first row, if the ids are numbers and the file has none
    header: str | None = None  # SHA-256 of the header, which has the checksums; not of Parquet
    column: str | None = None  # of the ids, in Parquet
    columns: Beside | None = None
    removed: Removed | None = None

    @property
    def files(self) -> list[str]:
        """The names of all its files."""
        beside = [each.file for each in (self.columns, self.removed) if each]
        return [self.file, *beside]

    @property
    def live(self) -> int:
        """Rows that are not removed."""
        return self.rows - (self.removed.rows if self.removed else 0)


@dataclass(frozen=True)
class Manifest:
    """What a collection consists of."""

    bits: int
    dims: int
    method: str
    coder: str  # its identity, as `coder_checksum` gives it
    generation: int = 0  # how many changes were made
    next_piece: int = 0  # the number of the next piece; no name is used twice
    next_number: int = 0  # the id of the next row, if the ids are numbers
    ids: Literal["given", "numbers"] | None = None  # None as long as no row was added
    columns: Mapping[str, str] = field(default_factory=dict)  # the kind of values of each
    coder_file: str | None = None  # of a coder that was fitted later; None is CODER
    past: tuple[str, ...] = ()  # the identities of earlier coders
    keep: str | None = None  # how the vectors are kept
    fitted_rows: int | None = None  # rows that the coder was fitted on, if they are of here
    refit_at: int | None = None  # rows at which the coder is fitted again, without being asked to
    log: str | None = None  # a file with rows after those of the pieces
    pieces: tuple[Piece, ...] = ()  # in row order

    @property
    def rows(self) -> int:
        """Rows that are not removed."""
        return sum(piece.live for piece in self.pieces)

    @property
    def has_more(self) -> bool:
        """Whether earlier versions would read it without a part, or with the wrong coder."""
        return bool(self.columns or self.coder_file or self.keep or not self.dims)

    def files(self) -> set[str]:
        """The names of all files that it lists, and of its own."""
        coder = self.coder_file or CODER
        names = {MANIFEST, coder, *(name for piece in self.pieces for name in piece.files)}
        return names | {self.log} if self.log else names


def write_manifest(
    folder: Path, manifest: Manifest, check: Callable[[], None] | None = None
) -> None:
    """Replace the manifest: the change that it describes is then made, unless `check` raises."""
    content = manifest_json(manifest)
    parse_manifest(folder, content)
    with atomic_write(folder / MANIFEST, like=folder / MANIFEST, check=check) as file:
        file.write(content)


def manifest_json(manifest: Manifest) -> bytes:
    """The bytes of `_embits.json`: a piece on a line."""
    body = {
        "format": FORMAT,
        "version": VERSIONS[2 if manifest.log else int(manifest.has_more)],
        "writer": f"embits {__version__}",
        "rows": manifest.rows,
        **{name: getattr(manifest, name) for name in _FACTS},
        "columns": dict(manifest.columns) or None,
        "past": list(manifest.past) or None,
        "pieces": [_without_none(asdict(piece)) for piece in manifest.pieces],
    }
    body = _without_none(body)
    lines = [f" {json.dumps(name)}: {json.dumps(value)}" for name, value in body.items()]
    pieces = ",".join(f"\n  {json.dumps(entry)}" for entry in body["pieces"])
    lines[-1:] = [f' "pieces": [{pieces}\n ]', f' "sha256": "{_digest(body)}"']
    return ("{\n" + ",\n".join(lines) + "\n}").encode()


def with_rows(manifest: Manifest, n: int, changes: int) -> Manifest:
    """The manifest with the n rows of its log, which so many changes added, as the last piece."""
    first = manifest.next_number
    return replace(
        manifest,
        pieces=(*manifest.pieces, Piece(str(manifest.log), n, first)),
        generation=manifest.generation + changes,
        next_number=first + n if manifest.ids == "numbers" else first,
    )


def _without_none(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if value is not None}


def read_manifest(folder: Path) -> Manifest:
    """Read `_embits.json`."""
    try:
        return parse_manifest(folder, read_small(folder / MANIFEST, MAX_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise no_manifest(folder) from None


def no_manifest(folder: Any) -> FormatError:
    """The error for a folder without a manifest."""
    reason = "it is not a collection, or its job has not finished: run the job again"
    return FormatError(f"{folder} has no {MANIFEST}: {reason}")


@lru_cache(maxsize=4)  # a change reads it several times
def parse_manifest(folder: Any, content: bytes) -> Manifest:
    """The manifest of a folder from the bytes of its file."""

    def fail(problem: str) -> NoReturn:
        raise FormatError(f"{folder}: {MANIFEST} {problem}")

    try:
        body = parse_json(content, _LIMITS)
        form, version, checksum = body["format"], body["version"], body.pop("sha256", None)
        is_whole = form != FORMAT or checksum == _digest(body)
    except (AttributeError, ValueError, KeyError, TypeError):
        fail("is damaged: restore it from a copy")
    if form not in (FORMAT, FORMAT_0_1):
        fail(f"is of the format {shortened(form)}, expected {FORMAT!r}")
    if type(version) is not int or version not in VERSIONS:
        other, known = f"version {shortened(version)}", f"{VERSION} to {VERSIONS[-1]}"
        fail(f"is of {other}; this embits reads {known}: install a newer one")
    if not is_whole:
        fail("does not match its checksum: restore it from a copy")
    try:
        body = body if form == FORMAT else _of_0_1(body)
        pieces = tuple(_piece(entry) for entry in body["pieces"])
        columns = body.get("columns", {})
        more = {"columns": columns, "past": tuple(body.get("past", ())), "pieces": pieces}
        manifest = Manifest(**_checked(Manifest, body), **more)
        are_strings = all(isinstance(each, str) for each in (*columns.values(), *manifest.past))
        are_lists = all(isinstance(body.get(name, []), list) for name in ("past", "pieces"))
        is_version = (version == VERSION_WITH_LOG) == (manifest.log is not None)
        is_whole = type(body.get("rows", 0)) is int and all(columns) and are_strings
        if not (is_whole and are_lists and is_version):
            raise ValueError("rows")
    except (AttributeError, KeyError, TypeError, ValueError):
        fail("is damaged: it does not list the pieces")
    for name, kind in columns.items():
        if not KIND.fullmatch(kind):
            what = f"has a column {name!r} of the kind {kind!r}, which this embits does not know"
            fail(f"{what}: install a newer one")
    if problem := _problem(manifest):
        fail(f"is damaged: {problem}: restore it from a copy")
    return manifest


def _of_0_1(body: Mapping[str, Any]) -> dict[str, Any]:
    """A folder that a job of version 0.1 wrote: Parquet files, whose rows have no checksums."""
    column, first, pieces = body.get("ids"), 0, []
    for part in body["parts"]:
        start = {"column": column} if column is not None else {"first": first}
        pieces.append({"file": part["file"], "rows": part["rows"], **start})
        first += part["rows"]
    counters = {"generation": 0, "next_piece": 0, "next_number": 0 if column else first}
    ids = "numbers" if column is None else "given"
    return {**body, **counters, "coder": "", "ids": ids, "pieces": pieces}


def _problem(manifest: Manifest) -> str | None:
    """What is wrong with the files: one twice, or a name that the next change would use again."""
    bitmaps = [piece.removed.file for piece in manifest.pieces if piece.removed]
    names = [name for piece in manifest.pieces for name in piece.files]
    if len({MANIFEST, CODER, manifest.coder_file, *names}) < len(names) + 3:
        return "a file is listed twice"
    numbered = (*names, manifest.log or "")
    pieces = (re.fullmatch(r"(?:piece|log)-(\d+)\.\w+", name) for name in numbered)
    if any(match and int(match[1]) >= manifest.next_piece for match in pieces):
        return "the number of the next piece is that of a listed one"
    changes = (re.fullmatch(r".*\.removed-(\d+)", name) for name in bitmaps)
    if any(match and int(match[1]) > manifest.generation for match in changes):
        return "the number of changes is less than that of a listed file"
    ends = (piece.first + piece.rows for piece in manifest.pieces)
    if manifest.ids == "numbers" and max(ends, default=0) > manifest.next_number:
        return "the number of the next row is that of a listed one"
    return None


def _piece(entry: Mapping[str, Any]) -> Piece:
    beside: dict[str, Any] = {
        name: kind(**_checked(kind, entry[name]))
        for name, kind in (("columns", Beside), ("removed", Removed))
        if entry.get(name) is not None
    }
    piece = Piece(**_checked(Piece, entry), **beside)
    if piece.live < 0 or (piece.header is None and not piece.file.endswith(".parquet")):
        raise ValueError(entry)
    return piece


def _checked(kind: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a manifest, piece or bitmap; ValueError if one does not follow its rule."""
    values = {each.name: entry.get(each.name) for each in fields(kind) if each.name in _RULES}
    for name, value in values.items():
        rule = _RULES[name]
        if isinstance(rule, int):
            is_good = type(value) is int and 0 <= value <= rule
        else:
            is_good = isinstance(value, str) and re.fullmatch(rule, value, re.ASCII) is not None
        if not is_good and not (value is None and name in _OPTIONAL):
            raise ValueError(name)
    return _without_none(values)


def _digest(body: Mapping[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
