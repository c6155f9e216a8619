"""results/report.html in Chromium, from disk and without network. Run by `make browser-test`."""

from __future__ import annotations

import csv
import os
import re
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


def run(root: Path, command: str, *options: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "argv", ["pipeline", command, "--root", str(root), "--params", PARAMS, *options]
        )
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert not ended.value.code


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the invented run, with forty images."""
    root = tmp_path_factory.mktemp("run")
    invented_run.make(root, images=40)
    run(root, "evaluate")
    run(root, "report")
    return root / "results" / "report.html"


@pytest.fixture(scope="module")
def small_report(report: Path) -> Path:
    """The same with the candidates of eight images."""
    small = report.with_name("small.html")
    whole = report.read_bytes()
    run(report.parents[1], "report", "-S", "report.queries=8")
    report.rename(small)
    report.write_bytes(whole)
    return small


@pytest.fixture(scope="module")
def judged_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose captions are in two languages, and right for their own image and the next."""
    root = tmp_path_factory.mktemp("judged")
    manifest = invented_run.make(root, languages=["de", "en"])
    ids = manifest.images["image_id"].tolist()
    rows = [
        f"{caption},{ids[(ids.index(image) + step) % len(ids)]}"
        for caption, image in zip(
            manifest.table["caption_id"], manifest.table["image_id"], strict=True
        )
        for step in (0, 1)
    ]
    (root / "q.csv").write_text("\n".join(["caption,image", *rows, ""]), encoding="utf-8")
    run(root, "evaluate", "--qrels", str(root / "q.csv"))
    run(root, "report")
    return root / "results" / "report.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        pytest.fail(
            "no Chromium here: apt-get install chromium, or name one in the variable CHROMIUM"
        )
    with sync_playwright() as playwright:
        # Without a sandbox of its own Chromium also runs for root, as in a container; the page is our own.
        yield playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])


@pytest.fixture
def open_page(chromium: Any, report: Path) -> Iterator[Callable[..., Any]]:
    """Open the page in a view; at the end nothing may have been asked of a network, or gone wrong."""
    contexts, faults = [], []

    def open_view(view: str = "desktop", fragment: str = "", file: Path = report) -> Any:
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
        page.goto(file.as_uri() + fragment)
        return page

    yield open_view
    for context in contexts:
        context.close()
    assert not faults


def width(page: Any) -> float:
    """Of all that is shown. A phone's window grows with it, so it is compared with the screen's."""
    return float(page.evaluate("document.documentElement.scrollWidth"))


@pytest.mark.parametrize("view", VIEWS)
def test_page_is_accessible_and_fits(open_page: Callable[..., Any], view: str) -> None:
    """No finding by axe (names, roles, contrast, ...), with all parts open; nothing is wider than the screen."""
    from axe_playwright_python.sync_playwright import Axe

    page = open_page(view)
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.wait_for_timeout(300)  # until what was opened is laid out
    findings = Axe().run(page).response["violations"]
    assert not [(finding["id"], finding["nodes"][0]["html"][:200]) for finding in findings]
    assert width(page) <= page.viewport_size["width"]


