"""Boxes of photographs from a file, for engines that pool given boxes.

    .npz            an array [n, 4] for each image, by the name of its file
    a folder        an .npz for each image: boxes, bbox or xyxy [n, 4]; if it has them scores and
                    classes
    .json           COCO's results, or a COCO data set whose annotations are boxes; supervision's
                    JSONSink
                    what transformers' pipeline returned for each image, by the name of its file;
                    detectron2's results
    .csv            supervision's CSVSink, with the image's file name in a column of its own
    .pt, .pth       for each image by the name of its file a tensor [n, 4], or boxes, scores and
                    labels as of `post_process_object_detection`; detectron2's
                    instances_predictions.pth

COCO's and detectron2's boxes are x y width height, all others x1 y1 x2 y2; all in pixels of the
upright photograph.
A photograph without boxes has an empty array, a row with empty corners, or is among COCO's images.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from PIL import Image

from pipeline.foundation.files import regular, torch_save
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.files.npz import Arrays
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError, first_line, refusing

# An image's name, its boxes and their scores and classes, in folders of .npz and in rows of a
# table.
MEMBERS = {
    "boxes": ("boxes", "bbox", "xyxy"),
    "scores": ("scores", "score", "confidence", "objects_conf"),
    "labels": ("labels", "class_id", "category_id", "objects_id"),
}
NAMES = (
    *("file_name", "filename", "file", "image", "image_name", "image_path", "image_id"),
    "ImageID",  # of Open Images
)
CORNERS = ("x_min", "y_min", "x_max", "y_max")
# The same as transformers' pipeline calls them, and as Open Images does for boxes from 0 to 1.
PIPELINE = ("xmin", "ymin", "xmax", "ymax")
OPEN_IMAGES = ("XMin", "XMax", "YMin", "YMax")
BEYOND = 1.0  # pixels by which a box may reach beyond its photograph, by rounding
# The largest corner of boxes that are shares of a photograph's size: rounding goes beyond 1.
LARGEST_SHARE = 1.5
SHARES = (
    "boxes from 0 to 1: multiply by the size, x by the photograph's width and y by its height, and "
    "save them in pixels"
)
# The largest corner of boxes in thousandths of a photograph's size, as Qwen-VL gives them.
THOUSAND = 1000.0
EXPECTED = ".npz of numbers, COCO's JSON or supervision's tables"


@dataclass(frozen=True)
class Boxes:
    """The boxes of one photograph."""

    boxes: np.ndarray  # float32 [n, 4], x1 y1 x2 y2 in pixels
    scores: np.ndarray | None = None  # float32 [n]
    labels: np.ndarray | None = None  # int64 [n]


class GivenBoxes:
    """The boxes of a file or folder by images' names, or by the numbers at the end of these."""

    def __init__(self, path: Path, images: Path | None = None) -> None:
        """Read them. images: a COCO data set's JSON, which says the file names of the ids of COCO's
        results.
        """
        self.path = path
        self._is_coco = False
        files: dict[Any, str] = {}
        with _reading(f"box_images {images}", "a COCO data set's JSON"):
            if images:
                files = _files(from_json(regular.content(images))["images"])
        by_name: dict[str, Boxes] = {}
        with _reading(f"boxes {path}", EXPECTED):
            for name, boxes in self._read(files).items():
                by_name[str(name).replace("\\", "/")] = boxes
        for name, boxes in by_name.items():
            _check(boxes, f"boxes {path}: {name}")
        corners = [boxes.boxes for boxes in by_name.values()]
        self.most = max(map(len, corners), default=0)
        if self.most == 0:
            raise InputError(f"boxes {path}: holds no boxes")
        of_all = np.concatenate(corners)
        if are_shares(of_all):
            raise InputError(f"boxes {path}: {SHARES}")
        self._largest = float(of_all.max())
        self.boxes = _by_end(by_name) | by_name
        self._image_of: dict[int, str] = {}

    def of(self, image: Image.Image) -> Boxes:
        """Find an upright photograph's boxes by its `info["file"]`; ImageError for none, or one
        beyond its edges.
        """
        file = str(image.info.get("file"))
        last = PurePosixPath(file).parts[-1]
        boxes = self._named(file)
        if boxes is None:
            example = next(iter(self.boxes))
            reason = f"no boxes are given for {last}, but for {example}, for example"
            if example.isdecimal():
                reason += "; box_images may name the file of such an id"
            raise ImageError(reason)
        other = self._image_of.setdefault(id(boxes), file)
        if other != file:
            raise ImageError(
                f"the boxes of {last} may also be those of {other}; name them with their folders"
            )
        if are_shares(boxes.boxes):
            raise ImageError(SHARES)
        box = outside(boxes.boxes, image.size)
        if box is not None:
            raise ImageError(f"{box}; {self._causes()}")
        return boxes

    def _named(self, file: str) -> Boxes | None:
        """The boxes by the end of a path, with or without its suffix, or by its last number."""
        names = _ends(file)
        names += [str(PurePosixPath(name).with_suffix("")) for name in names if name]
        # Not a digest's last digits.
        number = re.search(r"(?:^|[^0-9A-Za-z])(\d+)$", PurePosixPath(file).stem)
        if number:
            names.append(str(int(number[1])))
        for name in names:
            if name in self.boxes:
                return self.boxes[name]
        return None

    def _causes(self) -> str:
        """What may have put a box outside its photograph."""
        causes = ["boxes must be of the upright photograph in its own size"]
        if self._largest <= THOUSAND + BEYOND:
            causes.append("those from 0 to 1000 are multiplied by the size / 1000")
        if self._is_coco:
            causes.append("COCO's bbox is x y width height, not the corners x1 y1 x2 y2")
        return "; ".join(causes)

    def _read(self, files: dict[Any, str]) -> Mapping[Any, Boxes]:
        if self.path.is_dir():
            return _of_folder(self.path)
        if self.path.suffix == ".npz":
            arrays = _arrays(self.path)
            return {name: _boxes(corners, None, None) for name, corners in arrays.items()}
        if self.path.suffix in (".pt", ".pth"):
            return self._of_tree(torch_save.load(self.path), files)
        content = regular.content(self.path)
        if self.path.suffix == ".csv":
            text = content.decode("utf-8-sig")
            return _of_rows(csv.DictReader(io.StringIO(text)))
        return self._of_tree(from_json(content), files)

    def _of_tree(self, tree: Any, files: dict[Any, str]) -> Mapping[Any, Boxes]:
        """The boxes of a parsed file, by what it holds."""
        if isinstance(tree, dict) and "annotations" in tree:
            self._is_coco = True
            files = files | _files(tree.get("images", []))
            return _of_coco(tree["annotations"], files, tree.get("categories", []))
        if isinstance(tree, dict):
            return _of_names(tree)
        first = tree[0] if tree else {}
        if "instances" in first:
            tree = list(chain.from_iterable(image["instances"] for image in tree))
            first = tree[0] if tree else {}
        if "bbox" in first:
            self._is_coco = True
            return _of_coco(tree, files, [])
        if isinstance(first, list) or "box" in first or "boxes" in first:
            raise InputError(
                "holds what was detected, and not of which photographs; save {FILE NAME: WHAT WAS "
                "DETECTED IN IT}"
            )
        return _of_rows(tree)


