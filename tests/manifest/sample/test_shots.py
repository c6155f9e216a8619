"""The video sample: shots that move as their captions tell."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation import manifest
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest.sample import render_shots
from pipeline.foundation.manifest.sample.role_graphs import graph
from pipeline.foundation.manifest.sample.scenes import compose
from pipeline.foundation.manifest.sample.shots import MOVEMENTS, Movement, choose, tell
from pipeline.foundation.parts.errors import InputError


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render_shots(tmp_path_factory.mktemp("sample_video"), clips=24, size=64).parent


@pytest.mark.slow
def test_the_manifest_takes_it(shots: Path) -> None:
    table = manifest.build(
        "sample_video", shots / "videos", shots / "captions.csv", manifest.Reading(kind="video")
    )
    assert table.images["split"].value_counts().to_dict() == {"train": 16, "val": 4, "test": 4}
    assert set(table.table.groupby("image_id").size()) == {5}


def test_shots_are_two_seconds_of_moving_pictures(shots: Path) -> None:
    for path in sorted((shots / "videos").iterdir())[:6]:
        frames = [
            np.asarray(frame, np.float32) for frame in GalleryFile(str(path), "video").frames(99)
        ]
        assert len(frames) == 30
        assert frames[0].shape == (64, 64, 3)
        assert np.abs(frames[0] - frames[-1]).mean() > 3


@pytest.mark.slow
def test_the_same_seed_gives_the_same_captions_and_frames(shots: Path, tmp_path: Path) -> None:
    again = render_shots(tmp_path, clips=24, size=64, processes=2)
    assert again.read_bytes() == (shots / "captions.csv").read_bytes()
    for path in sorted((shots / "videos").iterdir())[:3]:
        files = (folder / path.name for folder in (path.parent, tmp_path / "videos"))
        one, other = (GalleryFile(str(file), "video").frames(9) for file in files)
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_movement_goes_from_its_first_window_to_its_last() -> None:
    movement = Movement("", [0.0, 0.25, 0.5, 1.0], [0.5, 0.25, 1.0, 0.0], [])
    for time, window in (
        (0, (0.0, 0.25, 0.5, 1.0)),
        (0.25, (0.125, 0.25, 0.625, 0.75)),
        (1, (0.5, 0.25, 1.0, 0.0)),
    ):
        assert movement.at(time) == window
    # The camera that moves to the right shows more of the right; nearer, it shows less.
    assert MOVEMENTS["right"].at(1)[0] > MOVEMENTS["right"].at(0)[0]


def test_a_movement_backwards_is_its_opposite() -> None:
    for movement in MOVEMENTS.values():
        other = MOVEMENTS[movement.opposite]
        assert (movement.first, movement.last) == (other.last, other.first)
        assert not set(movement.phrases) & set(other.phrases)


@pytest.mark.parametrize(
    ("caption", "phrases", "pairs"),
    [
        (
            "A red and white striped ball is floating over a cube, with birds in the sky.",
            [
                "ARG1 A red and white striped ball",
                "V floating",
                "ARGM-LOC over a cube,",
                "ARGM-COM with birds",
                "ARGM-LOC in the sky.",
            ],
            ["floating-ball", "floating-cube,", "floating-birds", "floating-sky."],
        ),
        (
            "A red ring stands on a mug and the mug is behind two hearts with white spots.",
            [
                "ARG1 A red ring",
                "V stands",
                "ARGM-LOC on a mug",
                "ARG1 the mug",
                "V is",
                "ARGM-LOC behind two hearts with white spots.",
            ],
            ["stands-ring", "stands-mug", "is-mug", "is-spots."],
        ),
        (
            "We see a row of three balls floating above a drum.",
            [
                "ARG0 We",
                "V see",
                "ARG1 a row of three balls",
                "V floating",
                "ARGM-LOC above a drum.",
            ],
            ["see-We", "see-balls", "floating-balls", "floating-drum."],
        ),
        (
            "A blue cone on the left, a meadow",
            ["NOUN A blue cone", "NOUN on the left,", "NOUN a meadow"],
            [],
        ),
    ],
)
def test_role_graphs(caption: str, phrases: list[str], pairs: list[str]) -> None:
    nodes, edges = graph(caption)
    assert [f"{node['role']} {' '.join(node['words'])}" for node in nodes.values()][1:] == phrases
    assert [
        f"{nodes[verb]['words'][-1]}-{nodes[other]['words'][-1]}" for verb, other, _ in edges
    ] == pairs


def test_captions_tell_of_the_movement(shots: Path) -> None:
    with (shots / "captions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for index in range(24):
        own = [row["caption"] for row in rows if row["video"] == f"shot_{index:06d}.mp4"]
        phrases = MOVEMENTS[choose(0, index)].phrases
        assert sum(any(phrase in caption for phrase in phrases) for caption in own) == 2


def test_sideways_the_first_thing_is_on_the_side_where_the_shot_begins() -> None:
    for index in range(40):
        scene = compose(0, index)
        things = sorted(scene.things, key=lambda thing: thing.slot.x)
        caption = tell(scene, "right", 1, np.random.default_rng(0))[0]
        assert caption.index(f"{things[0].colour} ") < caption.rindex(f"{things[-1].colour} ")
        assert "a orange" not in caption


@pytest.mark.parametrize("wrong", [{"clips": 3}, {"size": 65}, {"size": 8}, {"seed": -1}])
def test_out_of_range(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected 12 to"):
        render_shots(tmp_path, **wrong)
