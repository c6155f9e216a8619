"""The program: `pipeline COMMAND`. Bad input ends in one line and exit code 2, never in a
traceback.
"""

import atexit
import errno
import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError
from click.shell_completion import CompletionItem

from pipeline.foundation import parts
from pipeline.foundation.files import regular
from pipeline.foundation.files.atomic import READ_ONLY
from pipeline.foundation.parts import extension, lazy
from pipeline.foundation.parts.errors import InputError, InputWarning, short_of_memory, unknown
from stages import progress, terminal, values

# Section -> command, or group of commands -> its purpose, in the order of the work. A command's
# options are imported when it is named, and what it does when it runs.
SECTIONS = {
    "A run": {
        "init": "Write the settings and stages of a new project.",
        "settings": "Print the effective settings, with what recipes inherit.",
        "completion": "Complete commands, options and names in bash, zsh or fish.",
    },
    "Data and features": {
        "manifest": "Turn annotations and a folder of images into a checked table.",
        "extract": "Extract features of images, clips or captions into a store.",
        "store": "Verify, compact, rewrite, copy, import and export feature stores.",
    },
    "Heads and systems": {
        "train": "Train heads on one feature.",
        "convert": "Turn weights of other code (VSE∞, OSCAR, …) into a head.",
        "finetune": "Train a dual encoder such as CLIP on: LoRA, last blocks, all.",
        "export": "Write a head for ONNX runtimes or sentence-transformers.",
        "embed": "Embed a data set with a head, or with an encoder such as CLIP.",
        "score": "Write similarity matrices of heads and pretrained encoders.",
        "add": "Make a system of scores or vectors computed elsewhere.",
        "ensemble": "Fuse systems: the papers' R, RG and RGP, or your own.",
        "rescore": "Correct a system's similarities, for hubness for instance.",
        "rerank": "Reorder a retriever's best candidates by a scorer of pairs.",
    },
    "Results": {
        "evaluate": "Measure R@K and RSUM, of the run's systems or of any matrix.",
        "compare": "Test systems against each other on the same queries.",
        "explain": "Find out why you cannot reproduce a published number.",
        "trace": "Follow a number back to the photographs that it rests on.",
        "search": "Search embedded images and captions by a text or an image.",
        "tables": "Write the papers' tables, published rows beside measured ones.",
        "figures": "Draw the papers' figures, each with its numbers.",
        "report": "Write one page of results, curves, queries and provenance.",
    },
    "Beside a run": {
        "lab": "Studies, timings, and steps that only `dvc repro` needs.",
    },
}
# Group -> what its help says, and its commands.
GROUPS = {
    "store": (
        "Keep feature stores: check and mend them, bring them from other code and other machines, and back.",
        {
            "verify": "Check a feature store and say what is wrong and where.",
            "rewrite": "Drop unused rows; change the dtype, compressor or shard size.",
            "export": "Write a store as older code reads it: SCAN's layout, TSV, files.",
            "copy": "Copy a feature store or a manifest to S3, or from there.",
        },
    ),
    "lab": (
        "Studies, timings, and steps that only `dvc repro` needs.",
        {
            "synthetic": "Learn known pooling patterns with GPO's generators.",
            "throughput": "Time poolings and retrieval on this machine.",
            "machine": "Show how this machine multiplies matrices, as measured.",
            "plan": "Write what each step of the run depends on besides files.",
            "sample": "Render the built-in sample of photographs, or of clips.",
        },
    ),
}
# Every command of the core by its whole name, such as `store verify` -> its purpose.
COMMANDS: dict[str, str] = {}
for _section in SECTIONS.values():
    COMMANDS |= _section
for _group, (_, _commands) in GROUPS.items():
    del COMMANDS[_group]
    for _name, _purpose in _commands.items():
        COMMANDS[f"{_group} {_name}"] = _purpose
