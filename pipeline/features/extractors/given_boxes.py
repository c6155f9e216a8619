"""Boxes of photographs from a file, for engines that pool given boxes.

    .npz            an array [n, 4] for each image, by the name of its file
    a folder        an .npz for each image: boxes, bbox or xyxy [n, 4]; if it has them scores and classes
    .json           COCO's results, or a COCO data set whose annotations are boxes; supervision's JSONSink
    .csv            supervision's CSVSink, with the image's file name in a column of its own

COCO's boxes are x y width height, all others x1 y1 x2 y2; all in pixels of the upright photograph.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from pipeline.files import regular
from pipeline.files.images import ImageError
from pipeline.files.npz import Arrays
from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError, refusing

# An image's name, its boxes and their scores and classes, in folders of .npz and in rows of a table.
MEMBERS = {"boxes": ("boxes", "bbox", "xyxy"), "scores": ("scores", "score", "confidence", "objects_conf"),
           "labels": ("labels", "class_id", "category_id", "objects_id")}
NAMES = ("file_name", "filename", "file", "image", "image_name", "image_path", "image_id")
CORNERS = ("x_min", "y_min", "x_max", "y_max")
BEYOND = 1.0  # pixels by which a box may reach beyond its photograph, by rounding


@dataclass(frozen=True)
class Boxes:
    """The boxes of one photograph."""

    boxes: np.ndarray  # float32 [n, 4], x1 y1 x2 y2 in pixels
    scores: np.ndarray | None = None  # float32 [n]
    labels: np.ndarray | None = None  # int64 [n]


class GivenBoxes:
    """The boxes of a file or folder by images' names, or by the numbers at the end of these."""

    def __init__(self, path: Path, images: Path | None = None) -> None:
        """Read them. images: a COCO data set's JSON, which says the file names of the ids of COCO's results."""
        self.path = path
        with refusing(Exception, lambda error: f"boxes {path}: not readable as .npz of numbers, COCO's JSON or "
                      f"supervision's tables ({type(error).__name__}: {error})"):  # broken files raise what they like
            self.boxes = self._read(images)
        if not self.boxes:
            raise InputError(f"boxes {path}: holds no array")
        for name, each in self.boxes.items():
            boxes = each.boxes
            if boxes.ndim != 2 or boxes.shape[1] != 4 or not len(boxes):
                raise InputError(f"boxes {path}: {name}: expected shape (n, 4), n at least 1, got {boxes.shape}")
            if not np.isfinite(boxes).all() or (boxes[:, 2:] < boxes[:, :2]).any():
                raise InputError(f"boxes {path}: {name}: expected finite x1 y1 x2 y2 with x1 <= x2 and y1 <= y2")
            if any(values is not None and values.shape != (len(boxes),) for values in (each.scores, each.labels)):
                raise InputError(f"boxes {path}: {name}: expected a score and a class for each of {len(boxes)} boxes")
        self.most = max(len(each.boxes) for each in self.boxes.values())

    def of(self, image: Image.Image) -> Boxes:
        """Find an upright photograph's boxes by its `info["file"]`; ImageError for none, or one beyond its edges."""
        parts = PurePosixPath(str(image.info.get("file"))).parts
        names: list[str | int] = ["/".join(parts[start:]) for start in range(len(parts))]
        names += [str(PurePosixPath(str(name)).with_suffix("")) for name in names if name]
        number = re.search(r"(\d+)$", PurePosixPath(parts[-1]).stem)
        names += [int(number[1])] if number else []
        found = next((self.boxes[name] for name in names if name in self.boxes), None)
        if found is None:
            raise ImageError(f"no boxes are given for {parts[-1]}")
        if (found.boxes < -BEYOND).any() or (found.boxes[:, 2:] > np.array(image.size) + BEYOND).any():
            raise ImageError(f"a box is outside the image, which has {image.width} x {image.height} pixels; boxes "
                             "must be of the upright photograph in its own size")
        return found

    def _read(self, images: Path | None) -> Mapping[str | int, Boxes]:
        if self.path.is_dir():
            return {path.relative_to(self.path).with_suffix("").as_posix(): _of_members(_arrays(path))
                    for path in sorted(self.path.rglob("*.npz"))}
        if self.path.suffix == ".npz":
            return {name: Boxes(np.asarray(values, np.float32)) for name, values in _arrays(self.path).items()}
        content = _content(self.path)
        if self.path.suffix == ".csv":
            return _of_rows(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
        tree = from_json(content)
        if isinstance(tree, dict):
            return _of_coco(tree["annotations"], tree)
        if tree and "bbox" in tree[0]:
            return _of_coco(tree, from_json(_content(images)) if images else {})
        return _of_rows(tree)


def _content(path: Path) -> bytes:
    with regular.opened(path) as file:
        return file.read()


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with regular.opened(path) as file:
        arrays = Arrays(file)
        return {name: arrays.array(name) for name in arrays.members}


def _of_members(arrays: Mapping[str, np.ndarray]) -> Boxes:
    values = {role: next((arrays[name] for name in names if name in arrays), None) for role, names in MEMBERS.items()}
    return _boxes(values["boxes"], values["scores"], values["labels"])


def _boxes(boxes: Any, scores: Any, labels: Any) -> Boxes:
    return Boxes(np.asarray(boxes, np.float32), None if scores is None else np.asarray(scores, np.float32),
                 None if labels is None else np.asarray(labels, np.int64))


def _gathered(rows: Iterable[tuple[str | int, Any, Any, Any]]) -> dict[str | int, Boxes]:
    """Boxes by image, of rows of name, box, score and class; None for a score or class that no box has."""
    by_name: dict[str | int, list[tuple[Any, Any, Any]]] = {}
    for name, *values in rows:
        by_name.setdefault(name, []).append((values[0], values[1], values[2]))
    return {name: _boxes(*([*column] if None not in column else None for column in zip(*values, strict=True)))
            for name, values in by_name.items()}


def _of_coco(entries: list[dict[str, Any]], dataset: Mapping[str, Any]) -> dict[str | int, Boxes]:
    files = {image["id"]: image["file_name"] for image in dataset.get("images", [])}
    listed = {each["id"] for each in dataset.get("categories", [])}
    if strange := next((each["category_id"] for each in entries if listed and each["category_id"] not in listed), None):
        raise ValueError(f"the class {strange} is not in its list of categories")
    return _gathered((files.get(each["image_id"], each["image_id"]), [x, y, x + width, y + height],
                      each.get("score"), each.get("category_id"))
                     for each in entries for x, y, width, height in [each["bbox"]])


def _of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str | int, Boxes]:
    """A row for each box, as supervision's sinks write them; the image's name is a column that the user adds."""
    def cells() -> Iterable[tuple[str | int, Any, Any, Any]]:
        for row in rows:
            name = next((row[column] for column in NAMES if row.get(column)), None)
            if name is None:
                raise ValueError(f"no column names the image; expected {', '.join(NAMES)}, as by "
                                 'sink.append(detections, {"file_name": ...})')
            score, label = (next((row[column] for column in MEMBERS[role] if row.get(column) not in (None, "")), None)
                            for role in ("scores", "labels"))
            yield name, [float(row[corner]) for corner in CORNERS], score, label

    return _gathered(cells())
