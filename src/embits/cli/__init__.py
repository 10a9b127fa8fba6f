"""The command line: one file per verb, loaded only when its verb is called."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

import click

from embits._version import __version__
from embits.errors import EmbitsError

VERBS = (
    "demo", "binarize", "encode", "decode", "neighbors", "similarity", "analogy", "info", "verify",
    "evaluate", "compare", "bench", "picture", "export", "page",
)  # fmt: skip


class ClosedPipeError(Exception):
    """Nobody reads our output any more. No OSError: of those, click makes exit code 1."""


class Verbs(click.Group):
    """A group whose commands are imported when they are asked for: a fast start for each."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"embits.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ClosedPipeError from None


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="embits")
def embits() -> None:
    """Float embeddings into bits that keep their meaning.

    \b
    embits binarize glove.6B.300d.txt -o glove.safetensors --bits 256
    embits neighbors glove.safetensors queen
    """


def main() -> None:
    """Run the command line.

    Exit code 0, 1 (it could not), 2 (wrong usage), 130 (Ctrl-C) or 141 (nobody reads its output).
    """
    warnings.showwarning = _show_warning
    try:
        code = embits.main(standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:  # wrong usage: click's own message and code 2
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted; nothing is left half-written")
        sys.exit(130)
    except (BrokenPipeError, ClosedPipeError):  # the reader has left (`| head`): be quiet
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)  # 128 + SIGPIPE: what a shell shows for other programs then
    except (EmbitsError, OSError, MemoryError) as error:
        from embits.cli.common import one_line

        _say(f"error: {one_line(error)}")
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _say(message: str) -> None:
    from embits.cli.common import printable  # here: `embits --help` needs nothing of it

    print(f"embits: {printable(message)}", file=sys.stderr)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"note: {message}")