# File of `stages.commands` -> its commands, where it has several; each other command has a file of
# its own name.
FILES = {
    "project": ("init", "settings", "lab sample", "lab machine"),
    "stores": tuple(f"store {name}" for name in GROUPS["store"][1]),
    "heads": ("train", "convert"),
    "scores": ("score", "rescore"),
    "paper": ("tables", "figures"),
    "studies": ("lab synthetic", "lab throughput"),
}
# Command -> the extra without which it can do nothing; others name one when an option or a part
# needs it.
EXTRAS = {
    "init": "project",
    "manifest": "project",
    "add": "project",
    "ensemble": "project",
    "rescore": "project",
    "score": "project",
    "figures": "project",
    "report": "project",
    "trace": "project",
    "store verify": "project",
    "store rewrite": "project",
    "store export": "project",
    "store copy": "project",
    "extract": "features",
    "train": "training",
    "convert": "training",
    "finetune": "training",
    "export": "training",
    "embed": "training",
    "rerank": "training",
    "search": "training",
    "lab synthetic": "training",
    "lab throughput": "training",
    "lab machine": "training",
    "lab plan": "training",
}
# Columns of a line of an example, which is indented by two on a page of 80.
EXAMPLE = 76
BAD_NAMES = (
    errno.ENOENT,
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


def file_of(name: str) -> str:
    """The file of `stages.commands` that has a command."""
    for file, names in FILES.items():
        if name in names:
            return file
    return name.split()[-1].replace("-", "_")


def commands() -> dict[str, str]:
    """Every command by its whole name -> its purpose, also those of extensions."""
    added = extension.commands()
    return COMMANDS | {name: of.purpose for name, of in added.items()}


def extra_of(name: str) -> str | None:
    """The extra without which a command can do nothing."""
    if name in COMMANDS:
        return EXTRAS.get(name)
    return extension.commands()[name].extra


def place_of(name: str) -> str:
    """Where a command is defined, as "module:object"."""
    if name not in COMMANDS:
        return extension.commands()[name].place
    called = name.split()[-1].replace("-", "_")
    return f"stages.commands.{file_of(name)}:{called}_command"


def command(name: str) -> click.Command:
    """Import a command, with what all commands have in common."""
    imported: click.Command = lazy.imported(place_of(name))
    if not any(option.name == "quiet" for option in imported.params):
        imported.callback = _having(extra_of(name), name, imported.callback)
        imported.params += progress.options()
        for parameter in imported.params:
            parameter.type = values.checked(parameter.type)
        paragraphs = inspect.cleandoc(imported.help or "").split("\n\n")
        for number, paragraph in enumerate(paragraphs):
            if paragraph.startswith("Example:"):
                paragraphs[number] = _example(paragraph)
        imported.help = "\n\n".join(paragraphs)
    return imported


class Commands(click.Group):
    """The program's commands, or those of one of its groups, by section; each is imported when it
    is used.
    """

    core = SECTIONS
    prefix = ""

    @classmethod
    def of_group(cls, name: str) -> "Commands":
        purpose, commands_of_group = GROUPS[name]
        group = cls(name, help=purpose)
        group.core = {"Commands": commands_of_group}
        group.prefix = f"{name} "
        return group

    @property
    def sections(self) -> dict[str, dict[str, str]]:
        """Section -> command -> its purpose; those of extensions come last."""
        sections = {title: dict(of_section) for title, of_section in self.core.items()}
        for whole_name, added in extension.commands().items():
            group, _, name = whole_name.rpartition(" ")
            if group == self.prefix.strip():
                title = added.section
                if group:
                    title = "Commands"
                sections[title][name] = added.purpose
        return sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        names: list[str] = []
        for of_section in self.sections.values():
            names += of_section
        return names

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if " " in cmd_name:
            return None
        name = self.prefix + cmd_name
        if name in GROUPS:
            return self.of_group(name)
        if name in COMMANDS or name in extension.commands():
            return command(name)
        return None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = dict.fromkeys([*self.list_commands(ctx), *commands()])
            raise unknown("command", name, known, f"`{ctx.command_path} --help`")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands without importing them, and options."""
        items = []
        for section in self.sections.values():
            for name, purpose in section.items():
                if name.startswith(incomplete):
                    items.append(CompletionItem(name, help=purpose))
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.list_commands(ctx)))
        for title, commands in self.sections.items():
            rows = [(name.ljust(widest), purpose) for name, purpose in commands.items()]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vse-pipeline")
def cli() -> None:
    """Image-text retrieval with visual-semantic embeddings: from photographs and captions to a
    paper's tables.

    Settings live in params.yaml; `dvc repro` runs the commands in order. Each has --help with an
    example.
    """


def _having(
    extra: str | None, command: str, callback: Callable[..., Any] | None
) -> Callable[..., Any] | None:
    """Have a command ask for its extra before it does anything."""
    if extra is None or callback is None:
        return callback

    @wraps(callback)
    def run(**given: Any) -> Any:
        parts.extras.require(extra, f"pipeline {command}")
        return callback(**given)

    return run


def _example(paragraph: str) -> str:
    """An example as it is typed: one that is too long for a line continues after a backslash, with
    an option.
    """
    first, *words = re.split(r" (?=-)", " ".join(paragraph.split()))
    lines = [f"\b\n{first}"]
    for word in words:
        if len(lines[-1]) + len(word) < EXAMPLE:
            lines[-1] += f" {word}"
        else:
            lines[-1] += " \\"
            lines.append(f"    {word}")
    return "\n".join(lines)


def main() -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 bad input, 130 interrupted, 143
    terminated.
    """
    terminal.reopen_closed()
    signal.signal(signal.SIGTERM, _terminate)
    atexit.register(
        signal.signal, signal.SIGINT, signal.SIG_IGN
    )  # Python has no signal handlers while it exits
    warnings.showwarning = partial(_warn, warnings.showwarning, set())
    try:
        code = cli.main(prog_name="pipeline", standalone_mode=False) or 0
    except InputError as error:
        code = _say(f"error: {error}", 2)
    except NoArgsIsHelpError as error:
        terminal.echo(error.format_message(), err=True)
        code = error.exit_code
    except click.NoSuchOption as error:
        code = _say(f"error: {_unknown_option(error)}", error.exit_code)
    except click.ClickException as error:
        message = " ".join(error.format_message().split())
        code = _say(f"error: {message}", error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        code = _say_ended(signal.getsignal(signal.SIGTERM) is _end_at_once)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if not parts.extras.brings(package):
            raise
        code = _say(f"error: {parts.extras.not_imported(package)}", 2)
    except OSError as error:
        code = _say_refused(error)
    except (RuntimeError, MemoryError) as error:
        code = _say_known(error)
    finally:
        progress.close_log()
    sys.exit(code)


# Options of most commands, which other programs take before a command's name.
OF_COMMANDS = ("--root", "--params", "-S", "--log")


def _unknown_option(error: click.NoSuchOption) -> InputError:
    """The error for an option that a command does not have."""
    command = error.ctx and error.ctx.command
    if command is cli and error.option_name in OF_COMMANDS:
        return InputError(
            f"{error.option_name} is an option of the commands and comes after their name: "
            f"pipeline COMMAND {error.option_name} …"
        )
    known: list[str] = []
    if command:
        for option in command.params:
            known += [name for name in option.opts if name.startswith("-")]
    known.append("--help")
    listed_by = ""
    if error.ctx:
        listed_by = f"`{error.ctx.command_path} --help`"
    return unknown("option", error.option_name, known, listed_by)


def _terminate(number: int, frame: object) -> None:
    """End as by Ctrl-C, so that finished work is kept."""
    signal.signal(signal.SIGTERM, _end_at_once)
    raise KeyboardInterrupt


def _say_ended(terminated: bool) -> int:
    # A second signal ends at once, if running work takes long to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)
    if terminated:
        return _say("terminated; run the same command again to resume", 143)
    return _say("interrupted; run the same command again to resume", 130)


def _end_at_once(number: int, frame: object) -> None:
    os._exit(128 + number)


def _warn(
    otherwise: Callable[..., None],
    printed: set[str],
    message: Warning | str,
    category: type[Warning],
    *place: Any,
) -> None:
    if not issubclass(category, InputWarning):
        otherwise(message, category, *place)
    elif str(message) not in printed:
        printed.add(str(message))
        progress.say(f"warning: {message}")


def _say_refused(error: OSError) -> int:
    """Print an error of the operating system: exit code 2 for a name or place that the command
    cannot use, else 1, to try again. A reader of standard output that has ended, such as `head`,
    needs no word.
    """
    if isinstance(error, BrokenPipeError) and not error.filename:
        terminal.discard(sys.stdout)
        return 1
    named = ""
    if error.filename:
        named = f": {error.filename}"
    if isinstance(error, regular.NoRegularFile):
        return _say(f"error: {error.filename}: is no regular file; name a file", 2)
    if error.errno in BAD_NAMES:
        return _say(f"error: {error.strerror}{named}", 2)
    if error.errno in READ_ONLY:
        permit = "change its permissions or those of its folder, or choose another place"
        return _say(f"error: {error.strerror}{named}; {permit}", 2)
    advice = "run again to resume; finished work is kept"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = f"free some space and {advice}"
    reason = error.strerror or error
    return _say(f"error: {reason}{named}; {advice}", 1)


def _say_known(error: RuntimeError | MemoryError) -> int:
    """Print that memory is short, of the machine or of a GPU, or that links form a loop. Any other
    error is raised.
    """
    if short_of_memory(error):
        return _say("error: out of memory; use smaller batches and run again to resume", 1)
    if str(error).startswith("Symlink loop"):  # Path.resolve before Python 3.13
        return _say(f"error: {error}: the link leads in a circle; name a file or folder", 2)
    raise error


def _say(line: str, code: int) -> int:
    progress.say(line, whole=True)
    return code


if __name__ == "__main__":
    main()
