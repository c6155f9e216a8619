"""What a spreadsheet would run when it opens a CSV file is written as text, in every file that
people open.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from pipeline.foundation.parts.wrapping import cell
from pipeline.judge.figures import drawing
from pipeline.judge.systems.scores import measured
from pipeline.make.features.store import ledger
from pipeline.make.features.store.writer import failures_csv

FORMULA = "=HYPERLINK(1)"


@pytest.mark.specification
@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((text, f"'{text}") for text in (FORMULA, "+1", "-1", "@SUM(1)")),
        ("\tx", "'\\tx"),
        ("a=b", "a=b"),
        ("", ""),
        (-1.5, -1.5),
    ],
)
def test_text_that_begins_like_a_formula_gets_an_apostrophe(value: Any, written: Any) -> None:
    assert cell(value) == written


def test_files_that_people_open_hold_no_formula(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured.write_query_tables(
        tmp_path / "q.csv", [pd.DataFrame({"protocol": ["all"], f"{FORMULA} rank": [-1.0]})]
    )
    assert (tmp_path / "q.csv").read_text() == f"protocol,'{FORMULA} rank\nall,-1.0\n"
    monkeypatch.setattr(
        ledger, "entries", lambda store, layout: [SimpleNamespace(failed={0: FORMULA})]
    )
    layout: Any = SimpleNamespace(total=1)
    assert (
        failures_csv(tmp_path, layout, [FORMULA])[0].splitlines()[1] == f"0,'{FORMULA},'{FORMULA}"
    )
    figure: Any = SimpleNamespace(savefig=lambda *where, **how: None)
    drawing.save(
        drawing.Drawing(figure, "", pd.DataFrame({"caption": [FORMULA], "rank": [-1]})),
        tmp_path,
        "f",
    )
    assert (tmp_path / "f.csv").read_text() == f"caption,rank\n'{FORMULA},-1\n"
