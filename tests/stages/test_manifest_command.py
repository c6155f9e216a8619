"""`pipeline manifest` again: nothing is read where nothing changed, and what changed is seen."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.files import remembered
from pipeline.manifest import photographs

MANIFEST = Path("data/sample.parquet")


def another_photograph(sample: Path) -> None:
    """Of the same size and date, moved to the place of one that is there."""
    file = min((sample / "images").iterdir())
    before, other = file.stat(), sample / "other"
    other.write_bytes(file.read_bytes()[:-1] + b"x")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def another_caption(sample: Path) -> None:
    listing = sample / "dataset_sample.json"
    listing.write_text(listing.read_text(encoding="utf-8").replace('"raw": "', '"raw": "Also: '), encoding="utf-8")


@pytest.mark.parametrize("change", [another_photograph, another_caption, lambda sample: MANIFEST.write_bytes(b"")])
def test_what_changed_is_seen_and_nothing_else_is_read(pipeline: Any, corpus: Path, monkeypatch: pytest.MonkeyPatch,
                                                       change: Callable[[Path], object]) -> None:
    for module in (remembered, photographs):
        monkeypatch.setattr(module, "SETTLED", -(10**12))  # files count as written long ago
    sample = shutil.copytree(corpus, Path("data", "sample"))
    assert "24 images" in pipeline("manifest", "sample")[1]
    assert pipeline("manifest", "sample")[1] == f"{MANIFEST}: nothing to do\n"
    before = MANIFEST.read_bytes()
    change(sample)
    assert "24 images" in pipeline("manifest", "sample")[1]
    assert (MANIFEST.read_bytes() == before) == (change not in (another_photograph, another_caption))
    assert pipeline("manifest", "sample")[1] == f"{MANIFEST}: nothing to do\n"


def test_what_was_written_just_now_is_looked_at_again(pipeline: Any, corpus: Path) -> None:
    shutil.copytree(corpus, "data/sample", copy_function=shutil.copyfile)
    for _ in range(2):
        assert "24 images" in pipeline("manifest", "sample")[1]
