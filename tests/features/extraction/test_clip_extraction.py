"""Clips through an extraction: frames in order, parts of files, failures, and what a changed part
costs.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.foundation import manifest
from pipeline.foundation.files import blake, videos
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features import extraction, extractors
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore, ledger
from tests.clips import encode, picture, sound

pytestmark = pytest.mark.slow

ENGINE = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64, "frames": 4}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    encode(tmp_path / "clips" / "long.mp4", [picture(number) for number in range(20)])
    encode(tmp_path / "clips" / "short.mkv", [picture(7), picture(9)])
    return tmp_path / "clips"


def clips(folder: Path, *more: str, end: str = "0.4") -> Manifest:
    lines = [
        "video,caption,split,start,end",
        f"long.mp4,The beginning.,train,0,{end}",
        "long.mp4,The end.,train,0.4,",
        "short.mkv,A short one.,train,,",
        *more,
    ]
    (folder.parent / "captions.csv").write_text("\n".join(lines) + "\n")
    return manifest.build(
        "mine", folder, folder.parent / "captions.csv", manifest.Reading(kind="video")
    )


def extracting(table: Manifest, store: Path, **changes: Any) -> extraction.ExtractionJob:
    engine = extraction.EngineSpec("frame", ENGINE, Runtime())
    return replace(
        extraction.ExtractionJob(
            table, table.images_folder, store, engine, batch_size=2, shard_images=2, dtype="float32"
        ),
        **changes,
    )


def expected(*numbers: int) -> np.ndarray:
    engine: Any = extractors.build("frame", ENGINE, Runtime())
    shots = engine.prepare_frames([picture(number) for number in numbers])
    return engine.extract([shots], [(64, 48)])[0].features


def test_frames_of_parts_in_order(folder: Path, tmp_path: Path) -> None:
    table = clips(folder)
    extraction.extract(extracting(table, tmp_path / "frame.zarr"))
    store = FeatureStore(tmp_path / "frame.zarr").require(table)
    items, counts = store.read(np.arange(3))
    assert counts.tolist() == [4, 4, 2]
    for row, numbers in enumerate(([1, 3, 6, 8], [11, 13, 16, 18], [7, 9])):
        np.testing.assert_allclose(items[row, : counts[row]], expected(*numbers), atol=2e-3)
    assert store.columns("sizes").tolist() == [[64, 48]] * 3


def test_four_rotations_of_a_phone_give_the_same_features() -> None:
    """Stored turned, with a display matrix that says so; without a loss, so that nothing else
    differs.
    """
    noise = np.random.default_rng(0).integers(0, 256, (3, 48, 64, 3), np.uint8)
    upright = [Image.fromarray(each).resize((128, 96)) for each in noise]
    engine: Any = extractors.build("frame", ENGINE, Runtime())
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in (0, 90, 180, 270):
            stored = [shown.rotate(-turn, expand=True) for shown in upright]
            made = encode(
                Path(folder, f"{turn}.mov"), stored, rotation=turn, qp=0, pix_fmt="yuv444p"
            )
            found.append(
                engine.extract([engine.prepare_frames(videos.frames(made, 20))], [(128, 96)])[
                    0
                ].features
            )
    for turned in found[1:]:
        np.testing.assert_allclose(turned, found[0], atol=1e-3)


def test_what_cannot_be_decoded_fails_with_its_reason(folder: Path, tmp_path: Path) -> None:
    sound(folder / "song.m4v")
    (folder / "empty.mp4").write_bytes(b"")
    table = clips(
        folder,
        "song.m4v,A song.,train,,",
        "empty.mp4,Nothing.,train,,",
        "short.mkv,Too late.,train,9,10",
    )
    job = extracting(table, tmp_path / "frame.zarr")
    with pytest.raises(
        InputError, match=r"song\.m4v: holds no video, sound alone; repair or remove it"
    ):
        extraction.extract(job)
    outcome = extraction.extract(replace(job, on_error="skip"))
    assert outcome.failed == {
        3: "holds no video, sound alone",
        4: "the file is empty",
        5: "no frame from 9 s to 10 s",
    }


def test_another_part_is_extracted_anew_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "frame.zarr"
    extraction.extract(extracting(clips(folder), store))
    assert extraction.extract(extracting(clips(folder), store)).extracted == 0
    table = clips(folder, end="0.2")
    assert extraction.extract(extracting(table, store)).extracted == 1
    opened = FeatureStore(store).require(table)
    items, counts = opened.read(np.arange(3))
    np.testing.assert_allclose(items[0, : counts[0]], expected(0, 1, 3, 4), atol=2e-3)
    np.testing.assert_allclose(items[1, : counts[1]], expected(11, 13, 16, 18), atol=2e-3)


def test_the_ledger_tells_parts_of_a_file_apart(folder: Path, tmp_path: Path) -> None:
    table = clips(folder)
    extraction.extract(extracting(table, tmp_path / "frame.zarr"))
    entries = ledger.entries(tmp_path / "frame.zarr", FeatureStore(tmp_path / "frame.zarr").layout)
    found = {row: checksum for entry in entries for row, checksum in entry.sources.items()}
    assert found == {row: blake.of_item(file) for row, file in enumerate(table.gallery())}
    assert len(set(found.values())) == 3
    assert found[2] == blake.of_file(folder / "short.mkv")


def test_engines_of_photographs_refuse_clips(folder: Path, tmp_path: Path) -> None:
    options = {key: value for key, value in ENGINE.items() if key != "frames"} | {"grid": 2}
    engine = extraction.EngineSpec("grid", options, Runtime())
    with pytest.raises(
        InputError, match="the engine grid reads photographs, and the manifest holds clips"
    ):
        extraction.extract(extracting(clips(folder), tmp_path / "grid.zarr", engine=engine))


def test_photographs_are_clips_of_one_frame(scenes: Manifest, tmp_path: Path) -> None:
    extraction.extract(extracting(scenes, tmp_path / "frame.zarr"))
    assert FeatureStore(tmp_path / "frame.zarr").require(scenes).columns("counts").tolist() == [
        1
    ] * len(scenes.images)
