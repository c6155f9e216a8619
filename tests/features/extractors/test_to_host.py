"""Features that leave the network's device are those that the store would have rounded itself.

The CPU stands in for another device: its tensors take the same path where they are `OnDevice`.
Where there is a GPU, it is tried, too.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from folders import tree

from pipeline.foundation.manifest import Manifest
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime, base, new_items, square
from pipeline.make.features.extractors.base import OnDevice
from pipeline.make.features.store import ItemFormat, Shard, StoreLayout

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
HALF = np.arange(2**16, dtype=np.uint16).view(np.float16)
HALF = HALF[np.isfinite(HALF)]


def awkward() -> np.ndarray:
    """Float32 that float16 has, the numbers half-way between these, and those to either side of
    both.
    """
    exact = np.unique(HALF.astype(np.float32))
    between = (exact[:-1] + exact[1:]) / 2
    each = np.concatenate([exact, between, np.float32([-0.0])])
    return np.concatenate(
        [each, *(np.nextafter(each, np.float32(end)) for end in (-np.inf, np.inf))]
    )


def filled(features: np.ndarray, dtype: str = "float16") -> Shard:
    shard = Shard.empty(StoreLayout(1, *features.shape, 1, dtype=dtype), 0)
    shard.fill(0, features, (1, 1), {})
    return shard


@pytest.mark.specification
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rounding_on_the_device_gives_the_bits_of_rounding_on_the_host(
    device: str, dtype: str
) -> None:
    values = awkward()
    values = values[np.abs(values) <= np.finfo(np.float16).max][:, None]
    (items,) = base.bring(
        [OnDevice(torch.from_numpy(values).to(device), {"boxes": torch.ones(2, device=device)})],
        dtype,
    )
    assert items.features.dtype == dtype
    there, here = filled(items.features, dtype), filled(values, dtype)
    assert there.failed == here.failed == {}
    assert there.arrays["features"].tobytes() == here.arrays["features"].tobytes()
    if dtype == "float16":
        assert here.arrays["features"][0].tobytes() == values.astype(np.float16).tobytes()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "value", [65504.004, 65519.0, 65520.0, -65504.004, 1e30, np.inf, -np.inf, np.nan]
)
def test_what_is_too_large_is_refused_as_before_it_was_rounded(device: str, value: float) -> None:
    values = np.array([[1.0, value], [2.0, 3.0]], np.float32)
    (items,) = base.bring([OnDevice(torch.from_numpy(values).to(device), {})], "float16")
    assert (
        filled(items.features).failed
        == filled(values).failed
        == {0: "the network's features are not finite in float16"}
    )


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_store_is_the_same_whichever_way_its_features_left_the_network(
    scenes: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    engine = extraction.EngineSpec(
        "pyramid",
        {"network": "test_efficientnet", "weights": "untrained", "image_size": 128},
        Runtime(),
    )
    stores = [tmp_path / "by_host.zarr", tmp_path / "by_device.zarr"]
    for store in stores:
        extraction.extract(
            extraction.ExtractionJob(scenes, scenes.images_folder, store, engine, 4, 8, dtype=dtype)
        )
        monkeypatch.setattr(square, "computed", OnDevice)
    assert tree(stores[0]) == tree(stores[1])


def test_items_of_new_photographs_are_rounded_as_the_stores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = torch.tensor([[1 + 2**-12, -2.5], [65510.0, 0.0]])
    engine = SimpleNamespace(
        prepare=lambda source: source,
        extract=lambda prepared, sizes: [OnDevice(values, {}) for _ in prepared],
    )
    monkeypatch.setattr(new_items.extractors, "rebuild", lambda made, device: engine)
    for dtype, expected in (
        ("float16", [[1, -2.5], [np.inf, 0]]),
        ("float32", values.tolist()),
    ):
        made = ItemFormat({}, 3, 2, dtype, boxes=False)  # type: ignore[arg-type]
        new = new_items.NewItems(made)
        (extracted,) = new.extracted(["a photograph"])
        assert extracted.features.dtype == dtype
        assert extracted.features.tolist() == expected
        items, counts = new.items(["a photograph"])
        assert (items.dtype, counts.tolist()) == (dtype, [2])
        assert items.tolist() == [[*expected, [0, 0]]]
