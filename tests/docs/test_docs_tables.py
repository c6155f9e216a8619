"""Every table of numbers comes from a file, or says when it was written down."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import PAGES, ROOT

from benchmarks import docs

RECORD = re.compile(r"\*\(record: (?:`[^`]+`, )?written down in commits? [0-9a-f]{8}(?: to [0-9a-f]{8})?, "
                    r"2\d{3}-[01]\d-[0-3]\d(?: to 2\d{3}-[01]\d-[0-3]\d)?(?:, [^`]+)?\)\*")
"""The line above a table that was typed in, see CONTRIBUTING.md."""
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^ *\|.*\n?)+", re.MULTILINE)


def typed(text: str) -> Iterator[tuple[str, str]]:
    """The tables of a page that no command writes, each with the line of text above it."""
    text = docs.MARKED.sub("", FENCED.sub("", text))
    for found in TABLE.finditer(text):
        above = text[:found.start()].rstrip().rpartition("\n")[2]
        yield above, found[0]


def of_numbers(table: str) -> bool:
    """Whether a column is set right, as columns of numbers are, or a third of the cells begin with a number."""
    _, rule, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines())
    cells = [cell for row in rows for cell in row[1:]]
    numbers = sum(bool(re.match(r"[−+<*`]*\d", cell)) for cell in cells)
    return any(cell.endswith("-:") for cell in rule) or 3 * numbers >= len(cells)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_table_of_numbers_comes_from_a_file_or_is_a_record(page: Path) -> None:
    unsaid = [table.splitlines()[0] for above, table in typed(page.read_text(encoding="utf-8"))
              if of_numbers(table) and not RECORD.fullmatch(above)]
    assert not unsaid, "from a file or under a record, see CONTRIBUTING.md"


def test_records_name_commits_of_the_history() -> None:
    asked = subprocess.run(["git", "rev-list", "HEAD"], cwd=ROOT, check=False, capture_output=True, text=True)
    shallow = subprocess.run(["git", "rev-parse", "--is-shallow-repository"], cwd=ROOT, check=False,
                             capture_output=True, text=True).stdout.strip()
    if shallow != "false":
        pytest.skip("needs a clone with its history")
    history = {line[:8] for line in asked.stdout.splitlines()}
    named = {(page.name, commit) for page in PAGES for record in RECORD.finditer(page.read_text(encoding="utf-8"))
             for commit in re.findall(r"(?:commits?|to) ([0-9a-f]{8})\b", record[0])}
    assert named
    assert not {(page, commit) for page, commit in named if commit not in history}


RIGHT, LEFT = "| | RSUM |\n|:--|--:|\n| R | 230.3 |\n", "| | RSUM |\n|:--|:--|\n| R | 230.3 |\n"
SAID = "*(record: `pipeline study`, written down in commit 17f9ed10, 2026-11-22, 2 cores)*"


@pytest.mark.parametrize(("text", "found"), [
    (RIGHT, True), (LEFT, True), (f"Numbers:\n\n{RIGHT}", True), (f"{SAID}\n\n{RIGHT}", False),
    (f"{SAID}\n\nNumbers:\n\n{RIGHT}", True), (SAID.replace("17f9ed10", "lately") + f"\n\n{RIGHT}", True),
    (f"{SAID}\n\n{RIGHT}\n{RIGHT}", True), (f"<!-- numbers: a -->\n\n{RIGHT}\n<!-- end -->\n", False),
    (f"```\n{RIGHT}```\n", False),
    ("| option | default |\n|:--|:--|\n| `a` | none |\n| `b` | 20 %, as there |\n", True),
    ("| option | what |\n|:--|:--|\n| `a` | 20 |\n| `b` | text |\n| `c` | text |\n| `d` | text |\n", False)])
def test_a_table_without_either_is_found(text: str, found: bool) -> None:
    assert any(of_numbers(table) and not RECORD.fullmatch(above) for above, table in typed(text)) is found
