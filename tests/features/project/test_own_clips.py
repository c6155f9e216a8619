"""A project for a user's own clips: frames are what is extracted, and parts of files stay parts."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
import yaml

from pipeline.foundation import manifest
from pipeline.make.features.project import own_data

pytestmark = pytest.mark.slow


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Twelve files of two parts each; nothing is decoded before an extraction."""
    (tmp_path / "clips").mkdir()
    rows = [("video", "caption", "start", "end")]
    for number in range(12):
        (tmp_path / "clips" / f"{number}.mp4").write_bytes(b"a film")
        rows += [
            (f"{number}.mp4", f"The beginning of {number}.", "", "1.5"),
            (f"{number}.mp4", "Its end.", "1.5", ""),
        ]
    with (tmp_path / "captions.csv").open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows(rows)
    return tmp_path / "clips"


def test_what_is_chosen_and_written(clips: Path) -> None:
    captions = clips.parent / "captions.csv"
    data = own_data.choose("mine", clips, captions, kind="video")
    assert (data.features, data.left_out, data.drawn) == (["frame"], {}, True)
    assert data.images == {"train": 16, "val": 4, "test": 4}
    texts, links = own_data.files(data, clips, captions, None)
    card = yaml.safe_load(texts["manifests/mine.yaml"])
    assert (card["kind"], links[card["images"]]) == ("video", clips)
    header, *lines = csv.reader(io.StringIO(texts[card["annotations"]]))
    assert header == ["video", "caption", "split", "start", "end"]
    written = {(file, caption, start, end) for file, caption, _, start, end in lines}
    with captions.open(encoding="utf-8") as given:
        assert written == {tuple(row) for row in list(csv.reader(given))[1:]}
    (clips.parent / "drawn.csv").write_text(texts[card["annotations"]], encoding="utf-8")
    again = manifest.build(
        "mine", clips, clips.parent / "drawn.csv", manifest.Reading(kind="video")
    )
    assert again.digest == data.table.digest


def test_parts_of_a_file_are_in_one_split(clips: Path) -> None:
    table = own_data.choose("mine", clips, clips.parent / "captions.csv", kind="video").table
    assert (table.images.groupby("file")["split"].nunique() == 1).all()
