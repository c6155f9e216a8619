"""The pages that users read, and the commands on them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
AT_THE_TOP = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
PAGES = [
    *(ROOT / name for name in AT_THE_TOP),
    *sorted((ROOT / "docs").glob("*.md")),
]
SETTINGS = [
    *(
        ROOT / name
        for name in (
            "params.yaml",
            "dvc.yaml",
            "pyproject.toml",
            "pipeline/foundation/settings/defaults.yaml",
        )
    ),
    *sorted(ROOT.glob("manifests/**/*.yaml")),
]
"""Files whose comments name commands."""


def blocks(page: Path, *languages: str) -> Iterator[str]:
    """The fenced blocks of these languages on a page."""
    fenced = re.findall(
        r"^ *```(\w*)\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    yield from (text for language, text in fenced if language in languages)


def lines(block: str) -> list[str]:
    """The lines of a block of shell commands as a user would paste them, those that go on with \\
    as one.
    """
    joined = block.replace("\\\n", " ")
    return [line.strip().removeprefix("$ ") for line in joined.splitlines() if line.strip()]


def commands(page: Path) -> Iterator[list[str]]:
    """Every `pipeline` command on a page, in blocks and in the text, as words."""
    in_blocks = [
        line
        for block in blocks(page, "sh", "bash", "console", "text", "")
        for line in lines(block)
        if "pipeline" in line
    ]
    in_text = re.findall(
        r"(?<!`)`(pipeline [^`]+)`(?!`)", page.read_text(encoding="utf-8").replace("\n", " ")
    )
    for line in in_blocks + in_text:
        for part in re.split(r" && |; ", line):
            words = shlex.split(part, comments=True)
            if words[:1] == ["pipeline"]:
                yield words[1:]
