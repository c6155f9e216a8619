"""What `pipeline board` prints of large boards."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.extensions.board import tables
from pipeline.foundation.parts.errors import InputWarning

SYSTEMS = 50
TASKS = 40


def large() -> dict[str, Any]:
    """A board of systems that are on all tasks but the last, which is on one task alone."""
    rows = [
        {"system": each, "value": 50.0, "interval": [48, 52], "rank": [1, SYSTEMS], "letters": "a"}
        for each in range(SYSTEMS)
    ]
    tasks = []
    for each in range(TASKS):
        of_task = rows if each == 0 else rows[:-1]
        task = {
            "name": f"task_{each}",
            "unit": f"task_{each}",
            "metric": "RSUM",
            "less_is_better": False,
            "images": 5000,
            "captions": 25000,
            "protocol": "all",
            "sides": ["image", "caption"],
            "systems": of_task,
        }
        tasks.append(task)
    placed = []
    for each in range(SYSTEMS - 1):
        row = {"system": each, "place": each + 1, "mean_rank": 2.5, "borda": 9.0, "wins": 3.5}
        placed.append({**row, "places": [1, 49]})
    missing = [task["name"] for task in tasks[1:]]
    over = {
        "rule": "mean rank",
        "units": TASKS,
        "systems": placed,
        "unplaced": [{"system": SYSTEMS - 1, "missing": missing}],
        "stable": [],
    }
    names = [{"name": f"org__model_{each}", "tasks": TASKS, "facts": {}} for each in range(SYSTEMS)]
    return {"tasks": tasks, "systems": names, "over_tasks": over, "left_out": [], "notes": []}


def test_a_large_board_is_a_few_tables_that_fit_a_terminal() -> None:
    out = tables.to_text(large())
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 8 * (SYSTEMS + 4)
    heads = " ".join(line for line in lines if " T1 " in f"{line} " or " T40" in line)
    assert "T8" in heads
    assert "T33" in heads
    of_last = [line for line in lines if line.startswith("  org__model_49")]
    assert sum(line.count("–") - line.count("1–50") for line in of_last) == 5 + TASKS - 1
    assert "it is not measured on task_1, task_2, task_3 and 36 more" in " ".join(out.split())


def test_a_table_in_latex_has_the_rows_of_a_page_and_explains_its_own_tasks() -> None:
    source = tables.to_latex(large())
    floats = source.split(r"\begin{table")[1:]
    assert len(floats) == 2 * (1 + 4)  # 50 systems; over tasks, and 40 tasks by ten
    for each in floats:
        assert each.count("model") <= tables.ROWS_ON_PAPER + 1  # who has no place, in a note
    assert source.count("T11: task") == 1
    assert source.count(r"org\_\_model\_49 ") == 5 + 1
    assert source.count("continued") == 5


def test_names_are_escaped_in_every_form() -> None:
    board = large()
    board["systems"][0]["name"] = "=1+1|a_b<i>\x1b[31m"
    assert "\x1b" not in tables.to_text(board)
    assert r"\|a\_b&lt;i&gt;" in tables.to_markdown(board)
    with pytest.warns(InputWarning, match="cannot set"):
        assert r"a\_b" in tables.to_latex(board)
    assert "'=1+1" in tables.to_csv(board)
