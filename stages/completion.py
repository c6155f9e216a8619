"""What makes a shell complete the program's commands, options and names: click's script, and where
a shell reads it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from pipeline.foundation.files import regular
from pipeline.foundation.files.atomic import write_bytes, write_text
from pipeline.foundation.parts.errors import unknown
from stages.commands.completion import CompletionOptions
from stages.progress import say

SHELLS = ("bash", "zsh", "fish")
# zsh completes nothing before `compinit` has run.
ZSH = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }; "


def complete(options: CompletionOptions) -> None:
    """Print the script that completes in a shell, by default the user's, or write it to where the
    shell reads it.
    """
    shell = options.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise unknown("shell", shell, SHELLS)
    completion = get_completion_class(shell)
    assert completion is not None
    script = completion(click.Command("pipeline"), {}, "pipeline", "_PIPELINE_COMPLETE").source()
    if not options.install:
        click.echo(script)
        return
    file, startup = _places(shell)
    _write(file, script)
    source = f"source {shlex.quote(str(file))}"
    if startup:
        line = f"{source}  # completes pipeline"
        if shell == "zsh":
            line = f"{ZSH}{line}"
        _append(startup, line)
    say(f"Open a new {shell}, or type: {source}", err=False)


def _places(shell: str) -> tuple[Path, Path | None]:
    """Where the script is written, and the file of the user by which the shell reads it, if it
    needs one.
    """
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    if shell == "bash":
        return data / "bash-completion" / "completions" / "pipeline", home / ".bashrc"
    if shell == "zsh":
        startup = Path(os.environ.get("ZDOTDIR") or home) / ".zshrc"
        return data / "zsh" / "site-functions" / "_pipeline", startup
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return settings / "fish" / "completions" / "pipeline.fish", None


def _write(file: Path, script: str) -> None:
    if file.exists() and regular.content(file) == script.encode():
        say(f"{file}: up to date", err=False)
        return
    write_text(file, script)
    say(f"{file}: written", err=False)


def _append(startup: Path, line: str) -> None:
    """Add a line to the file that a shell reads when it starts, unless it has the line."""
    content = b""
    if startup.exists():
        content = regular.content(startup)
    if line.encode() in content.splitlines():
        say(f"{startup}: up to date", err=False)
        return
    if content and not content.endswith(b"\n"):
        content += b"\n"
    write_bytes(startup, content + f"{line}\n".encode())
    say(f"{startup}: a line added", err=False)
