"""Where items lie: from stored boxes and sizes, from the cells of a square, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.make.features import extraction
from pipeline.make.features.extraction import ExtractionJob
from pipeline.make.features.store import FeatureStore
from pipeline.make.features.store.boxes import BoxedStore, cells_of, six
from pipeline.make.features.store.item_format import ItemFormat
from pipeline.make.features.store.layout import StoreError


@pytest.mark.specification
def test_six_values_by_hand() -> None:
    found = six(np.array([[[10, 20, 30, 100]]], "f4"), np.array([[40, 200]], "i4"))
    np.testing.assert_allclose(found, [[[0.25, 0.1, 0.75, 0.5, 0.5, 0.4]]])


def test_stored_boxes_follow_their_features(store: FeatureStore) -> None:
    boxed, rows = BoxedStore(store.path), np.array([5, 0, 11])
    (plain, counts), (items, same) = store.read(rows), boxed.read(rows)
    np.testing.assert_array_equal(items[..., :-6], plain)
    np.testing.assert_array_equal(same, counts)
    assert items.shape[2] == boxed.width == store.width + 6
    np.testing.assert_allclose(
        items[0, 0, -6:], [0, 0, 1, 1, 1, 1]
    )  # the first window is the whole image
    assert boxed.identity == store.identity
    boxed.sizes = boxed.sizes * (1 + np.arange(len(boxed.sizes)))[:, None]
    wholes = boxed.read(rows)[0][:, 0, -6:]
    np.testing.assert_allclose(wholes, [[0, 0, *[1 / (1 + row)] * 4] for row in rows], rtol=1e-6)


def test_the_cells_of_a_grid_have_their_own(job: ExtractionJob) -> None:
    extraction.extract(job)
    items, _ = BoxedStore(job.store).read(np.array([0]))
    np.testing.assert_allclose(
        items[0, :, -6:],
        [
            [0, 0, 0.5, 0.5, 0.5, 0.5],
            [0.5, 0, 1, 0.5, 0.5, 0.5],
            [0, 0.5, 0.5, 1, 0.5, 0.5],
            [0.5, 0.5, 1, 1, 0.5, 0.5],
        ],
    )


def of(items: int, made: Mapping[str, Any]) -> ItemFormat:
    """Items without boxes."""
    return ItemFormat(made, items, 8, "float32", boxes=False)


def test_a_class_token_lies_on_the_whole_image_and_others_unknown_are_refused() -> None:
    cells = cells_of(of(5, {"engine": "patch", "settings": {"cls": True}}), Path("some.zarr"))
    assert cells is not None
    np.testing.assert_allclose(cells[:2], [[0, 0, 1, 1, 1, 1], [0, 0, 0.5, 0.5, 0.5, 0.5]])
    for unknown in (of(6, {"engine": "grid"}), of(4, {"engine": "precomp"})):
        with pytest.raises(
            StoreError, match="does not say where its items are in the image; import features"
        ):
            cells_of(unknown, Path("some.zarr"))


def test_boxes_without_the_images_size_are_refused(
    store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = FeatureStore._whole
    monkeypatch.setattr(
        FeatureStore, "_whole", lambda self, name: whole(self, name) * (name != "sizes")
    )
    with pytest.raises(StoreError, match="does not know the size of 24 images, the first"):
        BoxedStore(store.path)
