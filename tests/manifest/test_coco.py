"""COCO's own annotations as manifests."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pipeline.foundation import manifest
from pipeline.foundation.manifest import build, reader, text_file
from pipeline.foundation.manifest.json_captions import COCO
from pipeline.foundation.manifest.reader import Source
from pipeline.foundation.parts.errors import InputError

IMAGES = [
    {"license": 1, "file_name": f"{name}.jpg", "id": number}
    for number, name in ((42, "b"), (9, "a"), (7, "c"))
]
CAPTIONS = [
    {"image_id": 9, "id": 1, "caption": "A dog. "},
    {"image_id": 42, "id": 2, "caption": "A cat."},
    {"image_id": 9, "id": 3, "caption": "Dogs."},
    {"image_id": 7, "id": 5, "caption": "A bird."},
]
OBJECTS = {
    "annotations": [
        {"image_id": 42, "id": 1, "category_id": 3},
        {"image_id": 42, "id": 2, "category_id": 1},
        {"image_id": 42, "id": 4, "category_id": 3},
        {"image_id": 9, "id": 3, "category_id": 1},
    ],
    "categories": [{"id": 1, "name": "dog"}, {"id": 3, "name": "cat"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for image in IMAGES:
        for place in ("val2014", "train2014"):
            (tmp_path / place).mkdir(exist_ok=True)
            Image.new("RGB", (8, 8)).save(tmp_path / place / str(image["file_name"]))
    return tmp_path


def write(path: Path, **tree: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"info": {"year": 2014}, "images": IMAGES, **tree}))
    return path


@pytest.mark.specification
def test_captions_of_a_split(folder: Path) -> None:
    made = build(
        "coco", folder / "val2014", write(folder / "captions_val2014.json", annotations=CAPTIONS)
    )
    assert made.images["image_id"].tolist() == [42, 9, 7]
    assert made.images["file"].tolist() == ["b.jpg", "a.jpg", "c.jpg"]
    assert made.images["split"].tolist() == ["val"] * 3
    assert made.table["caption"].tolist() == ["A cat.", "A dog.", "Dogs.", "A bird."]
    assert made.table["caption_id"].tolist() == [2, 1, 3, 5]


def test_a_folder_of_annotations_has_all_splits(folder: Path) -> None:
    write(folder / "annotations" / "captions_val2014.json", annotations=CAPTIONS)
    others = [{**image, "id": image["id"] + 100} for image in IMAGES]  # type: ignore[operator]
    write(
        folder / "annotations" / "captions_train2014.json",
        images=others,
        annotations=[
            {**each, "image_id": each["image_id"] + 100, "id": each["id"] + 100}
            for each in CAPTIONS
        ],
    )  # type: ignore[operator]
    write(folder / "annotations" / "instances_val2014.json", **OBJECTS)
    made = build("coco", folder, folder / "annotations")
    assert made.images["file"].tolist()[::3] == ["train2014/b.jpg", "val2014/b.jpg"]
    assert made.images["split"].tolist() == ["train"] * 3 + ["val"] * 3


def test_instances_give_images_whose_captions_name_the_objects(folder: Path) -> None:
    made = build("coco", folder / "val2014", write(folder / "instances_val2014.json", **OBJECTS))
    assert made.table["caption"].tolist() == ["cat, dog", "dog", "no object"]


def test_annotations_may_stand_before_the_images(folder: Path) -> None:
    made = build(
        "coco", folder / "val2014", write(folder / "captions_val2014.json", annotations=CAPTIONS)
    )
    other = folder / "captions_val2017.json"
    other.write_text(
        json.dumps({"annotations": CAPTIONS, "licenses": [{"id": 1}], "images": IMAGES})
    )
    assert build("coco", folder / "val2014", other).table.equals(made.table)


@pytest.mark.slow
def test_captions_are_never_held_as_python_objects(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "AT_ONCE", 1000)
    monkeypatch.setattr(text_file, "PART", 1 << 14)
    file = write(
        folder / "captions_val2014.json",
        annotations=[
            {"image_id": 9, "id": number, "caption": f"caption {number} of a photograph"}
            for number in range(20_000)
        ],
    )
    tracemalloc.start()
    try:
        assert (
            len(COCO.read(Source(file))) == 20_000 + len(IMAGES) - 1
        )  # and images without a caption
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3 * file.stat().st_size


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"annotations": []}, "holds no captions"),
        ({"annotations": CAPTIONS, "images": 5}, "'images' is missing"),
        (
            {"annotations": [{"image_id": 1, "id": 1, "caption": "x"}]},
            "holds no captions; .*image not listed: 1",
        ),
        (
            {"annotations": [{"image_id": 9, "id": 1, "caption": 5}]},
            "holds no captions; .*no caption: 1",
        ),
        ({"annotations": [{"image_id": 9, "id": 1}]}, "not in COCO's layout: .*'categories'"),
        ({"annotations": 5}, "not in COCO's layout"),
        ({"images": [{"id": 1}], "annotations": []}, "file_name"),
        ({"annotations": [{"image_id": 9, "id": 1, "caption": "\ud800"}]}, "not UTF-8"),
        (
            {"annotations": [{"image_id": 9.5, "id": 1, "caption": "x"}]},
            "expected a whole number, got 9.5",
        ),
        (
            {"annotations": [{"image_id": 9, "id": True, "caption": "x"}]},
            "expected a whole number, got True",
        ),
    ],
)
def test_other_layouts_are_refused_in_one_line(
    folder: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError, match=said) as error:
        build("coco", folder / "val2014", write(folder / "captions_val2014.json", **changes))
    assert "\n" not in str(error.value)


def test_the_keys_that_are_read_are_named(folder: Path) -> None:
    said: list[str] = []
    file = write(folder / "captions_val2014.json", annotations=CAPTIONS)
    build("coco", folder / "val2014", file, say=said.append)
    assert said[0] == (
        f"{file}: read as COCO's JSON, UTF-8; image in file_name, caption in caption, or else the name "
        "of category_id"
    )
    for more, images, splits in (
        ({}, "filename", ""),
        ({"filepath": "val2014", "split": "test"}, "filepath and filename", ", split in split"),
    ):
        file.write_text(
            json.dumps({"images": [{"filename": "a.jpg", "sentences": [{"raw": "x"}], **more}]})
        )
        build("coco", None, file, say=said.append)
        assert (
            said[-1]
            == f"{file}: read as Karpathy's JSON, UTF-8; image in {images}, caption in raw{splits}"
        )


def test_karpathys_layout_is_still_karpathys(folder: Path) -> None:
    file = folder / "dataset_coco.json"
    file.write_text(
        json.dumps(
            {
                "images": [
                    {
                        "filename": "a.jpg",
                        "imgid": 0,
                        "split": "test",
                        "sentences": [{"raw": "x", "sentid": 0}],
                    }
                ],
                "dataset": "coco",
            }
        )
    )
    assert manifest.build("coco", folder / "val2014", file).images["split"].tolist() == ["test"]


@pytest.mark.parametrize("form", ["texts", "files", "annotations alone"])
def test_ids_may_be_texts(form: str, folder: Path) -> None:
    """Each caption is its image's, in whatever order the images are listed."""
    id_of = {each["id"]: each["file_name"] for each in IMAGES}
    if form == "texts":
        id_of = {number: f"image-{name}" for number, name in id_of.items()}
    captions = [
        each | {"image_id": id_of[each["image_id"]], "id": f"caption-{each['id']}"}
        for each in CAPTIONS
    ]
    tree: dict[str, Any] = {"annotations": captions}
    if form != "annotations alone":
        tree["images"] = [{"id": id_of[each["id"]]} for each in IMAGES]
    if form == "texts":
        for listed, image in zip(tree["images"], IMAGES, strict=True):
            listed["file_name"] = image["file_name"]
    file = folder / "captions_val2014.json"
    file.write_text(json.dumps(tree))
    rows = build("coco", folder / "val2014", file).rows(["file", "caption"])
    pairs = sorted(rows.itertuples(index=False, name=None))
    assert pairs == [
        ("a.jpg", "A dog."),
        ("a.jpg", "Dogs."),
        ("b.jpg", "A cat."),
        ("c.jpg", "A bird."),
    ]
