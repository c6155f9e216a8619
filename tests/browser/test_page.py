"""results/report.html in Chromium, from disk and without network. Run by `make browser-test`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import invented_run
import pytest

from stages import cli

pytestmark = pytest.mark.browser
PARAMS = str(Path(__file__).parents[2] / "params.yaml")
VIEWS: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 900}},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the invented run, with forty images."""
    root = tmp_path_factory.mktemp("run")
    invented_run.make(root, images=40)
    for command in ("evaluate", "report"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["pipeline", command, "--root", str(root), "--params", PARAMS])
            with pytest.raises(SystemExit) as ended:
                cli.main()
        assert not ended.value.code
    return root / "results" / "report.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail("no Chromium here: apt-get install chromium, or name one in the variable CHROMIUM")
    with sync_playwright() as playwright:
        # Without a sandbox of its own Chromium also runs for root, as in a container; the page is our own.
        yield playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])


@pytest.fixture
def open_page(chromium: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """Open the page in a view; at the end nothing may have been asked of a network, or gone wrong."""
    contexts, faults = [], []

    def open_view(view: str = "desktop", fragment: str = "") -> Any:
        contexts.append(chromium.new_context(offline=True, **VIEWS[view]))
        page = contexts[-1].new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else faults.append(
            request.url))
        page.goto(report.as_uri() + fragment)
        return page
    yield open_view
    for context in contexts:
        context.close()
    assert not faults


@pytest.mark.parametrize("view", VIEWS)
def test_page_is_accessible_and_fits(open_page: Callable[..., Any], view: str) -> None:
    """No finding by axe (names, roles, contrast, ...), with all parts open; nothing is wider than the screen."""
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(view)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.wait_for_timeout(300)  # until what was opened is laid out
    findings = Axe().run(page).response["violations"]
    assert not [(finding["id"], finding["nodes"][0]["html"][:200]) for finding in findings]
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_hostile_captions_are_shown_as_they_are(open_page: Callable[..., Any]) -> None:
    page = open_page()
    assert page.title().startswith("Image-text retrieval")
    for caption in invented_run.CAPTIONS:
        page.fill("#words", caption.split()[0])
        shown = page.locator("#found button .title > [dir=auto]").evaluate_all(
            "nodes => nodes.map(node => node.textContent)")
        assert caption in shown


def test_searching_and_opening_a_query(open_page: Callable[..., Any]) -> None:
    page = open_page()
    assert page.inner_text("#count") == "80 queries fit."
    page.fill("#words", "NUMBER 7")
    titles = page.locator("#found button").all_inner_texts()
    assert titles
    assert all("number" in title and "7" in title for title in titles)
    page.locator("#found button").first.click()
    assert page.inner_text("#detail-title") in titles[0]
    assert page.locator("#answer ol.images").count() == 3
    assert page.inner_text("#announcement").startswith("Shown: caption number")
    assert page.locator("#found button[aria-current=true]").count() == 1
    page.fill("#words", "no caption holds this")
    assert "No query fits" in page.inner_text("#count")
    assert not page.is_visible("#detail")
    page.fill("#words", "number 8")
    assert "8" in page.inner_text("#detail-title")


def test_ground_truth_is_marked_where_it_was_retrieved(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.select_option("#filter", "first")
    page.locator("#found button").first.click()
    last = page.locator("#answer ol.images").last.locator("li")
    assert "ground truth" in last.first.inner_text()
    assert last.first.get_attribute("class") == "right"
    page.select_option("#filter", "missed")
    page.locator("#found button").first.click()
    assert page.locator("#answer ol.images").last.locator("li.right").count() == 0


def test_images_find_captions(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.check("input[value=i2t]")
    assert page.inner_text("#count") == "40 queries fit."
    page.select_option("#filter", "first")
    page.locator("#found button").first.click()
    first = page.locator("#answer ol.texts").last.locator("li").first
    assert "its own:" in first.text_content()


def test_keyboard_alone_reaches_and_opens_a_query(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#words")
    page.keyboard.type("number")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert page.locator("#found button").nth(1).get_attribute("aria-current") == "true"
    page.keyboard.press("End")
    assert page.locator("#found button").nth(29).evaluate("node => node === document.activeElement")
    page.keyboard.press("Tab")  # one stop, not thirty
    assert page.evaluate("document.activeElement.id") == "more"
    page.keyboard.press("Shift+Tab")
    assert page.locator("#found button").nth(29).evaluate("node => node === document.activeElement")
    page.locator("#more").press("Enter")
    assert page.locator("#found button").nth(30).evaluate("node => node === document.activeElement")


def test_a_query_has_an_address(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.locator("#found button").nth(4).click()
    title, fragment = page.inner_text("#detail-title"), page.evaluate("location.hash")
    assert open_page(fragment=fragment).inner_text("#detail-title") == title


def test_a_phone_shows_each_systems_rsum(open_page: Callable[..., Any]) -> None:
    cell = open_page("phone").locator("#results tbody td").first
    box = cell.bounding_box()
    assert 0 < box["x"] < box["x"] + box["width"] <= 360


def test_on_a_phone_the_answer_comes_into_view(open_page: Callable[..., Any]) -> None:
    page = open_page("phone")
    page.locator("#found button").nth(2).tap()
    assert page.evaluate("document.activeElement.id") == "detail-title"
    box = page.locator("#detail-title").bounding_box()
    assert 0 <= box["y"] < 740
