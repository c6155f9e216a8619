"""What texts name is there: files, what stands in them, and options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PAGES, ROOT, SETTINGS

from stages import cli

SOURCES = sorted(
    file
    for folder in ("pipeline", "stages", "benchmarks", "tests")
    for file in ROOT.glob(f"{folder}/**/*.py")
)
PLACE = r"(?:pipeline|stages|tests|manifests|benchmarks|docs)/[\w./-]+"
USERS = ("NAME", "mine")
"""What stands for a name that the user chooses."""
ELSEWHERE = {
    "tools/generate_tsv.py",
    "lib/fast_rcnn/test.py",
    "generate_anchors.py",
    "extract_grid_feature.py",
    "lib/encoders.py",
    "lib/modules/aggr/gpo.py",
    "modules/adcap.py",
    "losses.py",
}
"""Files of the released code that ours is compared with."""
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@every_page
def test_files_on_a_page_are_there(page: Path) -> None:
    named = re.findall(rf"`({PLACE})`", page.read_text(encoding="utf-8"))
    assert [
        name
        for name in named
        if not any(word in name for word in USERS) and not (ROOT / name).exists()
    ] == []


@every_page
def test_what_a_page_finds_in_a_file_stands_there(page: Path) -> None:
    named = re.findall(rf"`(\w+)`\s+(?:of|in)\s+`({PLACE}\.py)`", page.read_text(encoding="utf-8"))
    assert [
        (name, file)
        for name, file in named
        if not re.search(rf"\b{name}\b", (ROOT / file).read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize("file", [*SETTINGS, ROOT / "Makefile"], ids=lambda file: file.name)
def test_code_that_settings_name_is_there(file: Path) -> None:
    named = re.findall(rf"{PLACE}\.(?:py|md)\b", file.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_pages_name_files_and_what_stands_in_them() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(re.findall(rf"`{PLACE}`", text)) > 60
    assert len(re.findall(rf"`\w+`\s+(?:of|in)\s+`{PLACE}\.py`", text)) > 10


def options() -> set[str]:
    """The options of all commands, without their former names."""
    commands = map(cli.command, cli.commands())
    return {
        "--help",
        *(name for command in commands for option in command.params for name in option.opts),
    }


@every_page
def test_options_in_the_text_are_some_commands(page: Path) -> None:
    text = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    named = re.findall(r"`(--[a-z][a-z-]*)", text)
    assert sorted({*named} - options()) == []


def test_files_that_code_names_are_there() -> None:
    named = {
        name
        for file in SOURCES
        for name in re.findall(r"`([\w/]+\.py)`", file.read_text(encoding="utf-8"))
    }
    there = {
        "/".join(parts[at:])
        for parts in (file.relative_to(ROOT).parts for file in SOURCES)
        for at in range(len(parts))
    }
    assert len(named) > 10
    assert sorted(named - ELSEWHERE - there) == []
