"""Archives in the place of what was meant: zarr's ZipStore, and tars that are called .pt."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

from pipeline.foundation.files import torch_save, weights
from pipeline.foundation.files.zarr_arrays import open_array
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.system import System
from pipeline.make.features.store import FeatureStore, StoreError

READERS: dict[str, Callable[[Path], Any]] = {
    "scores": lambda path: open_system(str(path)),
    "vectors": lambda path: open_system(f"{path}:images"),
    "a store of features": FeatureStore,
    "a store of scores": System.open,
    "an array": lambda path: open_array(path, "similarity matrix"),
    "weights": weights.read,
}


def packed(path: Path, version: int) -> Path:
    """A group of zarr in one file."""
    with ZipStore(path, mode="w") as store:
        group = zarr.create_group(store=store, zarr_format=version)
        group.create_array("images", data=np.ones((4, 3), np.float32))
    return path


def tar(path: Path, *names: str) -> Path:
    """An archive with a few bytes below each name."""
    with tarfile.open(path, "w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"abcd"))
    return path


@pytest.mark.parametrize("read", READERS.values(), ids=[*READERS])
def test_a_zarr_store_in_a_zip_is_unpacked_first(
    read: Callable[[Path], Any], tmp_path: Path
) -> None:
    for version in (2, 3):
        for name in ("a b.zarr.zip", "region.zarr"):
            path = packed(tmp_path / name, version)
            folder = "a b.zarr" if name.endswith(".zip") else "region-unpacked.zarr"
            with pytest.raises((InputError, StoreError)) as refused:
                read(path)
            assert f"{path}: is a zarr store packed into one file" in str(refused.value)
            assert str(refused.value).endswith(f"and name {tmp_path / folder}")
            path.unlink()


@pytest.mark.parametrize("read", [READERS["scores"], weights.read, torch_save.load])
def test_a_tar_that_is_called_pt_is_no_text(read: Callable[[Path], Any], tmp_path: Path) -> None:
    old = tar(tmp_path / "old.pt", "sys_info", "pickle", "storages", "tensors")
    with pytest.raises(InputError, match="is a tar that torch wrote before"):
        read(old)
    for name in ("x.pt", "x.pth"):
        with pytest.raises(InputError, match=rf"is a tar archive; unpack it, `tar -xf .*{name}`"):
            read(tar(tmp_path / name, "model/weights.bin"))
