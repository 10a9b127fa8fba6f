"""The command line: one file per verb, loaded only when its verb is called."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import warnings
from typing import Any

import click
from click.shell_completion import CompletionItem

from embits._version import __version__
from embits.errors import EmbitsError

# Every verb and its line of `embits --help`. They stand here so that the list, for people and
# for a shell's completion, imports none of them.
GROUPS = {
    "Make": {
        "demo": "The main job on real GloVe vectors, shown.",
        "binarize": "Turn a file of float vectors into a file of bits.",
        "encode": "Code unseen vectors with the coder of a file.",
        "decode": "Give floats back.",
    },
    "Ask": {
        "neighbors": "The closest words.",
        "similarity": "How alike two words are.",
        "analogy": "A is to B as C is to what?",
    },
    "Check": {
        "info": "What a file holds.",
        "verify": "Check every byte.",
        "evaluate": "Score bits against their floats, task by task.",
        "compare": "The paper's tables and figures, on your vectors.",
        "bench": "Time searches, with others beside them.",
    },
    "Take elsewhere": {
        "export": "Into other tools.",
        "page": "A web page that searches the file in the browser.",
        "picture": "Draw the bits of a word's neighbors.",
        "completion": "Teach the shell to complete embits.",
    },
}
VERBS = tuple(verb for group in GROUPS.values() for verb in group)
EXIT_CODES = (
    "Exit codes: 0, 1 (it could not; one line says why), 2 (wrong usage), 130 (Ctrl-C), "
    "141 (nobody reads its output any more)."
)


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
        command.epilog = EXIT_CODES
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = difflib.get_close_matches(args[0], VERBS, n=2)
            if not close or "No such command" not in error.message:
                raise
            guess = f" Did you mean {' or '.join(map(repr, close))}?"
            raise click.UsageError(error.message + guess, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ClosedPipeError from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{verb:<10}", says) for verb, says in verbs.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = (verb for group in GROUPS.values() for verb in group.items())
        found = [
            CompletionItem(verb, help=says) for verb, says in verbs if verb.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=Verbs,
    epilog="embits VERB --help says more, with examples. " + EXIT_CODES,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "show_default": True,
        "max_content_width": 100,
    },
)
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
    except (click.Abort, KeyboardInterrupt) as error:
        # click gives Abort in place of the interrupt, which may have said what is kept
        said = str(error.__cause__ or "") or str(error)
        _say(said or "interrupted; nothing is left half-written")
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
