"""A file an image: damaged ones are named or left out, and nothing in them is ever run."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import foreign
import numpy as np
import pytest
import torch

from pipeline.extensions.importers import ImportJob, folder, import_features
from pipeline.extensions.importers.base import UnusableItems
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow

TABLE = foreign.manifest(6)
THERE = foreign.pictures(TABLE, [4] * 6, 9)


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


@pytest.fixture(params=["npy", "npz", "pth"])
def job(request: pytest.FixtureRequest, tmp_path: Path) -> ImportJob:
    (tmp_path / "f").mkdir()
    form, write, _, _ = foreign.SOURCES[request.param]
    return foreign.job(TABLE, form, write(tmp_path / "f", THERE), tmp_path / "s.zarr")


def file_of(job: ImportJob, row: int) -> Path:
    return next(
        file
        for file in job.paths[0].rglob("*")
        if file.stem in (THERE[row].stem, str(THERE[row].number))
    )


def write(file: Path, features: np.ndarray) -> None:
    """Features in the format of the file's suffix, with boxes in an .npz."""
    if file.suffix == ".pth":
        torch.save(torch.from_numpy(features), file)
    elif file.suffix == ".npz":
        np.savez(
            file, x=features, bbox=np.ones((len(features), 4), np.float32), num_bbox=len(features)
        )
    else:
        np.save(file, features)


ONES = np.ones((4, 9), np.float32)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (
            lambda file: write(file, ONES[:, :8]),
            "expected 9 values an item, as in the first file, got 8",
        ),
        (
            lambda file: write(file, np.where(ONES.cumsum(0) == 3, np.nan, ONES)),
            "finite values, got nan in item 2",
        ),
        (
            lambda file: write(file, np.full_like(ONES, -np.inf)),
            "expected finite values, got -inf in item 0",
        ),
        (
            lambda file: write(file, ONES.astype(np.int64)),
            r"expected .*floats, got (torch\.)?int64",
        ),
        (lambda file: write(file, ONES[:0]), r"expected features \[n, D\], got shape \(0, 9\)"),
        (lambda file: file.write_bytes(file.read_bytes()[:-40]), "not readable"),
        (lambda file: file.write_bytes(b""), "not readable"),
        (lambda file: file.write_bytes(b"text"), "not readable"),
    ],
)
def test_a_damaged_file(damage: Callable[[Path], None], said: str, job: ImportJob) -> None:
    """It is one failed image, and no other is."""
    file = file_of(job, 2)
    damage(file)
    ((failed, reason),) = import_features(replace(job, on_error="skip")).failed.items()
    assert failed == 2
    assert re.search(rf"{file.name}.*{said}", reason)
    assert "\n" not in reason
    assert FeatureStore(job.store).done.tolist() == [row != 2 for row in range(6)]


def test_a_damaged_file_ends_an_import_unless_it_is_skipped(job: ImportJob) -> None:
    file = file_of(job, 2)
    file.write_bytes(b"text")
    with pytest.raises(InputError, match=rf"{file.name}.*not readable.*--on-error skip") as caught:
        import_features(job)
    assert "\n" not in str(caught.value)


def test_as_many_boxes_as_values_an_item_are_read_as_they_are(tmp_path: Path) -> None:
    features = np.arange(16, dtype=np.float32).reshape(4, 4)
    write(tmp_path / "square.npz", features)
    np.testing.assert_array_equal(folder.load(tmp_path / "square.npz").features, features)


def test_nothing_is_unpickled(job: ImportJob, tmp_path: Path) -> None:
    """Not the members that are left alone, and not the features."""
    fuse, file = tmp_path / "fuse", file_of(job, 2)
    bomb = np.full((4, 9), Bomb(fuse), dtype=object)
    if file.suffix == ".npz":
        np.savez(file, x=THERE[2].features, bbox=THERE[2].boxes, num_bbox=4, info=bomb)
        import_features(replace(job, store=tmp_path / "whole.zarr"))
        np.savez(file, x=bomb, bbox=THERE[2].boxes, num_bbox=4)
    elif file.suffix == ".npy":
        np.save(file, bomb)
    else:
        torch.save({"features": Bomb(fuse)}, file)
    with pytest.raises(InputError, match=rf"{file.name}.*: not readable"):
        import_features(job)
    file.write_bytes(pickle.dumps(Bomb(fuse)))
    with pytest.raises(InputError, match=rf"{file.name}.*: not readable"):
        import_features(job)
    assert not fuse.exists()


