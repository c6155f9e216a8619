"""Work on the pieces of a split grows with its captions, and not with its captions times its
pieces.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from counted import Counted

from pipeline.foundation.compute.tasks import InProcess
from pipeline.foundation.manifest import Split
from pipeline.make.training import OpenHead, pieces


def split_of(images: int) -> Split:
    owner = np.random.default_rng(0).integers(0, images, 5 * images)
    return Split(
        "test",
        np.arange(images),
        np.arange(images),
        np.arange(5 * images),
        owner.view(Counted),
        np.full(5 * images, "a", "T"),
    )


def test_a_split_is_cut_into_images_with_their_captions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "WITH_CAPTIONS", 7)
    numbers = []
    for images in (100, 1000):
        split, Counted.numbers = split_of(images), 0
        found = pieces.with_captions(split)
        numbers.append(Counted.numbers)
        assert np.concatenate([piece.images for piece in found]).tolist() == list(range(images))
        for piece in found:
            assert (
                piece.captions.tolist()
                == np.flatnonzero(np.isin(split.caption_image, piece.images)).tolist()
            )
    assert 0 < numbers[1] < 12 * numbers[0]


def test_pieces_of_what_differs_in_anything_are_computed_anew(tmp_path: Path) -> None:
    def kept(versions: int = 1, device: str = "cpu", size: int = 8, **made_from: str) -> Any:
        request = SimpleNamespace(versions=lambda: {"training": versions})
        opened: Any = SimpleNamespace(
            head=SimpleNamespace(artefact=SimpleNamespace(request=request))
        )
        asked = {"head": "a", "features": "b", **made_from}
        return pieces.kept(tmp_path / "s.zarr", opened, device, size, asked)

    def compute(task: Any, wanted: Any) -> dict[str, np.ndarray]:
        return {"scores": np.ones(1)}

    for change in (
        {"head": "another"},
        {"features": "others"},
        {"versions": 2},
        {"device": "cuda"},
        {"size": 4},
    ):
        list(kept().run(compute, ["task"], InProcess()))
        assert kept().read(0) is not None
        other: Any = change
        assert kept(**other).read(0) is None, change


def test_a_head_takes_a_split_once_for_all_tasks() -> None:
    taken: list[str] = []
    manifest: Any = SimpleNamespace(split=lambda name: taken.append(name) or split_of(10))
    source: Any = SimpleNamespace(done=np.arange(10) != 3, require_extracted=lambda rows: None)
    use: Any = None
    head: Any = SimpleNamespace(text=None)  # it reads no stored features of captions
    opened = OpenHead(use, head, source, manifest)
    for _ in range(3):
        assert opened.split("test").image_ids.tolist() == [0, 1, 2, *range(4, 10)]
    assert taken == ["test"]
