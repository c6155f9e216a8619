"""The command line of `stages.completion`."""

from typing import Any

import click


@click.command
@click.argument(
    "shell", metavar="[bash|zsh|fish]", required=False, type=click.Choice(["bash", "zsh", "fish"])
)
@click.option(
    "--install",
    is_flag=True,
    help="Write it to where the shell reads it, and say what was written.",
)
def completion_command(**given: Any) -> None:
    """Print the script that completes commands, options and names in a shell, by default the one
    that you use.

    bash and zsh need a line in ~/.bashrc or ~/.zshrc, which --install adds once; fish needs none.

    Example: pipeline completion --install

    Example: pipeline completion bash
    """
    from stages.completion import complete

    complete(**given)
