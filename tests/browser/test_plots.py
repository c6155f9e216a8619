"""The curves of `dvc plots show`, opened without network by the lines of docs/runs.md. Run by `make
browser-test`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


def test_curves_open_without_network(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    shutil.copytree(ROOT / ".dvc" / "plots", tmp_path / ".dvc" / "plots")
    (tmp_path / ".dvc" / "config").write_text(
        "[core]\n    no_scm = true\n    analytics = false\n", encoding="utf-8"
    )
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    plots = [plot for stage in stages.values() for plot in stage.get("plots", [])]
    assert len(plots) == 2
    (tmp_path / "dvc.yaml").write_text(yaml.safe_dump({"plots": plots}), encoding="utf-8")
    for folder, how in (each for plot in plots for each in plot.items()):
        file = tmp_path / folder / "heads.csv"
        file.parent.mkdir(parents=True)
        file.write_text(f"head,{how['x']},{how['y']}\nmine,1,2\nmine,2,3\n", encoding="utf-8")
    documented = re.findall(
        "```sh\n(.*?)```", (ROOT / "docs/runs.md").read_text(encoding="utf-8"), re.DOTALL
    )
    lines = next(block for block in documented if "vl_convert" in block)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(
        ["bash", "-euc", lines], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True
    )
    page = (tmp_path / "dvc_plots" / "index.html").resolve()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=["--no-sandbox"]
        )
        shown = browser.new_context(offline=True).new_page()
        failed: list[str] = []
        shown.on("requestfailed", lambda request: failed.append(request.url))
        shown.on("pageerror", lambda error: failed.append(str(error)))
        shown.goto(page.as_uri())
        shown.locator("canvas, svg.marks").nth(1).wait_for(timeout=20_000)
        assert not failed
        svg = shown.evaluate(
            "vegaEmbed(document.createElement('div'), spec, {renderer: 'svg'})"
            ".then(drawn => drawn.view.toSVG())"
        )
        numbers = re.findall(r">([0-9.]+)</text>", svg[svg.index("X-axis") : svg.index("Y-axis")])
        assert numbers == ["1", "2"]  # no ticks between whole steps
        browser.close()
