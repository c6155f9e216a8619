"""docs/runs.md draws the stages of dvc.yaml as they depend on each other."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import yaml
from pages import ROOT

STAGES: dict[str, Any] = yaml.safe_load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


def paths(stage: dict[str, Any], *keys: str) -> list[str]:
    """What a stage lists, as far as it is the same for all items of its matrix."""
    listed = [
        next(iter(each)) if isinstance(each, dict) else each
        for key in keys
        for each in stage.get(key, [])
    ]
    return [path.partition("${item")[0].rstrip("/") for path in listed]


def meet(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def test_the_drawing_is_that_of_dvc_yaml() -> None:
    page = (ROOT / "docs" / "runs.md").read_text(encoding="utf-8")
    drawn = {
        name: re.split(", ", readers)
        for name, readers in re.findall(r"^([\w-]+) +→ (.+)$", page, re.MULTILINE)
    }
    expected: dict[str, list[str]] = defaultdict(list)
    for reader, stage in STAGES.items():
        for name, other in STAGES.items():
            written = paths(other, "outs", "metrics", "plots")
            if name != reader and any(
                meet(path, out) for path in paths(stage, "deps") for out in written
            ):
                expected[name].append(reader)
    assert sorted(expected.pop("plan")) == sorted(STAGES.keys() - {"plan"})
    assert drawn == {name: sorted(readers) for name, readers in expected.items()}
