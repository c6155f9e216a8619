"""The folder that the sample corpus is written to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pipeline.foundation.manifest.sample import render
from pipeline.foundation.manifest.sample.wording import tokens
from pipeline.foundation.parts.errors import InputError


def read(listing: Path) -> list[dict[str, Any]]:
    document = json.loads(listing.read_text(encoding="utf-8"))
    assert document["dataset"] == "sample"
    images: list[dict[str, Any]] = document["images"]
    return images


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()
    }


@pytest.mark.slow
def test_the_listing_is_in_karpathys_layout_and_matches_the_pictures(tmp_path: Path) -> None:
    listing = render(tmp_path, images=24, size=40)
    assert listing == tmp_path / "dataset_sample.json"
    images = read(listing)
    assert [image["imgid"] for image in images] == list(range(24))
    assert {p.name for p in (tmp_path / "images").iterdir()} == {
        image["filename"] for image in images
    }
    for image in images:
        with Image.open(tmp_path / "images" / image["filename"]) as picture:
            assert (picture.format, picture.mode, picture.size) == ("JPEG", "RGB", (40, 40))
        assert image["sentids"] == [sentence["sentid"] for sentence in image["sentences"]]
        assert all(sentence["imgid"] == image["imgid"] for sentence in image["sentences"])
        assert all(sentence["tokens"] == tokens(sentence["raw"]) for sentence in image["sentences"])
        assert len({sentence["raw"] for sentence in image["sentences"]}) == 5
    assert [k for image in images for k in image["sentids"]] == list(range(5 * 24))


@pytest.mark.parametrize(("images", "sizes"), [(12, (8, 2, 2)), (24, (16, 4, 4)), (13, (9, 2, 2))])
def test_two_thirds_train_and_a_sixth_each_for_validation_and_test(
    tmp_path: Path, images: int, sizes: tuple[int, int, int]
) -> None:
    splits = Counter(image["split"] for image in read(render(tmp_path, images=images, size=32)))
    assert tuple(splits[name] for name in ("train", "val", "test")) == sizes


@pytest.mark.slow
@pytest.mark.specification
def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_corpus(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        render(tmp_path / name, images=12, size=48, seed=seed)
    a, b, c = (contents(tmp_path / name) for name in "abc")
    assert a == b
    assert a.keys() == c.keys()
    assert all(a[name] != c[name] for name in a)


@pytest.mark.slow
def test_a_smaller_corpus_is_the_beginning_of_a_larger_one(tmp_path: Path) -> None:
    small, large = (read(render(tmp_path / str(n), images=n, size=32)) for n in (12, 18))
    assert small == large[:12]
    pictures = contents(tmp_path / "12" / "images")
    assert pictures.items() <= contents(tmp_path / "18" / "images").items()


@pytest.mark.slow
def test_rendering_again_replaces_the_sample_and_leaves_other_files_alone(tmp_path: Path) -> None:
    render(tmp_path, images=18, size=32)
    (tmp_path / "images" / "holiday.jpg").write_bytes(b"mine")
    (tmp_path / "images" / "sample_000002.jpg.partial").write_bytes(b"cut off")
    render(tmp_path, images=12, size=32)
    first = contents(tmp_path)
    assert {name for name in first if name != "images/holiday.jpg"} == {
        "dataset_sample.json",
        *(f"images/sample_{k:06d}.jpg" for k in range(12)),
    }
    assert first["images/holiday.jpg"] == b"mine"
    render(tmp_path, images=12, size=32)
    assert contents(tmp_path) == first


@pytest.mark.slow
def test_a_cut_leaves_no_listing_and_no_half_written_file(tmp_path: Path) -> None:
    def cut(done: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    render(tmp_path, images=12, size=32, seed=1)
    with pytest.raises(KeyboardInterrupt):
        render(tmp_path, images=12, size=32, seed=2, progress=cut)
    assert not (tmp_path / "dataset_sample.json").exists()
    assert not list(tmp_path.rglob("*.partial"))
    render(tmp_path, images=12, size=32, seed=2)
    render(tmp_path / "whole", images=12, size=32, seed=2)
    assert contents(tmp_path / "whole").items() <= contents(tmp_path).items()


def test_progress_counts_every_image(tmp_path: Path) -> None:
    seen: list[int] = []
    render(tmp_path, images=12, size=32, progress=seen.append)
    assert seen == list(range(1, 13))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"images": 11}, "expected 12 to"),
        ({"images": 10_000_000}, "expected 12 to"),
        ({"size": 31}, "expected 12 to"),
        ({"size": 5000}, "expected 12 to"),
        ({"seed": -1}, "expected 12 to"),
    ],
)
def test_arguments_out_of_range_are_refused_before_anything_is_written(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        render(tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("not a folder")
    with pytest.raises(InputError, match="cannot write the sample"):
        render(tmp_path / "out", images=12, size=32)


def test_processes_share_the_work_and_change_nothing(corpus: Path, tmp_path: Path) -> None:
    reported: list[int] = []
    render(tmp_path / "sample", images=24, size=64, seed=0, progress=reported.append, processes=2)
    assert reported == list(range(1, 25))
    files = {file.relative_to(corpus): file.read_bytes() for file in corpus.rglob("*.*")}
    assert {
        file.relative_to(tmp_path / "sample"): file.read_bytes() for file in tmp_path.rglob("*.*")
    } == files