def _check(boxes: Boxes, where: str) -> None:
    """Refuse boxes that are none, and scores or classes that do not fit them."""
    corners = boxes.boxes
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise InputError(f"{where}: expected shape (n, 4), got {corners.shape}")
    if not np.isfinite(corners).all() or (corners[:, 2:] < corners[:, :2]).any():
        raise InputError(f"{where}: expected finite x1 y1 x2 y2 with x1 <= x2 and y1 <= y2")
    for values in (boxes.scores, boxes.labels):
        if values is None:
            continue
        if values.shape != (len(corners),) or not np.isfinite(values).all():
            raise InputError(
                f"{where}: expected a score and a class for each of {len(corners)} boxes"
            )


def are_shares(boxes: np.ndarray) -> bool:
    """Whether boxes are shares of a photograph's size, from 0 to 1, and no pixels."""
    return bool(boxes.size) and 0 < boxes.max() <= LARGEST_SHARE


def outside(boxes: np.ndarray, size: tuple[int, int]) -> str | None:
    """Name the first of some boxes that reaches beyond an image of a size (width, height); None if
    none does.
    """
    before = (boxes < -BEYOND).any(axis=1)
    after = (boxes[:, 2:] > np.array(size) + BEYOND).any(axis=1)
    beyond = before | after
    if not beyond.any():
        return None
    first = boxes[int(beyond.argmax())]
    box = " ".join(f"{corner:g}" for corner in first.tolist())
    return f"the box {box} is outside the image, which has {size[0]} x {size[1]} pixels"