@pytest.mark.parametrize("view", VIEWS)
def test_the_card_is_accessible_and_fits(
    open_page: Callable[..., Any], report: Path, view: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    card = report.with_name("card.html")
    if not card.exists():
        run(report.parents[1], "evaluate", "--system", "vse2ad-RG-bigru-s0", "--card", str(card))
    page = open_page(view, file=card)
    one, other = (table.bounding_box() for table in page.locator("#ranks table").all())
    assert (
        one["x"] + one["width"] <= other["x"] or one["y"] + one["height"] <= other["y"]
    )  # side by side, or below
    findings = Axe().run(page).response["violations"]
    assert not [(finding["id"], finding["nodes"][0]["html"][:200]) for finding in findings]
    assert width(page) <= page.viewport_size["width"]


def column(page: Any, number: int) -> list[str]:
    """The texts of a column of the results that are shown, without intervals."""
    texts = page.locator(f"#results-1-table tbody tr > :nth-child({number})").all_inner_texts()
    return [text.split()[0] for text in texts if text]


def test_the_table_is_sorted_by_a_click_or_a_key(open_page: Callable[..., Any]) -> None:
    page = open_page()
    sums = [float(text) for text in column(page, 2)]
    assert sums == sorted(sums, reverse=True)
    heading = page.locator("#results-1-table th[aria-sort]")
    assert (heading.inner_text().split()[0], heading.get_attribute("aria-sort")) == (
        "RSUM",
        "descending",
    )
    heading.locator("button").focus()
    page.keyboard.press("Enter")
    assert [float(text) for text in column(page, 2)] == sorted(sums)
    assert heading.get_attribute("aria-sort") == "ascending"
    page.locator("#results-1-table thead button", has_text=re.compile("^R@1$")).last.click()
    recalls = [float(text) for text in column(page, 8)]
    assert recalls == sorted(recalls, reverse=True)
    assert page.locator("#results-1-table th[aria-sort]").count() == 1
    page.locator("#results-1-table thead button", has_text="System").click()
    assert column(page, 1) == sorted(column(page, 1))


def test_columns_are_chosen(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.uncheck("form.controls [data-part='R@5']")
    groups = page.locator("#results-1-table [scope=colgroup]")
    assert groups.evaluate_all("nodes => nodes.map(node => node.colSpan)") == [2, 2]
    page.uncheck("form.controls [data-part=i2t]")
    shown = [
        text.split()[0]
        for text in page.locator("#results-1-table thead th:visible").all_inner_texts()
    ]
    assert shown == ["System", "RSUM", "Rank", "Letters", "Caption", "R@1", "R@10"]
    assert (
        page.locator("#results-1-table tbody tr >> nth=0").locator("th:visible, td:visible").count()
        == 6
    )
    for part in ("intervals", "letters"):
        note = page.locator(f"#results [data-about$={part}]")
        assert note.is_visible()
        page.uncheck(f"form.controls [data-part={part}]")
        assert not note.is_visible()
    assert page.locator("#results-1-table .interval:visible").count() == 0
    assert page.locator("#results-1-table [data-of=letters]:visible").count() == 0


def test_the_table_is_copied(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    page.click("text=Copy as LaTeX")
    latex = page.evaluate("window.copied")
    assert latex.count(r"\begin{tabular}") == 1
    assert (
        latex.count(r"$\dagger$") == page.locator("#results-1-table tbody sup").count() + 1
    )  # and its note
    page.click("text=Copy as CSV")
    head, *rows = csv.reader(page.evaluate("window.copied").splitlines())
    assert [row[head.index("RSUM")] for row in rows] == column(page, 2)
    assert [row[head.index("Rank")] for row in rows] == column(page, 3)
    assert [row[head.index("Letters")] for row in rows] == column(page, 4)
    assert "all systems" in page.inner_text("form.controls [role=status]")


def test_the_difference_of_two_chosen_systems_is_read_both_ways(
    open_page: Callable[..., Any],
) -> None:
    page = open_page()
    form = page.locator("form.pair-of-two")
    row = page.locator("#results-1-pairs tbody tr >> nth=0")
    cells = [" ".join(text.split()) for text in row.locator("td").all_text_contents()]
    value, low, high = re.findall(r"[+−]?[\d.]*\d", cells[1])
    said = form.locator("[role=status]")
    assert said.inner_text().startswith(f"RSUM, B − A: {value} [{low}, {high}], p\u00a0")
    form.locator("[data-side=a]").select_option(index=0)
    assert said.inner_text() == "Choose two different systems."
    form.locator("[data-side=b]").select_option(index=1)
    assert "; corrected for all 10 pairs (step-down maxT): p\u00a0" in said.inner_text()
    flip = str.maketrans("+−", "−+")
    assert said.inner_text().startswith(
        f"RSUM, B − A: {value.translate(flip)} [{high.translate(flip)}, {low.translate(flip)}], p\u00a0"
    )
    page.select_option("#system-a", "0")
    page.select_option("#system-b", "1")
    assert page.inner_text("#difference").startswith("RSUM, B − A: ")
    page.select_option("#system-b", "0")
    assert not page.is_visible("#difference")


def test_systems_are_found_by_their_names(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.evaluate("""document.querySelector("form.controls").append(
        Object.assign(document.createElement("input"), { type: "search" }))""")  # which six systems have
    words = page.locator("form.controls input[type=search]")
    words.fill("rgp")
    assert (
        page.locator("#results-1-table tbody tr:visible th")
        .inner_text()
        .startswith("VSE+2AD, RGP, BiGRU")
    )
    words.fill("rgpx")
    assert page.inner_text("form.controls [role=status]") == "No system fits."


def gain(ranks: str) -> float:
    """By how much 1/rank rises from A to B: "rank A: 12, B: 1"."""
    of_a, of_b = re.findall(r"[AB]: ([\d.]+)", ranks)
    return round(1 / float(of_b) - 1 / float(of_a), 9)


def test_the_explorer_opens_on_the_largest_gain(open_page: Callable[..., Any]) -> None:
    page = open_page()
    ranks = page.locator("#found .rank").evaluate_all(
        "nodes => nodes.map((node) => node.textContent)"
    )
    gains = [gain(text) for text in ranks]
    assert gains == sorted(gains, reverse=True)
    assert page.locator("#found button").first.get_attribute("aria-current") == "true"


def test_paper_shows_what_is_closed_and_no_controls(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator("form:visible, nav:visible, #more:visible").count() == 0
    assert page.locator("#answer ol").first.is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_no_name_has_five_lines_on_a_phone(open_page: Callable[..., Any]) -> None:
    page = open_page("phone")
    lines = page.locator("tbody .name, .comparison .name").evaluate_all("""nodes => nodes.map((node) =>
        node.getBoundingClientRect().height / parseFloat(getComputedStyle(node).lineHeight))""")
    assert 0 < max(lines) < 4.5
    wide = page.locator("#results td:visible").evaluate_all(
        "nodes => nodes.map((node) => node.scrollWidth - node.clientWidth)"
    )
    assert max(wide) <= 1


def test_hostile_captions_are_shown_as_they_are(open_page: Callable[..., Any]) -> None:
    page = open_page()
    assert page.title().startswith("Image-text retrieval")
    for caption in invented_run.CAPTIONS:
        page.fill("#words", caption)
        shown = page.locator("#found button .title > [dir=auto]").evaluate_all(
            "nodes => nodes.map(node => node.textContent)"
        )
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
    assert page.locator("#answer ol.images").count() == 2  # systems A and B
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


def test_judged_queries_show_every_right_image_and_are_listed_by_language(
    open_page: Callable[..., Any], judged_report: Path
) -> None:
    page = open_page(file=judged_report)
    assert page.inner_text("#count") == "12 queries fit."
    page.select_option("#language", "en")
    assert page.inner_text("#count") == "6 queries fit."
    assert set(
        page.locator("#found .title > [dir=auto]").evaluate_all(
            "nodes => nodes.map(node => node.lang)"
        )
    ) == {"en"}
    assert page.locator(".summary figure .medium").count() == 2
    assert page.locator(".summary bdi").count() == 2
    assert page.inner_text(".summary caption") == "Rank and similarity of the best right image"
    assert (
        page.locator("#answer ol.images >> nth=0").locator(".mark.right").count() == 2
    )  # six candidates are all
    again = open_page(fragment=page.evaluate("location.hash"), file=judged_report)
    assert (again.input_value("#language"), again.inner_text("#count")) == ("en", "6 queries fit.")
    page.check("input[value=i2t]")
    assert page.inner_text("#count") == "6 queries fit."
    assert "right:" in page.locator("#answer .mark.right").first.inner_text()


def test_queries_with_several_right_answers_are_listed_where_captions_have_them(
    open_page: Callable[..., Any], judged_report: Path
) -> None:
    page = open_page(file=judged_report)
    page.select_option("#filter", "several")
    for way, count in (
        ("t2i", 12),
        ("i2t", 6),
    ):  # each caption has two right images, each image four captions
        page.check(f"input[value={way}]")
        assert page.inner_text("#count") == f"{count} queries fit."
    assert open_page().locator("#filter option[value=several]").count() == 0


def test_images_find_captions(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.check("input[value=i2t]")
    assert page.inner_text("#count") == "40 queries fit."
    page.select_option("#filter", "first")
    page.locator("#found button").first.click()
    first = page.locator("#answer ol.texts").last.locator("li").first
    assert "its own:" in first.text_content()


def test_queries_that_are_not_found_first_are_listed_with_their_candidates(
    open_page: Callable[..., Any],
) -> None:
    page = open_page()
    page.select_option("#filter", "later")
    ranks = page.locator("#found .rank").evaluate_all(
        "nodes => nodes.map((node) => node.textContent)"
    )
    assert ranks
    assert all(float(re.search(r"B: ([\d.]+)", text)[1]) > 1 for text in ranks)


def test_a_similarity_is_never_broken_into_lines(open_page: Callable[..., Any]) -> None:
    """Beside long captions, on a wide and on a narrow screen."""
    for view in ("desktop", "phone"):
        page = open_page(view)
        page.check("input[value=i2t]")
        page.locator("#found button").first.click()
        lines = page.locator(".texts .similarity").evaluate_all("""nodes => nodes.map((node) => {
            const range = document.createRange();
            range.selectNodeContents(node);
            return range.getClientRects().length;
        })""")
        assert set(lines) == {1}


def test_any_two_systems_are_compared_by_what_changes(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.select_option("#system-a", label="VSE+2AD, Patch, BiGRU, seed 0 †")
    page.select_option("#system-b", label="VSE+2AD, Grid, BiGRU, seed 0")

    def gains() -> list[float]:
        shown = page.locator("#found .rank").evaluate_all(
            "nodes => nodes.map((node) => node.textContent)"
        )
        return [gain(text) for text in shown]

    page.select_option("#sort", "gain")
    found = gains()
    assert found == sorted(found, reverse=True)
    assert found[0] > 0
    page.select_option("#sort", "drop")
    found = gains()
    assert found == sorted(found)
    assert found[0] < 0
    assert page.locator("#answer h4").first.inner_text().startswith("A: VSE+2AD, Patch")
    rows = page.locator(".summary tbody th").all_inner_texts()
    assert len(rows) == 5  # all systems, with their similarities
    assert [row[:3] for row in rows[:2]] == ["A: ", "B: "]
    first = page.locator("#answer ol.images li").first
    assert re.fullmatch(r"-?\d+\.\d{3}", first.locator(".similarity").inner_text())
    assert (
        first.locator(".under").inner_text()
        == first.locator("img, .gone").get_attribute("alt").strip()
    )


def test_the_names_of_systems_are_not_cut(open_page: Callable[..., Any]) -> None:
    """Nor what ends them, the seed."""
    page = open_page()
    for side in "ab":
        cut = page.locator(f"#system-{side}").evaluate("""(node) => {
            const ruler = document.createElement("canvas").getContext("2d");
            ruler.font = getComputedStyle(node).font;
            const widths = [...node.options].map((option) => ruler.measureText(option.text).width);
            return Math.max(...widths) + 40 - node.clientWidth;
        }""")  # 40: the arrow, and the space at the sides
        assert cut <= 0
    assert width(page) <= page.viewport_size["width"]


def test_queries_whose_candidates_are_not_kept_are_listed_and_sorted_too(
    open_page: Callable[..., Any], small_report: Path
) -> None:
    page = open_page(file=small_report)
    assert page.inner_text("#count") == "80 queries fit."
    page.select_option("#filter", "kept")
    assert page.inner_text("#count") == "16 queries fit."
    for way, kept in (("t2i", "16"), ("i2t", "8")):
        page.check(f"input[value={way}]")
        page.select_option("#filter", "kept")
        assert page.inner_text("#count") == f"{kept} queries fit."
        for sort in ("gain", "drop"):
            page.select_option(
                "#sort", sort
            )  # the largest change between the first systems is among those kept
            page.select_option("#filter", "kept")
            kept_first = page.locator("#found .rank").first.inner_text()
            page.select_option("#filter", "all")
            assert page.locator("#found .rank").first.inner_text() == kept_first
        page.select_option("#sort", "kept")
        page.locator("#found").press("End")
        page.locator("#found button").last.click()
        assert page.inner_text("#answer .note") == "Its candidates are not kept on this page."
        assert page.inner_text(".summary bdi")
        assert page.locator(".summary tbody tr").count() == 5
        assert page.locator("#answer ol").count() == 0


def test_where_all_candidates_are_kept_nothing_else_is_offered(
    open_page: Callable[..., Any], report: Path, small_report: Path
) -> None:
    for file, kept in (
        (report, ["the data set"]),
        (small_report, ["the data set, kept candidates first"]),
    ):
        page = open_page(file=file)
        assert page.locator("#sort option[value=kept]").all_inner_texts() == kept
        assert page.locator("#filter option[value=kept]").count() == (file == small_report)


def test_filters_are_in_the_address_and_come_back(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.check("input[value=i2t]")
    page.select_option("#filter", "top5")
    page.select_option("#sort", "worst")
    page.select_option("#system-a", "1")
    page.fill("#words", "number")
    titles, address = (
        page.locator("#found button").all_inner_texts(),
        page.evaluate("location.hash"),
    )
    again = open_page(fragment=address)
    assert again.locator("#found button").all_inner_texts() == titles
    assert [again.input_value(f"#{name}") for name in ("filter", "sort", "system-a", "words")] == [
        "top5",
        "worst",
        "1",
        "number",
    ]
    assert again.is_checked("input[value=i2t]")
    nonsense = "#queries?way=x&a=<script>&b=__proto__&filter=constructor&sort=__proto__&query=1e99&words=%3Cimg%3E"
    assert open_page(fragment=nonsense).input_value("#words") == "<img>"


def test_a_number_leads_to_its_queries(open_page: Callable[..., Any]) -> None:
    page = open_page()
    link = page.locator("#results a", has_text=re.compile(r"^\d")).nth(1)
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#filter').value === 'first'")
    assert page.is_checked("input[value=i2t]")
    assert all("B: 1" in text for text in page.locator("#found .rank").all_inner_texts())


def test_ranks_are_downloaded_as_csv(open_page: Callable[..., Any]) -> None:
    page = open_page()
    with page.expect_download() as waiting:
        page.click("#download")
    with open(waiting.value.path(), encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert waiting.value.suggested_filename == "ranks-t2i.csv"
    assert (head[0], {*head[1:]}) == (
        "caption_id",
        {f"vse2ad-{part}-bigru-s0" for part in ("grid", "patch", "R", "RG", "RGP")},
    )
    assert len(rows) == 80
    assert {int(row[0]) for row in rows} == set(range(100, 180))


def test_curves_share_their_axes(open_page: Callable[..., Any]) -> None:
    names = (
        open_page()
        .locator("#curves svg .axes")
        .evaluate_all(
            "all => all.map((axes) => [...axes.querySelectorAll('text')].map((text) => text.textContent))"
        )
    )
    assert all({"RSUM on val", "epochs trained"} <= set(texts) for texts in names)


def test_keyboard_alone_reaches_and_opens_a_query(open_page: Callable[..., Any]) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#words")
    page.keyboard.type("number")
    for stop in ("system-a", "system-b", "filter", "sort", "download"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == stop
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
