"""Characters that a terminal obeys or a reader does not see are escapes wherever text of data is
shown.
"""

import dataclasses
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.metrics.base import nested
from pipeline.foundation.parts.wrapping import cell
from pipeline.judge.systems.scores import runs
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import (
    comma_separated,
    compared,
    evaluated,
    html,
    latex,
    markdown,
    text as plain_text,
)
from pipeline.judge.tables.table import Cell, Note, RowGroup, Table, grid
from pipeline.run.report import rows

# An escape, a bell, delete, the next line, C1's introducer of a sequence, text turned round.
HOSTILE = "Evil\x1b[31mred\x07\x7f\x85\x9b1m\u202eend"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31m dog", "a\\x1b[31m dog"),
        ("a\x00dog", "a\\x00dog"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("un été 犬", "un été 犬"),
    ],
)
def test_of_the_search_page_and_of_csv(text: str, shown: str) -> None:
    page = html.search(text, [html.Section(text, [])])
    assert shown in page
    assert text in page or text != shown
    assert not set(page) & {"\x1b", "\x00", "\u202e"}
    assert cell(text) == shown


def test_of_csv_lines_stay_and_formulas_are_text() -> None:
    assert cell("two\nlines") == "two\nlines"
    assert cell("=1+1\x1b") == "'=1+1\\x1b"
    assert cell("\ta") == "'\\ta"
    assert cell(3) == 3


def obeyed(written: str) -> list[str]:
    """The characters of a text that a terminal obeys or a reader does not see."""
    return [
        f"U+{ord(each):04X}"
        for each in written
        if (each != "\n" and unicodedata.category(each) in ("Cc", "Cf", "Zl", "Zp"))
    ]


def hostile_table() -> Table:
    """A table with hostile text wherever it holds text."""
    filled = grid((HOSTILE, HOSTILE), {HOSTILE: [(HOSTILE, Cell(Decimal("50.0"), bold="black"))]})
    group = filled.groups[0]
    row = dataclasses.replace(group.rows[0], sources=(HOSTILE,))
    columns = tuple(dataclasses.replace(each, above=(HOSTILE,)) for each in filled.columns)
    panel = dataclasses.replace(
        filled,
        columns=columns,
        groups=(RowGroup((row,), HOSTILE),),
        caption=HOSTILE,
        notes=(Note(HOSTILE, "a"), Note(HOSTILE)),
        made_from=(HOSTILE,),
    )
    return Table("table", (panel,))


def text_of(table: Table) -> str:
    return "\n".join(plain_text.to_text(table.panels[0]))


@pytest.mark.specification
@pytest.mark.parametrize(
    "write", [latex.to_latex, markdown.to_markdown, comma_separated.to_csv, text_of, rows.to_text]
)
def test_every_writer_of_tables_escapes_all_text(write: Callable[[Table], str]) -> None:
    written = write(hostile_table())
    assert "Evil" in written
    assert obeyed(written) == []


def test_names_of_systems_are_escaped_in_every_output(tmp_path: Path) -> None:
    scores = np.eye(6) + np.random.default_rng(0).random((6, 6))
    numbers = evaluate(scores, np.arange(6)).as_dict() | {"dataset": HOSTILE, "split": "test"}
    results: evaluated.Results = [(HOSTILE, numbers), (f"{HOSTILE}2", numbers)]
    for write in (evaluated.to_text, evaluated.to_table):
        written = write(results)
        assert "Evil" in written, write
        assert obeyed(written) == [], write
    tested = {"a": 600.0, "b": 0.0, "difference": -600.0, "interval": [-600.0, 600.0]}
    tested |= {
        "p": 0.01,
        "noise": None,
        "adjusted": 0.01,
        "adjusted_by": "Holm",
        "resolution": 0.01,
        "needs": None,
        "verdict": "lower",
        "spread": {"a": 1.0, "b": 1.0},
    }
    contrast: Any = nested(dict.fromkeys(STATISTICS, tested))
    contrast |= {"images": 6, "captions": 6, "protocol": "all", "over": ["images"]}
    contrast |= {"split": HOSTILE, "language": HOSTILE}
    names = [HOSTILE, f"{HOSTILE}2"]
    for write_pairs in (compared.to_text, *compared.WRITERS.values()):
        written = write_pairs(names, [[contrast]])
        assert "Evil" in written, write_pairs
        assert obeyed(written) == [], write_pairs
    system = System.of(HOSTILE, scores, np.arange(6))
    runs.write(tmp_path / "mine.run", system, 3, 0, 32)
    written = (tmp_path / "mine.run").read_text(encoding="utf-8")
    assert obeyed(written) == []
    assert {len(line.split()) for line in written.splitlines()} == {6}


def test_mark_up_that_a_template_joins_is_escaped_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter gives mark-up, whose text is no longer finalized."""
    source = '{{ shown.split("+") | join("+<wbr>"|safe) }}'
    loader: Any = jinja2.DictLoader({"name.html": source})
    monkeypatch.setattr(html, "PackageLoader", lambda *_: loader)
    page = html.page("report/name.html", shown=f"{HOSTILE}+<b>")
    assert "+<wbr>&lt;b&gt;" in page
    assert "Evil" in page
    assert obeyed(page) == []
