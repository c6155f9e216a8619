"""HGR's features come in bit for bit: stacks of frames by name, arrays by lists; long clips with 20
frames.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pipeline.extensions.importers import ImportJob, import_features
from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.videos import SPLITS
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow

NAMES = {"trn": ["b", "a/1", "long"], "val": ["d"], "tst": ["c"]}
COUNTS = {"b": 3, "a/1": 1, "long": 50, "d": 20, "c": 21}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "public_split").mkdir()
    for short, names in NAMES.items():
        np.save(tmp_path / "public_split" / f"{short}_names.npy", names)
    lines = ["video,caption,split"]
    for split, short in SPLITS.items():
        lines += [f"{name}.mp4,clip {name},{split}" for name in NAMES[short]]
    (tmp_path / "captions.csv").write_text("\n".join(lines))
    return tmp_path


@pytest.fixture
def table(root: Path) -> Manifest:
    return manifest.build("clips", None, root / "captions.csv")


def features(name: str) -> np.ndarray:
    return (
        np.random.default_rng(len(name) + COUNTS[name])
        .normal(size=(COUNTS[name], 6))
        .astype(np.float32)
    )


def stacks(root: Path) -> Path:
    folder = root / "ordered_feature" / "SA" / "resnet152"
    folder.mkdir(parents=True)
    for short, names in NAMES.items():
        with h5py.File(folder / f"{short}_ft.hdf5", "w") as file:
            for name in reversed(names):
                file.create_dataset(name.replace("/", "_"), data=features(name))
    return folder


def arrays(root: Path) -> Path:
    folder = root / "ordered_feature" / "MP" / "resnet152"
    folder.mkdir(parents=True)
    for short, names in NAMES.items():
        np.save(folder / f"{short}_ft.npy", np.stack([features(name)[0] for name in names]))
    return folder


def i3d(root: Path) -> Path:
    """As VATEX's organisers: a file a clip, [1, T, D]."""
    for name in COUNTS:
        (root / "i3d" / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(root / "i3d" / f"{name}.npy", features(name)[None])
    return root / "i3d"


def imported(
    form: str, source: Path, table: Manifest, store: Path, **changes: Any
) -> dict[str, np.ndarray]:
    import_features(ImportJob(table, form, (source,), store, 2, dtype="float32", **changes))
    items, counts = FeatureStore(store).require(table).read(np.arange(len(table.images)))
    return {
        file.removesuffix(".mp4"): items[row, : counts[row]]
        for row, file in enumerate(table.images["file"])
    }


@pytest.mark.parametrize(("form", "written"), [("hgr", stacks), ("folder", i3d)])
def test_frames_come_in_bit_for_bit(
    form: str, written: Callable[[Path], Path], root: Path, table: Manifest, tmp_path: Path
) -> None:
    found = imported(form, written(root), table, tmp_path / "frame.zarr")
    for name in ("b", "a/1", "d"):
        assert found[name].tobytes() == features(name).tobytes()
    for name in ("long", "c"):  # as HGR's pad_or_trim_feature, 'select'
        chosen = np.round(np.linspace(0, COUNTS[name] - 1, 20)).astype(np.int32)
        assert found[name].tobytes() == features(name)[chosen].tobytes()


def test_all_frames_where_so_many_are_asked_for(
    root: Path, table: Manifest, tmp_path: Path
) -> None:
    found = imported("hgr", stacks(root), table, tmp_path / "frame.zarr", frames=50)
    assert all(found[name].tobytes() == features(name).tobytes() for name in COUNTS)


def test_other_frames_make_another_store(root: Path, table: Manifest, tmp_path: Path) -> None:
    source = stacks(root)
    imported("hgr", source, table, tmp_path / "frame.zarr", frames=10, reported_as="mine")
    with pytest.raises(InputError, match="frames was 10, is 15"):
        imported("hgr", source, table, tmp_path / "frame.zarr", frames=15, reported_as="mine")


def test_whole_clips_come_in_by_their_lists(root: Path, table: Manifest, tmp_path: Path) -> None:
    found = imported("hgr", arrays(root), table, tmp_path / "frame.zarr")
    assert all(found[name].tobytes() == features(name)[:1].tobytes() for name in COUNTS)


def test_a_list_of_another_length_is_refused(root: Path, table: Manifest, tmp_path: Path) -> None:
    source = arrays(root)
    np.save(root / "public_split" / "trn_names.npy", ["b", "a/1"])
    with pytest.raises(InputError, match=r"expected \[2, D\].*got \[3, 6\]"):
        imported("hgr", source, table, tmp_path / "frame.zarr")


def test_links_out_of_the_file_are_refused(root: Path, table: Manifest, tmp_path: Path) -> None:
    source = stacks(root)
    with h5py.File(source / "trn_ft.hdf5", "a") as file:
        del file["b"]
        file["b"] = h5py.ExternalLink("tst_ft.hdf5", "/c")
    with pytest.raises(InputError, match="'b' is a link"):
        imported("hgr", source, table, tmp_path / "frame.zarr")


def test_a_dataset_without_values_is_refused(root: Path, table: Manifest, tmp_path: Path) -> None:
    source = stacks(root)
    with h5py.File(source / "trn_ft.hdf5", "a") as file:
        del file["b"]
        file["b"] = h5py.Empty("f4")
    with pytest.raises(InputError, match="'b' holds no features of its own"):
        imported("hgr", source, table, tmp_path / "frame.zarr")


def test_a_file_that_is_no_hdf5_is_refused(root: Path, table: Manifest, tmp_path: Path) -> None:
    source = stacks(root)
    (source / "val_ft.hdf5").write_bytes(b"no HDF5")
    with pytest.raises(InputError, match="not a file in HDF5"):
        imported("hgr", source, table, tmp_path / "frame.zarr")


def test_clips_that_are_missing_are_said(root: Path, table: Manifest, tmp_path: Path) -> None:
    source = stacks(root)
    (source / "val_ft.hdf5").unlink()
    with pytest.raises(InputError, match=r"1 of 5 images are missing or damaged, the first d\.mp4"):
        imported("hgr", source, table, tmp_path / "frame.zarr")


def test_a_dataset_of_named_fields_is_refused(root: Path, table: Manifest, tmp_path: Path) -> None:
    """Also of one field, whose values NumPy takes for the array."""
    source = stacks(root)
    with h5py.File(source / "trn_ft.hdf5", "a") as file:
        del file["b"]
        file["b"] = np.ones((3, 6), [("one", np.float32)])
    with pytest.raises(
        InputError, match=r"'b' holds values of the type .*'one'.*, expected floats"
    ):
        imported("hgr", source, table, tmp_path / "frame.zarr")
