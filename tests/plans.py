"""What `pipeline lab plan` wrote, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# The steps from which measured numbers follow, on one CPU.
OF_NUMBERS = ("sample", "manifest", "extract", "train", "score", "evaluate")


def read(folder: Path = Path("results/plan")) -> dict[str, Any]:
    """Step -> what it depends on; extraction by feature, training by head."""
    steps: dict[str, Any] = {}
    for file in sorted(folder.rglob("*.json")):
        *group, name = file.relative_to(folder).with_suffix("").parts
        within = steps.setdefault(group[0], {}) if group else steps
        within[name] = json.loads(file.read_text(encoding="utf-8"))
    return steps


def of_numbers(folder: Path = Path("results/plan")) -> dict[str, Any]:
    """What the numbers of a run follow from, whatever versions of libraries are installed."""
    steps = {step: part for step, part in read(folder).items() if step in OF_NUMBERS}
    for part in steps["extract"].values():
        del part["request"]["libraries"]
    for part in steps["score"].values():
        part["request"].pop("torch", None)
    return steps
