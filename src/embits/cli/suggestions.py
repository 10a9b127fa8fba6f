"""Completion candidates that need more than a fixed list: words of a file, parameters of a method.

These are click `shell_complete` callbacks. When no candidates can be found they return an empty
list; they do not raise.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from embits.errors import EmbitsError

MAX_WORDS = 50
# Words with other characters are left out: a shell would expand them or split them.
_SAFE = re.compile(r"[\w.+@%/][\w.+@%/-]*")


def words_of_file(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Words of the FILE argument that start with `incomplete`, in row order."""
    from embits.collection import load

    if not isinstance(file := ctx.params.get("file"), Path):
        return []
    try:
        words = load(file).words.starting_with(incomplete, MAX_WORDS)
    except (EmbitsError, OSError):
        return []
    return [CompletionItem(word) for word in words if _SAFE.fullmatch(word)]


def params_of_method(
    ctx: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Parameters of the coder named by --method, as `NAME=`."""
    from embits.coders import DEFAULT_METHOD, coder_class

    try:
        names = coder_class(ctx.params.get("method") or DEFAULT_METHOD).param_names()
    except EmbitsError:
        return []
    offered = [f"{name}=" for name in names if name not in ("n_bits", "random_state")]
    return [CompletionItem(name) for name in offered if name.startswith(incomplete)]
