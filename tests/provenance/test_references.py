"""References to photographs are to those of the splits that are read."""

from __future__ import annotations

from typing import Any

import foreign
import pytest

from pipeline.foundation.manifest import photographs
from pipeline.run.provenance import references


def test_the_photographs_of_a_use_are_those_of_its_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every four images two are of train, one of val and one of test."""
    asked: list[Any] = []
    monkeypatch.setattr(photographs, "reference", lambda manifest, rows, folder: asked.append(rows))
    manifest = foreign.manifest(8, captions=2)
    for splits, rows in (
        (["test"], [3, 7]),
        (["val"], [2, 6]),
        (["train", "val"], [0, 1, 2, 4, 5, 6]),
        (["train", "val", "test"], [*range(8)]),
    ):
        references.of_photographs(manifest, splits)
        assert asked.pop().tolist() == rows, splits
    references.of_photographs(manifest, [])
    assert asked == [None]  # all, whatever their split
