"""The command line of `stages.completion`."""

from dataclasses import dataclass
from typing import Annotated

import click

from stages import declared


@dataclass(frozen=True, kw_only=True)
class CompletionOptions(declared.Options):
    """Print the script that completes commands, options and names in a shell, by default the one
    that you use.

    bash and zsh need a line in ~/.bashrc or ~/.zshrc, which --install adds once; fish needs none.

    Example: pipeline completion --install

    Example: pipeline completion bash
    """

    shell: Annotated[
        str | None,
        click.argument(
            "shell",
            metavar="[bash|zsh|fish]",
            required=False,
            type=click.Choice(["bash", "zsh", "fish"]),
        ),
    ] = None
    install: Annotated[
        bool,
        declared.flag(
            "--install",
            help="Write it to where the shell reads it, and say what was written.",
        ),
    ] = False


completion_command = declared.command(CompletionOptions, "completion.complete")
