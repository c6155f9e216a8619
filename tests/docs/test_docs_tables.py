"""Every table of numbers comes from a file, or says when it was written down."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from pages import PAGES, ROOT

from benchmarks import docs, numbers

RECORD = re.compile(
    r"\*\(record: (?:`[^`]+`, )?written down in commits? [0-9a-f]{8}(?: to [0-9a-f]{8})?, "
    r"2\d{3}-[01]\d-[0-3]\d(?: to 2\d{3}-[01]\d-[0-3]\d)?(?:, [^`]+)?\)\*"
)
"""The line above a table that was typed in, and first in its file, see CONTRIBUTING.md."""
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^ *\|.*\n?)+", re.MULTILINE)


def typed(text: str) -> Iterator[tuple[str, str]]:
    """The tables of a page that no command writes, each with the line of text above it."""
    text = docs.MARKED.sub("", FENCED.sub("", text))
    for found in TABLE.finditer(text):
        above = text[: found.start()].rstrip().rpartition("\n")[2]
        yield above, found[0]


def of_numbers(table: str) -> bool:
    """Whether a column is set right, as columns of numbers are, or a third of the cells begin with
    a number.
    """
    _, rule, *rows = (
        [cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.splitlines()
    )
    cells = [cell for row in rows for cell in row[1:]]
    numbers = sum(bool(re.match(r"[−+<*`]*\d", cell)) for cell in cells)
    return any(cell.endswith("-:") for cell in rule) or 3 * numbers >= len(cells)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_table_of_numbers_comes_from_a_file_or_is_a_record(page: Path) -> None:
    unsaid = [
        table.splitlines()[0]
        for above, table in typed(page.read_text(encoding="utf-8"))
        if of_numbers(table) and not RECORD.fullmatch(above)
    ]
    assert not unsaid, "from a file or under a record, see CONTRIBUTING.md"


def recorded() -> Iterator[tuple[str, str, str]]:
    """The page or file, commit and day of every record; of several commits, the first and the
    last.
    """
    for page in [*PAGES, *numbers.FILES.rglob("*.csv")]:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"^\*\(record: .*", text, re.MULTILINE)
        if page.suffix == ".csv":
            lines = [f"*({text.splitlines()[0].removeprefix('# ')})*"]
        for line in lines:
            assert RECORD.fullmatch(line), f"{page.name}: {line}: see CONTRIBUTING.md for its form"
            commits = re.findall(r"(?:commits?|to) ([0-9a-f]{8})\b", line)
            days = re.findall(r"\b2\d{3}-\d\d-\d\d\b", line)
            yield from (
                (page.name, commit, day)
                for commit, day in zip(commits, (days[0], days[-1]), strict=False)
            )


def untrue(
    records: Iterable[tuple[str, str, str]], history: Mapping[str, str], is_whole: bool
) -> set[tuple[str, str, str]]:
    """The records whose commit the history lacks or has on another day. history: commit -> day.

    A shallow clone may lack commits, but none of a day after its first one's.
    """
    first = min(history.values(), default="9999")
    return {
        (page, commit, day)
        for page, commit, day in records
        if (day != history[commit] if commit in history else is_whole or day > first)
    }


def test_records_name_commits_of_the_history() -> None:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, check=False, capture_output=True, text=True
        ).stdout.strip()

    records = [*recorded()]
    history = {line[:8]: line[-10:] for line in git("log", "--format=%H %cs").splitlines()}
    assert records
    assert (
        untrue(records, history, is_whole=git("rev-parse", "--is-shallow-repository") == "false")
        == set()
    )


def test_a_record_of_an_unknown_commit_is_found_as_far_as_the_history_goes() -> None:
    history = {"bbbbbbbb": "2026-11-22", "cccccccc": "2026-11-23"}
    right, old = ("a.md", "cccccccc", "2026-11-23"), ("a.md", "aaaaaaaa", "2026-11-21")
    unknown, moved = ("a.md", "dddddddd", "2026-11-23"), ("a.md", "cccccccc", "2026-11-24")
    every = [right, old, unknown, moved]
    assert untrue(every, history, is_whole=True) == {old, unknown, moved}
    assert untrue(every, history, is_whole=False) == {unknown, moved}
    assert untrue(every, {}, is_whole=False) == set()


RIGHT, LEFT = "| | RSUM |\n|:--|--:|\n| R | 230.3 |\n", "| | RSUM |\n|:--|:--|\n| R | 230.3 |\n"
SAID = "*(record: `pipeline lab study`, written down in commit 17f9ed10, 2026-11-22, 2 cores)*"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (RIGHT, True),
        (LEFT, True),
        (f"Numbers:\n\n{RIGHT}", True),
        (f"{SAID}\n\n{RIGHT}", False),
        (f"{SAID}\n\nNumbers:\n\n{RIGHT}", True),
        (SAID.replace("17f9ed10", "lately") + f"\n\n{RIGHT}", True),
        (f"{SAID}\n\n{RIGHT}\n{RIGHT}", True),
        (f"<!-- numbers: a -->\n\n{RIGHT}\n<!-- end -->\n", False),
        (f"```\n{RIGHT}```\n", False),
        ("| option | default |\n|:--|:--|\n| `a` | none |\n| `b` | 20 %, as there |\n", True),
        (
            "| option | what |\n|:--|:--|\n| `a` | 20 |\n| `b` | text |\n| `c` | text |\n| `d` | text |\n",
            False,
        ),
    ],
)
def test_a_table_without_either_is_found(text: str, found: bool) -> None:
    assert (
        any(of_numbers(table) and not RECORD.fullmatch(above) for above, table in typed(text))
        is found
    )
