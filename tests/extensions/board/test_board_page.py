"""The page of a board: its numbers are the board's, and no name can do more than be read."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from itertools import combinations
from typing import Any

import html5lib
import numpy as np
import pytest
from made_board import LEVEL, made_board

from pipeline.extensions.board.page import to_html

HOSTILE = """</script><script>alert(1)</script>"'><img src=x onerror=alert(2)>&amp;\u202e"""


def unpacked(page: str, name: str) -> bytes:
    found = re.search(f'id="{name}">([^<]*)<', page)
    assert found
    return gzip.decompress(base64.b64decode(found[1]))


def chances_in(page: str) -> list[tuple[list[float], list[float]]]:
    """Each task's p, and adjusted p, as page.js finds them."""
    places = np.frombuffer(unpacked(page, "codes"), "<u2")
    found = []
    start = 0
    for task in json.loads(unpacked(page, "data"))["tasks"]:
        count = len(task["systems"]) * (len(task["systems"]) - 1) // 2
        of_task = [task["chances"][place] for place in places[start : start + 2 * count]]
        found.append((of_task[:count], of_task[count:]))
        start += 2 * count
    assert start == len(places)
    return found


def test_the_numbers_of_the_page_are_those_of_the_board() -> None:
    board = made_board()
    rounded = board["tasks"][1]  # one whose values are rounded, so its differences are its own
    for entry in rounded["systems"]:
        entry["value"] = round(entry["value"])
    page = to_html(board)
    data = json.loads(unpacked(page, "data"))
    assert data["names"] == [system["name"] for system in board["systems"]]
    for task, shown, (p, adjusted) in zip(
        board["tasks"], data["tasks"], chances_in(page), strict=True
    ):
        pairs = task["pairs"]
        assert p == pairs["p"]
        assert adjusted == pairs["adjusted"]
        differences = shown["differences"]
        assert (differences is not None) == (task is rounded)
        if differences is None:
            differences = [b - a for a, b in combinations(shown["values"], 2)]
        assert differences == pytest.approx(pairs["difference"], rel=1e-5, abs=1e-9)
        for at, entry in enumerate(task["systems"]):
            assert shown["systems"][at] == entry["system"]
            assert [shown["best"][at], shown["worst"][at]] == entry["rank"]
            assert [shown["low"][at], shown["high"][at]] == entry["interval"]


def test_chances_that_are_no_multiples_of_the_least_keep_four_digits_and_their_side_of_the_level() -> (
    None
):
    board = made_board(systems=120, tasks=1, unmeasured=())
    pairs = board["tasks"][0]["pairs"]
    rng = np.random.default_rng(0)
    adjusted = 10 ** rng.uniform(-6, 0, len(pairs["p"]))
    adjusted[:3] = [LEVEL, np.nextafter(LEVEL, 0), np.nextafter(LEVEL, 1)]
    pairs["adjusted"] = adjusted.tolist()
    ((_, shown),) = chances_in(to_html(board))
    assert shown == pytest.approx(adjusted.tolist(), rel=1.1e-3)
    np.testing.assert_array_equal(np.array(shown) < LEVEL, adjusted < LEVEL)


def test_the_table_as_csv_has_every_system_and_no_formulas() -> None:
    board = made_board()
    board["systems"][1]["name"] = "=1+1"
    link = re.search(r'href="data:text/csv;charset=utf-8;base64,([^"]*)"', to_html(board))
    assert link
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(link[1]).decode())))
    placed = board["over_tasks"]["systems"]
    names = [board["systems"][row["system"]]["name"].replace("=1", "'=1") for row in placed]
    assert [row["system"] for row in rows] == [*names, board["systems"][3]["name"]]
    assert [float(row["mean_rank"]) for row in rows[:-1]] == [row["mean_rank"] for row in placed]
    assert rows[-1]["place"] == ""
    assert [row["parameters"] for row in rows[:1]] == [
        str(board["systems"][0]["facts"]["parameters"])
    ]


def test_a_hostile_name_is_text_everywhere() -> None:
    board = made_board()
    board["systems"][0]["name"] = HOSTILE
    board["systems"][0]["facts"][HOSTILE] = 1.0
    board["systems"][3]["name"] = HOSTILE
    board["over_tasks"]["unplaced"][0]["missing"] = [HOSTILE]
    board["notes"] = [HOSTILE]
    for task in board["tasks"][:4]:
        task["name"] = f"{HOSTILE}{task['name']}"
        task["unit"] = HOSTILE
        task["metric"] = HOSTILE
    board["left_out"] = [{"unit": HOSTILE, "order": [1, 0, 2, 4, 5], "places": [1, 2, 3, 4, 5]}]
    page = to_html(board)
    tree = html5lib.HTMLParser(strict=False, namespaceHTMLElements=False).parse(page)
    assert not list(tree.iter("img"))
    assert len(list(tree.iter("script"))) == 3  # two of data, and page.js
    for element in tree.iter():
        assert not [name for name in element.attrib if str(name).startswith("on")]
    harmless = HOSTILE.replace("\u202e", "\\u202e")
    buttons = ["".join(each.itertext()) for each in tree.iter("button") if each.get("data-system")]
    assert buttons.count(harmless) == 2
    assert "\u202e" not in page
    assert "\\u202e" in unpacked(page, "data").decode()


def test_who_changes_places_has_the_place_of_the_table_before() -> None:
    board = made_board(systems=3, tasks=2, unmeasured=())
    rows = board["over_tasks"]["systems"]
    first, second, third = [row["system"] for row in rows]
    for row, place in zip(rows, (1, 1, 3), strict=True):
        row["place"] = place
    order = [second, first, third]
    board["left_out"] = [{"unit": "news", "order": order, "places": [1, 2, 3]}]
    page = to_html(board)
    assert f"<bdi>{board['systems'][first]['name']}</bdi> 1 → 2." in page
    assert page.count(" → ") == 1


def without_places() -> dict[str, Any]:
    """All tasks ask one question, so there are no places."""
    board = made_board(systems=3, tasks=2, unmeasured=())
    return {**board, "over_tasks": None, "left_out": []}


@pytest.mark.parametrize(
    ("board", "says"),
    [
        (made_board(systems=4, tasks=1, unmeasured=()), "has the best i2t median rank"),
        (made_board(systems=1, tasks=1, unmeasured=()), "its rank is 1."),
        (made_board(systems=2, tasks=2, unmeasured=((0, 0), (1, 1))), "Without a place"),
        (without_places(), "Without a place"),
    ],
    ids=["one task", "one system", "nobody is on every task", "one unit"],
)
def test_a_board_of_little_has_a_page(board: dict[str, Any], says: str) -> None:
    page = to_html(board)
    assert says in page
    assert page.count('class="choose"') == len(board["systems"])
