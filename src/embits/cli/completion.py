"""`embits completion`: the script that teaches a shell to complete."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the script that completes `embits` in SHELL: bash, zsh or fish.

    Without SHELL it is that of $SHELL. A Tab then offers verbs, options, methods, tasks, files by
    their kind, and the words of the file that was named.

    \b
    embits completion bash > ~/.local/share/bash-completion/completions/embits
    embits completion zsh > ~/.zfunc/_embits    # a folder of $fpath, set before compinit
    embits completion fish > ~/.config/fish/completions/embits.fish
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    script = files("embits.cli").joinpath("shells", f"embits.{shell}").read_text("utf-8")
    click.echo(script, nl=False)