def test_two_files_of_one_image(job: ImportJob) -> None:
    file = file_of(job, 2)
    (job.paths[0] / "again").mkdir()
    (job.paths[0] / "again" / file.name).write_bytes(file.read_bytes())
    again = job.paths[0] / "again" / file.name
    assert (
        "1 file repeated with the same features; the first of each counts"
        in import_features(job).notes
    )
    again.write_bytes(b"damaged")
    notes = import_features(replace(job, store=job.store.with_name("t.zarr"))).notes
    assert any(note.startswith("left out 1 of 7 files (damaged file: 1)") for note in notes)
    again.write_bytes(file_of(job, 3).read_bytes())
    notes = import_features(replace(job, store=job.store.with_name("u.zarr"))).notes
    assert any(
        note.startswith("left out 1 of 7 files (an image has other features there, too")
        for note in notes
    )


def test_files_that_are_not_features_are_not_looked_at(job: ImportJob) -> None:
    file = file_of(job, 2)
    (file.parent / f"._{file.name}").write_bytes(b"a Macintosh was here")
    (file.parent / "readme.txt").write_text("x")
    assert import_features(job).images == 6


def test_several_folders(job: ImportJob, tmp_path: Path) -> None:
    file = file_of(job, 2)
    (tmp_path / "more").mkdir()
    file.rename(tmp_path / "more" / file.name)
    with pytest.raises(InputError, match="1 of 6 images are missing or damaged"):
        import_features(job)
    assert import_features(replace(job, paths=(*job.paths, tmp_path / "more"))).images == 6


def test_no_folder_or_no_files(job: ImportJob, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere: no such folder of features"):
        import_features(replace(job, paths=(tmp_path / "nowhere",)))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"expected files .npy, .npz, .pth, found none"):
        import_features(replace(job, paths=(tmp_path / "empty",)))


def test_a_map_is_read_row_by_row(tmp_path: Path) -> None:
    """Hand-made: channel c of the item in row y and column x has the value 100 c + 10 y + x."""
    c, y, x = np.meshgrid(np.arange(2), np.arange(3), np.arange(4), indexing="ij")
    torch.save(
        torch.from_numpy((100 * c + 10 * y + x).astype(np.float32))[None], tmp_path / "m.pth"
    )
    assert folder.shape_of(tmp_path / "m.pth") == (12, 2)
    assert folder.load(tmp_path / "m.pth").features[:6].tolist() == [
        [0, 100],
        [1, 101],
        [2, 102],
        [3, 103],
        [10, 110],
        [11, 111],
    ]


@pytest.mark.parametrize("shape", [(5,), (1, 4, 9), (2, 9, 2, 2), (1, 1, 9, 2, 2)])
def test_a_tensor_of_another_shape(shape: tuple[int, ...], tmp_path: Path) -> None:
    torch.save(torch.ones(shape), tmp_path / "m.pth")
    with pytest.raises(folder.UnusableItems, match=r"expected a tensor \[n, D\]"):
        folder.shape_of(tmp_path / "m.pth")


@pytest.mark.parametrize("lying", [True, False])
def test_as_many_boxes_as_values_is_what_the_other_files_are(lying: bool, tmp_path: Path) -> None:
    table = foreign.manifest(4)
    there = foreign.pictures(table, [5, 9, 4, 9], 9)
    for each in there:
        features = each.features.T if lying else each.features
        np.savez(tmp_path / f"{each.file.split('/')[-1]}.npz", feat=features, boxes=each.boxes)
    done = import_features(foreign.job(table, "folder", [tmp_path], tmp_path / "s.zarr"))
    assert done.notes == ["read as a file an image, .npz" + ", its arrays [D, n]" * lying]
    features, counts = FeatureStore(tmp_path / "s.zarr").read(np.arange(4))
    assert counts.tolist() == [5, 9, 4, 9]
    assert np.array_equal(features[3], there[3].features)


