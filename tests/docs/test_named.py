"""What texts name is there: files, what stands in them, and options."""

from __future__ import annotations

import re

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


def test_files_on_pages_are_there() -> None:
    for page in PAGES:
        named = re.findall(rf"`({PLACE})`", page.read_text(encoding="utf-8"))
        ours = [name for name in named if not any(word in name for word in USERS)]
        assert [name for name in ours if not (ROOT / name).exists()] == [], page


def test_what_pages_find_in_a_file_stands_there() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, file in re.findall(rf"`(\w+)`\s+(?:of|in)\s+`({PLACE}\.py)`", text):
            content = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"\b{name}\b", content), (page, name, file)


def test_code_that_settings_name_is_there() -> None:
    for file in (*SETTINGS, ROOT / "Makefile"):
        named = re.findall(rf"{PLACE}\.(?:py|md)\b", file.read_text(encoding="utf-8"))
        assert [name for name in named if not (ROOT / name).exists()] == [], file


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


def test_options_in_texts_are_some_commands() -> None:
    block = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    there = options()
    for page in PAGES:
        text = block.sub("", page.read_text(encoding="utf-8"))
        named = re.findall(r"`(--[a-z][a-z-]*)", text)
        assert sorted({*named} - there) == [], page


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
