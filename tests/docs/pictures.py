"""Makes README's pictures from a finished `make repro`: run it in that folder. CONTRIBUTING says
what it needs.

Each picture keeps in its text `plan` what the run's numbers follow from, those of a table and a
figure in `data` the numbers that they show; test_pictures.py reads them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import plans
from PIL import Image, ImageChops, PngImagePlugin

DOCS = Path(__file__).parents[2] / "docs"
SHOWS = {
    "table": Path("results/tables/vse2ad_table1.md"),
    "figure": Path("results/figures/retrieved_images.csv"),
}
"""A picture -> the file with the numbers that it shows."""
WIDTHS = {"table": 960, "figure": 1000, "report": 1160}
"""Pixels at most."""
QUERY = "#queries?way=t2i&a=vse2ad-R-bigru-s0&b=vse2ad-RG-bigru-s0&filter=kept&sort=gain"


def table() -> Image.Image:
    """The page of the tables' preview that has Table 1."""
    folder = Path("results/tables")
    for _ in range(2):
        subprocess.run(["pdflatex", "-interaction=batchmode", "preview"], cwd=folder, check=True)
    for page in range(1, 100):
        at = ["-f", str(page), "-l", str(page), "preview.pdf"]
        text = subprocess.run(
            ["pdftotext", *at, "-"], cwd=folder, check=True, capture_output=True, text=True
        ).stdout
        if "after Table 1 of VSE+2AD" in " ".join(text.split()):
            break
    subprocess.run(
        ["pdftoppm", "-singlefile", "-png", "-r", "120", *at, "table"], cwd=folder, check=True
    )
    picture = Image.open(folder / "table.png").convert("RGB")
    return picture.crop(
        (0, 0, picture.width, picture.height * 12 // 13)
    )  # without the page's number


def report() -> Image.Image:
    """The report's explorer of queries."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1160, "height": 1620})
        page.goto(Path("results/report.html").resolve().as_uri() + QUERY)
        page.wait_for_timeout(1000)  # until the page stands where its address says
        page.locator("#search").evaluate("node => node.scrollIntoView()")
        page.wait_for_timeout(500)
        page.screenshot(path="results/explorer.png")
    return Image.open("results/explorer.png").convert("RGB")


def save(name: str, picture: Image.Image) -> None:
    """Without white borders, no wider than README shows it, in all its colours: photographs have
    more than 256.
    """
    left, top, right, bottom = ImageChops.difference(
        picture, Image.new("RGB", picture.size, "white")
    ).getbbox() or (0, 0, *picture.size)
    picture = picture.crop(
        (
            max(0, left - 10),
            max(0, top - 10),
            min(picture.width, right + 10),
            min(picture.height, bottom + 10),
        )
    )
    picture.thumbnail((WIDTHS[name], 2000))
    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("plan", json.dumps(plans.of_numbers()), zip=True)
    if name in SHOWS:
        texts.add_itxt("data", SHOWS[name].read_text(encoding="utf-8"), zip=True)
    picture.save(DOCS / f"{name}.png", optimize=True, pnginfo=texts)


if __name__ == "__main__":
    save("table", table())
    save("figure", Image.open("results/figures/retrieved_images.png").convert("RGB"))
    save("report", report())