def test_axes_of_one_and_images_with_more_items_than_values(tmp_path: Path) -> None:
    table = foreign.manifest(2)
    for each in foreign.pictures(table, [20, 20], 9):
        np.save(tmp_path / f"{each.stem}.jpg.npy", each.features.astype(np.float16)[:, :, None])
    done = import_features(foreign.job(table, "folder", [tmp_path], tmp_path / "s.zarr"))
    assert done.notes[1] == (
        "20 items of 9 values an image: if it is the other way round, save the arrays transposed, "
        "[n, D]"
    )
    assert FeatureStore(tmp_path / "s.zarr").layout.dimension == 9


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"y": ONES}, "expected one member of x, features, feature, feat, feats, got y"),
        ({"x": ONES, "features": ONES}, "expected one member of x, .*, got x, features"),
        ({"x": ONES, "num_bbox": np.array(5)}, r"expected features of 5 boxes, got shape \(4, 9\)"),
        ({"x": ONES[0]}, r"expected features \[n, D\], got shape \(9,\)"),
    ],
)
def test_members_that_do_not_fit(members: dict[str, np.ndarray], said: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", **members)  # type: ignore[arg-type]
    with pytest.raises(folder.UnusableItems, match=said):
        folder.shape_of(tmp_path / "m.npz")


def test_labels_beside_the_features(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "m.npz",
        features=ONES,
        bbox=np.ones((4, 4)),
        objects_id=np.arange(4),
        objects_conf=np.full(4, 0.5),
        attrs_id=np.arange(4),
        attrs_conf=np.full(4, 0.25),
        image_h=3,
        image_w=2,
    )
    found = folder.load(tmp_path / "m.npz")
    assert list(found.extras) == ["boxes", "object", "object_score", "attribute", "attribute_score"]
    assert found.size == (2, 3)


@pytest.mark.parametrize("kind", ["lfs", "annex"])
def test_features_are_said_not_to_be_fetched(kind: str, tmp_path: Path) -> None:
    """Of files of one image each, and of one file of all images."""
    folder = tmp_path / "features"
    folder.mkdir()
    words = "is a pointer of Git LFS" if kind == "lfs" else "is a link of git-annex to a file that"
    places = [folder / f"{Path(each.file).stem}.npz" for each in THERE]
    for place in (*places, tmp_path / "all.tsv"):
        if kind == "lfs":
            place.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
        else:
            place.symlink_to(f"../.git/annex/objects/{place.name}")
    for form, source in (("folder", folder), ("butd-tsv", tmp_path / "all.tsv")):
        with pytest.raises(InputError, match=words):
            import_features(foreign.job(TABLE, form, [source], tmp_path / "s.zarr"))


def test_values_of_one_byte_are_counted_as_the_floats_that_they_become(tmp_path: Path) -> None:
    one = torch.zeros(1, dtype=torch.float8_e4m3fn)
    torch.save(one.expand(4_000, 60_000), tmp_path / "m.pth")  # a kB: 240 MB, 960 MB of float32
    with pytest.raises(
        folder.UnusableItems, match=r"become more than .* save the features themselves"
    ):
        folder.load(tmp_path / "m.pth")


def test_boxes_that_are_no_boxes_or_are_there_twice_are_one_line(tmp_path: Path) -> None:
    features = np.ones((4, 9), np.float32)
    boxes = np.ones((4, 4), np.float32)
    for name, beside, expected in (
        ("twice", {"bbox": boxes, "boxes": 2 * boxes}, "has both bbox and boxes"),
        ("scalar", {"bbox": np.float32(3)}, "expected bbox [n, 4], got shape ()"),
        ("flat", {"boxes": np.ones(4, np.float32)}, "expected boxes [n, 4], got shape (4,)"),
        (
            "count",
            {"bbox": boxes, "num_bbox": np.array([4, 4])},
            "expected num_bbox to be one number",
        ),
    ):
        file = tmp_path / f"{name}.npz"
        np.savez(file, x=features, **beside)
        for read in (folder.shape_of, folder.load):
            with pytest.raises(UnusableItems) as raised:
                read(file)
            assert expected in str(raised.value), name