def _ends(name: str) -> list[str]:
    """A path, and what is left of it without its first folders: "a/b.jpg" and "b.jpg"."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _by_end(by_name: Mapping[str, Boxes]) -> dict[str, Boxes]:
    """Boxes by the ends of paths that are one path's alone; of paths in several folders the end
    names a folder.
    """
    by_end: dict[str, list[Boxes]] = {}
    for name, boxes in by_name.items():
        for end in _ends(name):
            by_end.setdefault(end, []).append(boxes)
    folders = {PurePosixPath(name).parent for name in by_name}
    of_one_path = {}
    for end, named in by_end.items():
        if len(named) == 1 and ("/" in end or len(folders) == 1):
            of_one_path[end] = named[0]
    return of_one_path


@contextmanager
def _reading(what: str, expected: str) -> Iterator[None]:
    with (
        refusing(InputError, lambda error: f"{what}: {error}"),
        refusing(Exception, lambda error: f"not readable as {expected} ({first_line(error)})"),
    ):
        yield  # broken files raise what they like


def _files(images: Iterable[Mapping[str, Any]]) -> dict[Any, str]:
    return {image["id"]: image["file_name"] for image in images}


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with regular.opened(path) as file:
        arrays = Arrays(file)
        return {name: arrays.array(name) for name in arrays.members}


def _of_folder(folder: Path) -> dict[Any, Boxes]:
    """The boxes of an .npz for each image; YOLO's files of text are named."""
    by_name = {}
    for path in sorted(folder.rglob("*.npz")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        by_name[name] = _of_members(_arrays(path))
    if not by_name and any(folder.rglob("*.txt")):
        raise InputError(
            "holds .txt, as YOLO's labels are, whose boxes are centres and sizes from 0 to 1; save "
            "x1 y1 x2 y2 in pixels as .npz or CSV"
        )
    return by_name


def _of_names(tree: Mapping[Any, Any]) -> dict[Any, Boxes]:
    """The boxes of each image by its name: an array, arrays by the names of `MEMBERS`, or what
    transformers' pipeline returned.
    """
    numbers = _numbers_of_classes(tree)
    by_name = {}
    for name, detected in tree.items():
        if isinstance(detected, list):
            by_name[name] = _of_pipeline(detected, numbers)
        elif isinstance(detected, Mapping):
            by_name[name] = _of_members(detected)
        elif np.ndim(detected) == 2:
            by_name[name] = _boxes(detected, None, None)
        else:
            raise InputError(
                f"{name}: holds no boxes; expected {{FILE NAME: WHAT WAS DETECTED IN IT}}, or "
                f"{EXPECTED}"
            )
    return by_name


def _numbers_of_classes(tree: Mapping[Any, Any]) -> dict[str, int]:
    """The classes that are texts in what transformers' pipeline returned, numbered in alphabetical
    order.
    """
    texts: set[str] = set()
    for detected in tree.values():
        if isinstance(detected, list):
            labels = [entry.get("label") for entry in detected]
            texts.update(label for label in labels if isinstance(label, str))
    return {text: number for number, text in enumerate(sorted(texts))}


def _of_pipeline(held: list[Mapping[str, Any]], numbers: Mapping[str, int]) -> Boxes:
    """What transformers' pipeline returned for an image. A class that is a text has its number in
    alphabetical order.
    """
    corners = []
    scores = []
    labels: list[Any] = []
    for entry in held:
        corners.append([entry["box"][corner] for corner in PIPELINE])
        scores.append(entry.get("score"))
        label: Any = entry.get("label")
        labels.append(numbers.get(label, label))
    return _boxes(corners, _complete(scores), _complete(labels))


def _complete(values: Iterable[Any]) -> list[Any] | None:
    """The scores or classes of boxes; None where a box lacks its own."""
    listed = list(values)
    return None if None in listed else listed


def _of_members(arrays: Mapping[str, Any]) -> Boxes:
    values: dict[str, Any] = {}
    for role, names in MEMBERS.items():
        values[role] = next((arrays[name] for name in names if name in arrays), None)
    return _boxes(values["boxes"], values["scores"], values["labels"])


def _boxes(boxes: Any, scores: Any, labels: Any) -> Boxes:
    """Copy them: an array of an .npz cannot be written to, and torch warns of that."""
    corners = np.array(boxes, np.float32)
    if not corners.size:
        corners = corners.reshape(0, 4)
    of_boxes = None if scores is None else np.array(scores, np.float32)
    if labels is None:
        return Boxes(corners, of_boxes)
    classes = np.array(labels, np.float64)  # pandas writes 3.0
    if not (np.isfinite(classes) & (classes == np.floor(classes))).all():
        raise InputError(f"expected whole numbers as classes, got {classes.tolist()}"[:200])
    return Boxes(corners, of_boxes, classes.astype(np.int64))


def _gathered(by_name: Mapping[Any, list[tuple[Any, Any, Any]]]) -> dict[Any, Boxes]:
    """Boxes of images from each one's list of box, score and class; None for a score or class that
    a box lacks.
    """
    gathered = {}
    for name, boxes in by_name.items():
        corners = [box for box, _, _ in boxes]
        scores = _complete(score for _, score, _ in boxes)
        labels = _complete(label for _, _, label in boxes)
        gathered[name] = _boxes(corners, scores, labels) if boxes else _boxes([], None, None)
    return gathered


def _of_coco(
    entries: list[dict[str, Any]], files: Mapping[Any, str], categories: Iterable[Mapping[str, Any]]
) -> dict[Any, Boxes]:
    listed = {category["id"] for category in categories}
    by_name: dict[Any, list[tuple[Any, Any, Any]]] = {name: [] for name in files.values()}
    for entry in entries:
        label = entry.get("category_id")
        x, y, width, height = entry["bbox"]
        if listed and label not in listed:
            raise InputError(f"the class {label} is not in its list of categories")
        name = files.get(entry["image_id"], entry["image_id"])
        box = [x, y, x + width, y + height]
        by_name.setdefault(name, []).append((box, entry.get("score"), label))
    return _gathered(by_name)


def _of_rows(rows: Iterable[Mapping[str, Any]]) -> dict[Any, Boxes]:
    """A row for each box, as supervision's sinks write them; the image's name is a column that the
    user adds.
    """
    by_name: dict[Any, list[tuple[Any, Any, Any]]] = {}
    for row in rows:
        name = next((row[column] for column in NAMES if row.get(column)), None)
        if name is None:
            raise InputError(
                f"no column names the image; expected {', '.join(NAMES)}, as by "
                'sink.append(detections, {"file_name": ...})'
            )
        if all(corner in row for corner in OPEN_IMAGES):
            raise InputError(
                f"is Open Images' table: {SHARES}, as the columns {', '.join(CORNERS)}"
            )
        for corner in CORNERS:
            if corner not in row:
                raise InputError(
                    f"{name} has no {corner}; expected the columns {', '.join(CORNERS)}"
                )
        of_image = by_name.setdefault(name, [])
        corners = [row[corner] for corner in CORNERS]
        if any(corner not in (None, "") for corner in corners):
            box = [float(corner) for corner in corners]
            of_image.append((box, _value(row, "scores"), _value(row, "labels")))
    return _gathered(by_name)


def _value(row: Mapping[str, Any], role: str) -> Any:
    """The first value that is not empty of the columns for scores or classes; None for none."""
    for column in MEMBERS[role]:
        if row.get(column) not in (None, ""):
            return row[column]
    return None
