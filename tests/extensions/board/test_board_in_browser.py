"""The page of a board in Chromium, from disk and without network. Run by `make browser-test`."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from made_board import LEVEL, made_board

from pipeline.extensions.board.page import to_html
from pipeline.judge.tables.table import rounded, to_digits

pytestmark = pytest.mark.browser
HOSTILE = """</script><script>alert(1)</script>"'><img src=x onerror=alert(2)>"""
VIEWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1440, "height": 900}},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail(
            "no Chromium here: apt-get install chromium, or name one in the variable CHROMIUM"
        )
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])


@pytest.fixture
def shown(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a board's page; at the end nothing may have been asked of a network, or gone wrong."""
    contexts, faults = [], []

    def show(board: dict[str, Any], view: str = "desktop") -> Any:
        file = tmp_path / "board.html"
        file.write_text(to_html(board), encoding="utf-8")
        contexts.append(chromium.new_context(offline=True, **VIEWS[view]))
        page = contexts[-1].new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        here = ("file:", "data:", "blob:")
        page.on(
            "request",
            lambda request: None if request.url.startswith(here) else faults.append(request.url),
        )
        page.goto(file.as_uri())
        page.locator("#differences tbody tr").first.wait_for()
        return page

    yield show
    for context in contexts:
        context.close()
    assert not faults


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_is_accessible_and_fits(shown: Callable[..., Any], view: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = shown(made_board(), view)
    page.locator(".plot .drawn").first.focus()
    for opened in (False, True):
        if opened:
            page.locator("figure.task .open").first.click()
        findings = Axe().run(page).response["violations"]
        assert not [(finding["id"], finding["nodes"][0]["html"][:200]) for finding in findings]
        assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    page.keyboard.press("Escape")
    assert not page.locator("dialog").is_visible()


def pair_in_words(board: dict[str, Any], a: int, b: int) -> list[list[str]]:
    """What the panel has to say of B minus A, from the board alone."""
    rows = []
    for task in board["tasks"]:
        places = [entry["system"] for entry in task["systems"]]
        if a not in places or b not in places:
            rows.append([task["name"], "not both measured"])
            continue
        first, second = sorted((places.index(a), places.index(b)))
        pair = sum(len(places) - 1 - row for row in range(first)) + second - first - 1
        difference = task["pairs"]["difference"][pair]
        if places.index(a) > places.index(b):
            difference = -difference
        word = "cannot tell"
        if task["pairs"]["adjusted"][pair] < LEVEL:
            word = "better"
            if (difference < 0) != task["less_is_better"]:
                word = "worse"
        chances = []
        for kind in ("p", "adjusted"):
            chance = task["pairs"][kind][pair]
            text = "< 0.001"
            if chance > 1.5 * task["resolution"]:
                text = str(to_digits(chance, 2))
            chances.append(text)
        text = f"{rounded(difference):+}".replace("-", "−")
        rows.append([task["name"], text, *chances, word])
    return rows


def with_halves(task: dict[str, Any]) -> None:
    """Differences halfway between two decimals: of the systems 5 and 3 it is 0.25."""
    for entry in task["systems"]:
        entry["value"] = 400 - entry["system"] / 8
    values = [entry["value"] for entry in task["systems"]]
    task["pairs"]["difference"] = [b - a for a, b in combinations(values, 2)]


def panel(page: Any) -> list[list[str]]:
    rows = page.locator("#differences tbody tr")
    return [rows.nth(row).locator("th, td").all_text_contents() for row in range(rows.count())]


def test_two_systems_are_compared_by_keyboard(shown: Callable[..., Any]) -> None:
    board = made_board(seed=2)
    with_halves(board["tasks"][2])
    page = shown(board)
    first = page.locator("button.choose[data-system='5']")
    page.locator("button.choose[aria-pressed=true]").nth(1).focus()  # A of those to begin with
    page.keyboard.press("Enter")
    first.focus()
    page.keyboard.press("Enter")
    page.locator("button.choose[data-system='3']").focus()  # missing on the first task
    page.keyboard.press("Space")
    page.locator("#counts", has_text=board["systems"][3]["name"]).wait_for()
    expected = pair_in_words(board, 5, 3)
    assert expected[0][1:] == ["not both measured"]
    assert {"cannot tell", "better"} <= {row[-1] for row in expected}
    assert panel(page) == expected
    better = sum(row[-1] == "better" for row in expected)
    counts = page.locator("#counts").text_content()
    assert f"significantly better than {board['systems'][5]['name']} (A) on {better} task" in counts
    assert counts.endswith("not both measured on 1 task.")
    page.locator("#swap").click()
    page.locator("#counts bdi.one", has_text=board["systems"][3]["name"]).wait_for()
    assert panel(page) == pair_in_words(board, 3, 5)


def test_the_table_sorts_by_keyboard_and_is_filtered(shown: Callable[..., Any]) -> None:
    board = made_board(systems=12)
    page = shown(board)
    heading = page.locator("#systems th", has_text="parameters")
    for order, sign in (("ascending", 1), ("descending", -1)):
        heading.locator("button").focus()
        page.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == order
        assert page.locator("#systems [aria-sort]").count() == 1
        rows = page.locator("#systems tbody tr").evaluate_all(
            "rows => rows.map((row) => Number(row.dataset.system))"
        )
        facts = [board["systems"][row]["facts"].get("parameters") for row in rows]
        known = [fact for fact in facts if fact is not None]
        assert facts[len(known) :] == [None]  # what is missing is last in both
        assert known == sorted(known, key=lambda fact: sign * fact)
    page.locator("#words").fill("LARGE i")
    shown_names = page.locator("tbody tr[data-system]:visible button.choose").all_text_contents()
    names = [system["name"] for system in board["systems"]]
    fitting = [name for name in names if "large" in name and "i" in name]
    assert 0 < len(fitting) < len(names)
    assert sorted(bare(name) for name in shown_names) == sorted(fitting)
    page.locator("#words").fill("")
    page.locator(".most").first.fill("0.2 B")
    small = [s for s in board["systems"] if s["facts"].get("parameters", 1e99) <= 2e8]
    assert page.locator("#shown").text_content() == f"{len(small)} of 12 systems"


def bare(name: str) -> str:
    """A system's name without the A or B before it."""
    return name.removeprefix("A").removeprefix("B")


def test_a_system_is_read_in_all_plots(shown: Callable[..., Any]) -> None:
    board = made_board()
    page = shown(board)
    page.locator(".drawn").first.focus()
    page.keyboard.press("ArrowDown")
    task = board["tasks"][0]
    second = sorted(task["systems"], key=lambda entry: -entry["value"])[1]
    text = page.locator(".drawn").first.get_attribute("aria-valuetext")
    name = board["systems"][second["system"]]["name"]
    assert text.startswith(f"{name}: {rounded(second['value'])} [")
    page.locator(".said", has_text=name).nth(len(board["tasks"]) - 1).wait_for()
    page.locator("figure.task .open").first.click()
    row = page.locator("dialog tbody tr").nth(1).locator("th, td").all_text_contents()
    assert row[:3] == ["2", name, str(rounded(second["value"]))]
    assert row[4:] == [*map(str, second["rank"]), second["letters"]]


def test_a_hostile_name_runs_nothing(shown: Callable[..., Any]) -> None:
    board = made_board()
    for system in board["systems"]:
        system["name"] += HOSTILE
    for task in board["tasks"]:
        task["name"] += HOSTILE
    page = shown(board)
    page.locator("figure.task .open").first.click()
    assert page.locator("dialog h2").text_content() == board["tasks"][0]["name"]
    assert page.locator("img").count() == 0


def test_two_hundred_systems_on_forty_tasks(shown: Callable[..., Any], tmp_path: Path) -> None:
    board = made_board(systems=200, tasks=40)
    page = shown(board)
    assert (tmp_path / "board.html").stat().st_size <= 8e6
    start = time.perf_counter()
    page.reload()
    page.locator("#differences tbody tr").first.wait_for()
    assert time.perf_counter() - start <= 3
