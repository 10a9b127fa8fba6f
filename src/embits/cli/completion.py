"""`embits completion`: the script that enables shell completion."""

from __future__ import annotations

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.pass_context
def command(ctx: click.Context, shell: str | None) -> None:
    """Print the script that enables completion of `embits` in SHELL: bash, zsh or fish.

    SHELL defaults to the shell named by $SHELL. The script is click's own. It completes commands,
    options, methods, file names, and the words of the FILE on the command line.

    \b
    embits completion bash > ~/.local/share/bash-completion/completions/embits
    embits completion zsh > ~/.zfunc/_embits    # a folder of $fpath, set before compinit
    embits completion fish > ~/.config/fish/completions/embits.fish
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    script = get_completion_class(shell) if shell in SHELLS else None
    if script is None:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    click.echo(script(ctx.find_root().command, {}, "embits", "_EMBITS_COMPLETE").source())
