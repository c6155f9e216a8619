"""Commands in README, docs and comments of settings: each exists, and so does each option, choice
and setting in it.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import click
import pytest
from pages import PAGES, ROOT, SETTINGS, commands

from pipeline.foundation import settings
from pipeline.foundation.settings import Settings
from stages import cli

OF_THE_EXAMPLE = "median"
"""The pooling that the package in docs/examples adds."""
OF_A_PAGE = "recipes.lw."
"""A recipe that docs/measured.md adds."""


def test_commands_are_found() -> None:
    assert sum(len(list(commands(page))) for page in PAGES) > 60


@pytest.mark.parametrize("page", [*PAGES, *SETTINGS], ids=lambda page: page.name)
def test_every_command_on_a_page_can_be_typed(page: Path) -> None:
    for name, *arguments in commands(page):
        if name.isupper() or name.startswith("-"):
            continue  # `pipeline COMMAND --help` names none
        if name in cli.GROUPS:
            name, arguments = f"{name} {arguments[0]}", arguments[1:]
        check(name, arguments)


@cache
def read(changes: tuple[str, ...]) -> Settings:
    return settings.load(ROOT / "params.yaml", changes)


def check(name: str, arguments: list[str]) -> None:
    """Parse a command line as the command does, and read its settings, without running it."""
    assert name in cli.commands(), name
    command = cli.command(name)
    context = click.Context(command, info_name=name)
    values, _, order = command.make_parser(context).parse_args(
        [word for word in arguments if word not in ("…", "...")]
    )
    given = defaultdict(list)
    for option in order:
        if isinstance(option, click.Option):
            found = values[option.name]
            given[option.name] = found if isinstance(found, list) else [found]
            for value in given[option.name]:
                if (
                    isinstance(option.type, click.Choice)
                    and not value.isupper()
                    and value != OF_THE_EXAMPLE
                ):
                    assert value in option.type.choices, f"{name} {option.opts[0]} {value}"
    changes = [
        change
        for change in given["changes"]
        if not any(word in change for word in ("NAME", "KEY", OF_A_PAGE))
    ]
    read(tuple(changes))
