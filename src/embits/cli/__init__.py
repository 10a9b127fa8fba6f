"""The command line: one module per verb, imported only when its verb runs."""

from __future__ import annotations

import difflib
import functools
import importlib
import logging
import os
import signal
import sys
import warnings

import click
from click.shell_completion import CompletionItem

from embits._interrupt import leave
from embits._version import __version__
from embits.cli.output import one_line, say
from embits.errors import EmbitsError

# Every verb and its summary. They are listed here so that neither `embits --help` nor completion
# of the verbs has to import them.
GROUPS = {
    "Make": {
        "demo": "Binarize GloVe vectors and show the results.",
        "binarize": "Turn a file of float vectors into a file of binary codes.",
        "encode": "Encode new vectors with the coder of a file.",
        "cells": "Store codes in cells, for searches that read few of them.",
        "decode": "Rebuild float vectors from codes.",
        "slim": "Write a smaller file, without parts you do not need.",
    },
    "Collect": {
        "add": "Add vectors or texts to a collection, or make one.",
        "remove": "Remove rows from a collection.",
        "index": "Make a collection of texts that `ask` searches.",
        "compact": "Merge the files of a collection into one.",
    },
    "Search": {
        "ask": "Print the passages of a collection that answer a question.",
        "search": "Find the rows nearest to the vectors or ids of a file.",
        "neighbors": "Print the closest words.",
        "similarity": "Print the similarity of two words.",
        "analogy": "A is to B as C is to what?",
        "duplicates": "Print groups of rows whose codes are nearly equal.",
    },
    "Inspect": {
        "info": "Print what a file contains.",
        "verify": "Check every byte of a file against its checksums.",
        "evaluate": "Score codes on standard tasks, next to the floats.",
        "compare": "Compare methods and widths on your own vectors.",
        "bench": "Time searches, next to NumPy and FAISS.",
    },
    "Export": {
        "export": "Write codes in the format of another tool.",
        "page": "Write a web page that searches a file in the browser.",
        "picture": "Draw the bits of a word's neighbors.",
        "completion": "Print the script that enables shell completion.",
    },
}
# Modules of several verbs, whose functions have their names; the others have a `command`.
_MODULES = {
    "binarize": ("binarize", "encode", "cells", "add", "remove", "compact"),
    "search": ("search", "duplicates", "neighbors", "similarity", "analogy"),
    "info": ("info", "verify"),
    "texts": ("index", "ask"),
    "export": ("export", "decode", "slim", "page", "completion"),
    "demo": ("demo", "bench"),
    "evaluate": ("evaluate", "compare", "picture"),
}
SHARED = {verb: module for module, verbs in _MODULES.items() for verb in verbs}
VERBS = tuple(verb for group in GROUPS.values() for verb in group)
EXIT_CODES = (
    "Exit codes: 0 (success), 1 (failure; one line on stderr gives the reason), 2 (wrong usage), "
    "130 (Ctrl-C), 141 (broken pipe), 143 (SIGTERM)."
)


class Verbs(click.Group):
    """A group that imports the module of a verb only when the verb runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = importlib.import_module(f"embits.cli.{SHARED.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name if cmd_name in SHARED else "command")
        command.epilog = EXIT_CODES
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        close = difflib.get_close_matches(args[0], VERBS, n=2)
        if close and args[0] not in VERBS and not ctx.resilient_parsing:  # not in completion
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(map(repr, close))}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> None:
        try:
            super().invoke(ctx)
            if sys.stdout is not None:  # closed
                sys.stdout.flush()
        except BrokenPipeError:  # such as `| head`: no message; click would exit with 1
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)  # 128 + SIGPIPE, as shells report it

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{verb:<10}", summary) for verb, summary in verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # click's own method imports every verb: 340 ms instead of 210 ms for a Tab.
        verbs = (verb for group in GROUPS.values() for verb in group.items())
        found = [CompletionItem(v, help=says) for v, says in verbs if v.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=Verbs,
    epilog="Run embits COMMAND --help for details and examples. " + EXIT_CODES,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
@click.version_option(__version__, prog_name="embits")
def embits() -> None:
    """Turn float embeddings into binary codes and search them.

    \b
    embits binarize glove.6B.300d.txt -o glove.safetensors --bits 256
    embits neighbors glove.safetensors queen
    """


def main() -> None:
    """Run the command line and exit with one of the codes in `EXIT_CODES`."""
    warnings.showwarning = lambda message, *_, **__: _note(str(message))
    logger = logging.getLogger("embits")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(_Notes())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # temporary files are deleted
    try:
        if signal.getsignal(signal.SIGINT) is leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.exit(embits.main(standalone_mode=False))
    except click.ClickException as error:  # wrong usage: exit code 2
        if not isinstance(error, click.BadParameter) or isinstance(error, click.MissingParameter):
            error.show()
        else:  # a value that is not accepted, in one line
            hint = error.param_hint or (error.param and error.param.get_error_hint(error.ctx)) or ""
            name = hint.replace("'", "") if isinstance(hint, str) else " / ".join(hint)
            say(": ".join(filter(None, ["error", name, error.message])))
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        # click raises Abort from the interrupt, whose text may name what was kept.
        reason = str(error.__cause__ or "") or str(error)
        say(reason or "interrupted; nothing is left half-written")
        sys.exit(130)
    except (EmbitsError, OSError, MemoryError) as error:
        say(f"error: {one_line(error)}")
        sys.exit(1)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _note(record.getMessage())


@functools.cache  # each once
def _note(message: str) -> None:
    say(f"note: {message}")
