"""Makes docs/board.png, which README shows: the page of a made board in Chromium, or of a board of
`pipeline board --json`.

    python tests/extensions/board/picture.py [BOARD.json]
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from made_board import made_board
from PIL import Image
from playwright.sync_api import sync_playwright

from pipeline.extensions.board.page import to_html

DOCS = Path(__file__).parents[3] / "docs"
WIDTH = 1400
HEIGHT = 1480
COLOURS = 64
REST = "header nav, #table > :not(h2, form, .scroll:has(#systems)), #cost, #tasks > .note"


def main(board_file: str | None) -> None:
    board = made_board(systems=14, tasks=12, seed=7, unmeasured=((9, 6),))
    if board_file is not None:
        board = json.loads(Path(board_file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "board.html"
        file.write_text(to_html(board), encoding="utf-8")
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(file.as_uri())
        page.locator("#differences tbody tr").first.wait_for()
        # Two that the table has beside each other.
        second, third = (row["system"] for row in board["over_tasks"]["systems"][1:3])
        page.select_option("#one", str(third))
        page.select_option("#other", str(second))
        page.mouse.move(0, 0)
        # What fits: the table, a pair of systems, and the first tasks.
        page.evaluate(
            "rest => document.querySelectorAll(rest).forEach((part) => { part.hidden = true; })",
            REST,
        )
        page.screenshot(path=f"{folder}/board.png")
        browser.close()
        picture = Image.open(f"{folder}/board.png").convert("RGB")
    picture.quantize(COLOURS).save(DOCS / "board.png", optimize=True)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [None]))
