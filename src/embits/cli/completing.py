"""What the shell offers at a Tab: files by kind, names out of lists, words out of a file.

Click asks the parameters of the verb being typed; the scripts in shells/ show what it answers.
A completion that cannot be had is none: nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from embits.errors import EmbitsError

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

MOST_WORDS = 50
# A word that a shell would take for something else is left out.
_HARMLESS = re.compile(r"[\w.+@%/][\w.+@%/-]*")


class KnownPath(click.Path):
    """A path of a known kind. The kind is for the shell alone: content decides what is read."""

    def __init__(self, *globs: str, folder: bool = False) -> None:
        super().__init__(path_type=Path)
        self.offer = "dir" if folder else "file", "|".join(globs) or "*"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The kind of path, for the shell to look up."""
        kind, globs = self.offer
        return [CompletionItem(globs, type=kind)]


FILE = KnownPath()
FOLDER = KnownPath(folder=True)
BITS_FILE = KnownPath("*.safetensors")
FLOATS = (
    "*.txt", "*.vec", "*.bin", "*.npy", "*.npz", "*.safetensors", "*.parquet", "*.json",
    "*.gz", "*.zip", "*.xz",
)  # fmt: skip
FLOATS_FILE = KnownPath(*FLOATS)


def comma_list(names: Iterable[str]) -> Complete:
    """Completion of NAME,NAME,…: what is not named yet."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        *named, last = incomplete.split(",")
        begun = "".join(f"{name}," for name in named)
        rest = [name for name in names if name not in named and name.startswith(last)]
        return [CompletionItem(begun + name) for name in rest]

    return complete


def words_of_file(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completion of a word by the vocabulary of the FILE before it, the first rows first."""
    from embits.binary_vectors import load

    if not isinstance(file := ctx.params.get("file"), Path):
        return []
    try:
        words = load(file).words.starting_with(incomplete, MOST_WORDS)
    except (EmbitsError, OSError):
        return []
    return [CompletionItem(word) for word in words if _HARMLESS.fullmatch(word)]


def params_of_method(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Completion of --param by the parameters of --method."""
    from embits.coders import DEFAULT_METHOD, coder_class

    try:
        names = coder_class(ctx.params.get("method") or DEFAULT_METHOD).param_names()
    except EmbitsError:
        return []
    offered = [f"{name}=" for name in names if name not in ("n_bits", "random_state")]
    return [CompletionItem(name) for name in offered if name.startswith(incomplete)]
