"""Every error and warning of embits. Each derives from the built-in error a caller would expect."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import distributions
from itertools import chain

# The hint of an `UnknownWordError` for a whole number.
ROWS_BY_NAME = "whole numbers are ids here: give row numbers as rows= (--rows), or bits.codes[row]"
ENCODE_AGAIN = 'encode the vectors again with repeats="first" (--repeats first)'


class EmbitsError(Exception):
    """The base of all errors. Its text is one line: `path, row N: message; hint`.

    Attributes:
        path: The file or other place where the fault is, if it is known.
        row: The row that is at fault.
        hint: What to do about it.
    """

    def __init__(
        self,
        *args: object,
        path: str | os.PathLike[str] | None = None,
        row: int | None = None,
        hint: str = "",
    ) -> None:
        super().__init__(*args)
        self.path = None if path is None else os.fspath(path)
        self.row, self.hint = row, hint

    def __str__(self) -> str:
        row = None if self.row is None else f"row {self.row}"
        place = ", ".join(str(part) for part in (self.path, row) if part is not None)
        text = "; ".join(filter(None, [super().__str__(), self.hint]))
        return f"{place}: {text}" if place else text


class ReadError(EmbitsError, ValueError):
    """A vector file could not be read: names the file, the line or byte, and what was expected."""


class MissingFileError(ReadError, FileNotFoundError):
    """A file that was to be read is not there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.errno, self.strerror, self.filename = errno.ENOENT, "no such file", os.fspath(path)

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"

    def __reduce__(self) -> tuple[type[MissingFileError], tuple[str]]:
        return type(self), (self.filename,)


@contextlib.contextmanager
def named_if_missing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise `MissingFileError` with this path where Python's own error has another text."""
    try:
        yield
    except MissingFileError:  # of another file, such as the words of a matrix
        raise
    except FileNotFoundError:
        raise MissingFileError(path) from None


class ReadWarning(UserWarning):
    """A vector file was read, but something in it was corrected or left out."""


class SizeWarning(UserWarning):
    """A file was written, and most of its bytes are of a part that could be left out."""


class FormatError(EmbitsError, ValueError):
    """A binary-vectors file is damaged, or is not one."""


class InputError(EmbitsError, ValueError):
    """An argument has the wrong shape, type or value."""


class TooManyResultsError(InputError):
    """A search would return more results than its limit."""


class LockedError(InputError):
    """Another process is writing to a collection: names the process."""


class UnconfirmedError(EmbitsError, OSError):
    """A change of a collection was made, but the disk did not confirm it. Do not repeat it."""


class NotFittedError(EmbitsError, ValueError, AttributeError):
    """A coder was used before it was fitted."""


class TrainingError(EmbitsError, ArithmeticError):
    """A coder could not learn from these vectors with these parameters."""


class TrainingWarning(UserWarning):
    """A coder was fitted, but its codes tell few of the vectors apart."""


class DatabaseError(EmbitsError, RuntimeError):
    """A database could not be reached or refused: its own message in one line, without secrets."""


class UnknownWordError(EmbitsError, KeyError):
    """No row has this word or id.

    Attributes:
        word: The word or id that was asked for.
        suggestions: Those that are spelled alike, best first.
        hint: What to ask for instead, or why there is no such word.
    """

    def __init__(self, word: str, suggestions: list[str], hint: str = "") -> None:
        super().__init__(word, hint=hint)
        self.word = word
        self.suggestions = suggestions

    def __str__(self) -> str:
        parts = [f"there is no word or id {self.word!r}", self.hint]
        if " " in str(self.word) and not (self.hint or self.suggestions):
            parts.append("if it is a text, embed it first and search with its vector")
        if self.suggestions:
            parts.append(f"did you mean {', '.join(map(repr, self.suggestions))}?")
        return "; ".join(filter(None, parts))

    def __reduce__(self) -> tuple[type[UnknownWordError], tuple[str, list[str], str]]:
        return type(self), (self.word, self.suggestions, self.hint)


class HubError(EmbitsError, OSError):
    """The Hugging Face Hub refused or could not be reached: names the model and the reason."""


class MissingExtraError(EmbitsError, ImportError):
    """An optional package is not installed: the message names the line that installs it."""

    def __init__(self, purpose: str, extra: str, hint: str = "") -> None:
        needs = chain.from_iterable(each.requires or () for each in distributions(name="embits"))
        mine = [re.sub(r"(;| and) extra == .*", "", line) for line in needs if f'"{extra}"' in line]
        names = " and ".join(re.split(r"[^\w.-]", each)[0] for each in mine)
        install = f"{names}: pip install {shlex.join(mine)} (the extra embits[{extra}])"
        super().__init__(f"for {purpose}, install {hint or install}")
        self.extra = extra


@contextlib.contextmanager
def from_extra(purpose: str, extra: str, hint: str = "") -> Iterator[None]:
    """Raise `MissingExtraError` where an optional package cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(purpose, extra, hint) from error


class ClusterError(EmbitsError, RuntimeError):
    """A job on several workers failed, or there is no cluster to run it on."""


def first_line(error: BaseException) -> str:
    """The first line of an error's text; the name of its class if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line that called embits, however deep inside it the warning arises."""
    inside = (__file__.removesuffix("errors.py"), contextlib.__file__)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
