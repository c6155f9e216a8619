"""The documentation as a site."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pages import ROOT


def test_it_builds_without_a_broken_link_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
                           cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, text=True, capture_output=True,
                           check=False)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert {page.parent.name for page in pages} >= {
        "own-data", "features", "heads", "evaluation", "faq", "measured", "contributing"}
    for page in pages:
        html = page.read_text(encoding="utf-8")
        assert not re.search(r"<(script|link|img)[^>]+(src|href)=\"https?://(?!vse-pipeline)", html), page
