"""The documentation as a site."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT


@pytest.mark.slow
def test_it_builds_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert {page.relative_to(tmp_path).with_suffix(".md").as_posix() for page in pages} == {
        page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")
    } | {"404.md"}
    searched = (tmp_path / "search" / "search_index.js").read_text(
        encoding="utf-8"
    )  # a script, not a request
    assert "hubness" in searched
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert all(f'data-md-color-scheme="{scheme}"' in html for scheme in ("default", "slate"))
        linked = re.findall(r'(?:src|href)="((?!/)[^":]*\.(?:js|css))"', html)
        assert all((page.parent / file).is_file() for file in linked), page
        assert "site/iframe-worker.js" in html
        assert not re.search(
            r"<(script|link|img)[^>]+(src|href)=\"https?://(?!vse-pipeline)", html
        ), page


def test_the_first_page_names_every_page() -> None:
    docs = ROOT / "docs"
    named = set(re.findall(r"\]\(([\w/-]+\.md)\)", (docs / "index.md").read_text(encoding="utf-8")))
    assert named == {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} - {
        "index.md"
    }


def test_pages_begin_with_commands_and_what_they_print() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        if page.name not in (
            "glossary.md",
            "measured.md",
            "releasing.md",
        ):  # words, results, ten steps
            fences = re.findall(r"^```(\w+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            assert fences[0] in ("sh", "python", "text"), page
            assert "text" in fences[1:3], page


def test_no_two_pages_have_one_title() -> None:
    titles = [
        page.read_text(encoding="utf-8").partition("\n")[0]
        for page in (ROOT / "docs").rglob("*.md")
    ]
    assert sorted(set(titles)) == sorted(titles)
