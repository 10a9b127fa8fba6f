"""Every error embits raises on purpose, in one family.

Each also derives from the built-in error a caller would expect, so code written for
NumPy, scikit-learn or gensim catches it unchanged.
"""

from __future__ import annotations


class EmbitsError(Exception):
    """The base of all of them."""


class ReadError(EmbitsError, ValueError):
    """A vector file could not be read: names the file, the line or byte, and what was expected."""


class ReadWarning(UserWarning):
    """A vector file was read, but something in it was put right or left out."""


class FormatError(EmbitsError, ValueError):
    """A binary-vectors file is damaged, or is not one."""


class InputError(EmbitsError, ValueError):
    """An argument has the wrong shape, type or value."""


class NotFittedError(EmbitsError, ValueError, AttributeError):
    """A coder was used before it was fitted."""


class TrainingError(EmbitsError, ArithmeticError):
    """A coder could not learn from these vectors with these parameters."""


class TrainingWarning(UserWarning):
    """A coder was fitted, but its codes tell few of the vectors apart."""


class DatabaseError(EmbitsError, RuntimeError):
    """A database could not be reached, or said no: its own words in one line, without secrets."""


class UnknownWordError(EmbitsError, KeyError):
    """A word is not in the vocabulary.

    Attributes:
        word: The word that was asked for.
        suggestions: Words of the vocabulary that are spelled alike, best first.
    """

    def __init__(self, word: str, suggestions: list[str]) -> None:
        super().__init__(word)
        self.word = word
        self.suggestions = suggestions

    def __str__(self) -> str:
        hint = (
            f"; did you mean {', '.join(map(repr, self.suggestions))}?" if self.suggestions else ""
        )
        return f"the word {self.word!r} is not in the vocabulary{hint}"

    def __reduce__(self) -> tuple[type[UnknownWordError], tuple[str, list[str]]]:
        return type(self), (self.word, self.suggestions)


class HubError(EmbitsError, OSError):
    """The Hugging Face Hub refused or could not be reached: names the model and the reason."""


class MissingExtraError(EmbitsError, ImportError):
    """An optional package is not installed: the message names the line that installs it."""

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(f"for {purpose}, install an extra package: pip install 'embits[{extra}]'")
        self.extra = extra


class ClusterError(EmbitsError, RuntimeError):
    """A job on several workers failed, or there is no cluster to run it on."""
