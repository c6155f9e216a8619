"""Checksums of photographs: they change exactly when a photograph does, and only files that changed
are read.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from pipeline.foundation.files import blake
from pipeline.foundation.manifest import Manifest, build, photographs
from pipeline.foundation.manifest.columns import PHOTOGRAPH
from pipeline.foundation.manifest.request import reference


@pytest.fixture
def scene_files(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the corpus, whose files count as written long ago."""
    monkeypatch.setattr(photographs, "SETTLED", -(10**12))
    monkeypatch.setattr(photographs, "TASK", 2)
    return shutil.copytree(corpus, tmp_path / "sample")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read since it was emptied."""
    names: list[str] = []
    whole = blake.of_file
    monkeypatch.setattr(
        blake, "of_file", lambda path: (names.append(Path(path).name), whole(path))[1]
    )
    return names


def made(folder: Path) -> Manifest:
    return photographs.with_checksums(
        build("sample", folder / "images", folder / "dataset_sample.json"), folder / "known"
    )


def saved(manifest: Manifest) -> bytes:
    manifest.save(manifest.images_folder.parent / "sample.parquet")
    return (manifest.images_folder.parent / "sample.parquet").read_bytes()


def replace(file: Path, content: bytes) -> None:
    """Move another file to its place, with the old one's size and date."""
    before, other = file.stat(), file.with_name("other")
    other.write_bytes(content)
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


def test_a_photograph_of_the_same_size_and_date_changes_the_manifest_and_is_read_alone(
    scene_files: Path, read: list[str]
) -> None:
    first = made(scene_files)
    assert first.images[PHOTOGRAPH].tolist() == [
        blake.of_file(file.path) for file in first.gallery()
    ]
    read.clear()
    again = made(scene_files)
    assert not read
    assert saved(again) == saved(first)
    file = first.gallery()[3].path
    replace(file, file.read_bytes()[:-1] + b"x")
    after = made(scene_files)
    assert read == [file.name]
    assert (after.images[PHOTOGRAPH] != first.images[PHOTOGRAPH]).to_numpy().nonzero()[
        0
    ].tolist() == [3]
    assert saved(after) != saved(first)
    assert after.images_digest == first.images_digest  # a store compares photographs itself
    assert after.digest != first.digest


def test_a_file_with_another_date_and_the_same_bytes_changes_nothing(
    scene_files: Path, read: list[str]
) -> None:
    first = made(scene_files)
    read.clear()
    file = first.gallery()[5].path
    file.touch()
    assert saved(made(scene_files)) == saved(first)
    assert read == [file.name]


@pytest.mark.parametrize("content", [b"", b"PAR1 no Parquet PAR1"])
def test_what_was_kept_and_is_damaged_is_made_again(
    scene_files: Path, read: list[str], content: bytes
) -> None:
    first = made(scene_files)
    (scene_files / "known").write_bytes(content)
    read.clear()
    assert saved(made(scene_files)) == saved(first)
    assert len(read) == 24


def test_a_file_that_was_just_written_is_read_again(
    scene_files: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photographs, "SETTLED", 10**12)
    made(scene_files)
    read.clear()
    made(scene_files)
    assert len(read) == 24


def test_a_manifest_has_one_identity_of_its_contents_wherever_it_is(scene_files: Path) -> None:
    manifest = made(scene_files)
    manifest.save(scene_files / "sample.parquet")
    shutil.copytree(scene_files / "images", scene_files / "elsewhere")
    moved = dataclasses.replace(manifest, images_folder=scene_files / "elsewhere")
    moved.save(scene_files / "moved.parquet")
    identity = reference(scene_files / "sample.parquet", "sample")
    assert (
        identity
        == reference(scene_files / "moved.parquet", "sample")
        == manifest.reference
        == moved.reference
    )
    lacking = dataclasses.replace(manifest, left_out={"image missing": 1})
    table = manifest.table.assign(photograph="0" * 32)
    assert (
        len({manifest.digest, lacking.digest, dataclasses.replace(manifest, source=table).digest})
        == 3
    )
