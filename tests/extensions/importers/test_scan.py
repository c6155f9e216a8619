"""SCAN's layout: what fits the manifest is read, through a memory map; what does not is refused
with its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import foreign
import numpy as np
import pytest

from pipeline.extensions.importers import ImportJob, import_features
from pipeline.extensions.importers.scan import bare
from pipeline.foundation.files import npy
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow

TABLE = foreign.manifest(12)
THERE = foreign.pictures(TABLE, [3] * 12, 5)


@pytest.fixture
def job(tmp_path: Path) -> ImportJob:
    (tmp_path / "f").mkdir()
    return foreign.job(TABLE, "scan", foreign.scan(tmp_path / "f", THERE), tmp_path / "s.zarr")


def change_array(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        np.save(folder / name, change(np.load(folder / name)))

    return act


def change_lines(name: str, change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def act(folder: Path) -> None:
        (folder / name).write_text(
            "\n".join(change((folder / name).read_text().rstrip("\n").split("\n"))) + "\n"
        )

    return act


def test_the_array_is_only_ever_mapped(job: ImportJob, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[np.ndarray] = []
    mapped = npy.mapped

    def spy(file: Path) -> np.ndarray:
        found.append(mapped(file))
        return found[-1]

    monkeypatch.setattr(npy, "mapped", spy)
    import_features(job)
    assert len(found) >= 12
    assert all(isinstance(each, np.memmap) and not each.flags.writeable for each in found)


@pytest.mark.specification
@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda folder: (folder / "dev_caps.txt").unlink(), "dev_caps.txt: No such file"),
        (lambda folder: (folder / "dev_ids.txt").unlink(), "dev_ids.txt: No such file"),
        (
            lambda folder: (folder / "dev_ids.txt").write_bytes(b"\xff"),
            "dev_ids.txt: byte 0 is not UTF-8",
        ),
        (
            lambda folder: (folder / "dev_ims.npy").write_bytes(b"\x93NUMPY"),
            "dev_ims.npy: not readable as an array",
        ),
        (
            lambda folder: (folder / "dev_ims.npy").write_bytes(
                (folder / "dev_ims.npy").read_bytes()[:-9]
            ),
            "dev_ims.npy: not readable as an array",
        ),
        (
            lambda folder: np.save(
                folder / "dev_ims.npy", np.array([{}, []], dtype=object), allow_pickle=True
            ),
            "dev_ims.npy: not readable as an array",
        ),
        (
            change_array("dev_ims.npy", lambda array: array[:, 0]),
            r"expected floats of shape .*, got float32 \(3, 5\)",
        ),
        (
            change_array("dev_ims.npy", lambda array: array.astype(int)),
            "expected floats of shape .*, got int64",
        ),
        (
            change_array("dev_ims.npy", lambda array: array[:2]),
            "dev_ims.npy: 2 images, 3 ids and 15 captions do not fit",
        ),
        (
            change_array("dev_ims.npy", lambda array: array[:, :2]),
            "dev_ims.npy: expected 3 items of 5 values an image, as in train_ims.npy, got 2 of 5",
        ),
        (
            change_array("dev_ims.npy", lambda array: array.repeat(5, axis=0)[np.r_[0:7, 8:15, 7]]),
            "dev_ims.npy: has a row a caption, expected the five rows of an image to be equal, rows 5 and 9",
        ),
        (
            change_array(
                "testall_ims.npy",
                lambda array: np.where(np.arange(3)[:, None, None] == 1, np.nan, array),
            ),
            "testall_ims.npy, row 1, id .*: features: expected finite values, got nan in item 0",
        ),
        (
            change_lines("dev_ids.txt", lambda lines: ["99999", *lines[1:]]),
            "1 of 12 images are missing .*not in the manifest, the first '99999' in .*line 1",
        ),
        (
            change_lines("dev_ids.txt", lambda lines: [lines[0], "x", lines[2]]),
            "the first 'x' in .*dev_ids.txt, line 2",
        ),
        (
            change_lines("train_ids.txt", lambda lines: ["x" for _ in lines]),
            "train_ids.txt, line 1: expected an image id of coco, got 'x'; .*it has 0 of 6",
        ),
        (
            change_lines("dev_ids.txt", lambda lines: [lines[1], lines[0], lines[2]]),
            "caps.txt, line 1: .* is no caption",
        ),
        (
            change_lines(
                "dev_ids.txt",
                lambda lines: [line for line in lines for _ in range(5)][:9] + lines[:1] * 6,
            ),
            "dev_ids.txt: has an id a caption, expected the lines 6 to 10 to be equal",
        ),
        (
            change_lines("dev_caps.txt", lambda lines: lines[:-1]),
            "3 images, 3 ids and 14 captions do not fit",
        ),
        (
            lambda folder: [
                change_lines("dev_ids.txt", lambda lines: [lines[0], lines[0], lines[2]])(folder),
                change_lines("dev_caps.txt", lambda lines: lines[:5] * 2 + lines[10:])(folder),
            ],
            r"dev_ids.txt, line 2: the id \d+ is also in line 1",
        ),
        (
            lambda folder: [
                (folder / f"train_{name}").write_bytes((folder / f"dev_{name}").read_bytes())
                for name in ("ims.npy", "ids.txt", "caps.txt")
            ],
            r"dev_ims.npy: image 0 is also in train_ims.npy",
        ),
    ],
)
def test_what_does_not_fit(act: Callable[[Path], object], said: str, job: ImportJob) -> None:
    act(job.paths[0])
    with pytest.raises(InputError, match=said) as caught:
        import_features(job)
    assert "\n" not in str(caught.value)


def test_another_data_sets_manifest_is_refused(job: ImportJob) -> None:
    """The same ids with the captions of other images: the first that differs is named."""
    mixed = TABLE.table["caption"].sample(frac=1, random_state=0).to_numpy()
    other = replace(TABLE, source=TABLE.table.assign(caption=mixed))
    with pytest.raises(
        InputError, match=r"train_caps\.txt, line 1: .* is no caption of image \d+ in the manifest"
    ):
        import_features(replace(job, manifest=other))


def test_images_that_a_manifest_left_out_are_passed_over(job: ImportJob) -> None:
    """A manifest without an image whose captions were blank reads the released files of all."""
    fewer = TABLE.table[TABLE.table["image_id"] != TABLE.images["image_id"][0]].reset_index(
        drop=True
    )
    done = import_features(replace(job, manifest=replace(TABLE, source=fewer)))
    assert done.images == 11
    assert "1 of 12 images are not in the manifest, the first " in done.notes[1]


def test_captions_spelt_otherwise_are_told(job: ImportJob) -> None:
    """The released COCO files spell some words in the American way: two captions of five may
    differ, not three.
    """
    change_lines("dev_caps.txt", lambda lines: ["colour", "grey", *lines[2:]])(job.paths[0])
    assert import_features(job).notes == [
        "read as SCAN's files, train_ims.npy, dev_ims.npy, testall_ims.npy, 5 captions an image",
        "2 of 60 captions are spelt otherwise than in the manifest",
    ]
    change_lines("dev_caps.txt", lambda lines: [*lines[:2], "theatre", *lines[3:]])(job.paths[0])
    with pytest.raises(InputError, match=r"dev_caps\.txt, line 1: 'colour' is no caption"):
        import_features(replace(job, store=job.store.with_name("t.zarr")))


@pytest.mark.parametrize(
    ("raw", "released"),
    [
        (
            "A man's \"Stop\" sign, (red) & white/blue; he can't read.",
            "a man 's `` Stop '' sign , ( red ) & white\\/blue ; he ca n't read .",
        ),
        ("A café's façade\n", "a cafe 's facade"),
        ("两只狗。", "两只狗 。"),
    ],
)
def test_captions_are_compared_bare(raw: str, released: str) -> None:
    assert bare(raw) == bare(released) != bare(raw + "x")


def test_a_part_of_the_splits(job: ImportJob) -> None:
    """`test`, the first images of `testall`, is read only where the whole is not there; so is `val`
    for `dev`.
    """
    folder = job.paths[0]
    for name in ("ims.npy", "ids.txt", "caps.txt"):
        (folder / f"train_{name}").unlink()
        (folder / f"dev_{name}").rename(folder / f"val_{name}")
        (folder / f"test_{name}").write_bytes(b"not read")
    with pytest.raises(InputError, match="6 of 12 images are missing or damaged"):
        import_features(job)
    assert len(import_features(replace(job, on_error="skip")).failed) == 6
    assert set(TABLE.images["split"][FeatureStore(job.store).done]) == {"val", "test"}


def test_counts_that_vary(job: ImportJob) -> None:
    np.save(job.paths[0] / "dev_counts.npy", np.array([1, 3, 2], np.int32))
    import_features(job)
    store = FeatureStore(job.store)
    counts = store.counts[(TABLE.images["split"] == "val").to_numpy()]
    assert sorted(counts.tolist()) == [1, 2, 3]
    for wrong in (
        np.array([1, 3]),
        np.array([0, 1, 2]),
        np.array([1, 2, 4]),
        np.array([1.0, 2.0, 3.0]),
    ):
        np.save(job.paths[0] / "dev_counts.npy", wrong)
        with pytest.raises(InputError, match=r"dev_counts\.npy: expected 3 integers of 1 to 3"):
            import_features(job)


def test_no_folder_of_scans(job: ImportJob, tmp_path: Path) -> None:
    for paths in ((tmp_path / "nowhere",), (*job.paths, *job.paths)):
        with pytest.raises(InputError, match="expected one folder with SCAN's files"):
            import_features(replace(job, paths=paths))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"expected one at least of train_ims\.npy"):
        import_features(replace(job, paths=(tmp_path / "empty",)))
