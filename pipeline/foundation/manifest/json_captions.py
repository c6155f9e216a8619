"""Photographs with captions in JSON: COCO's own annotations, and Karpathy's files of COCO,
Flickr30K and Flickr8k.

COCO's are captions_val2014.json, instances_train2017.json, or the folder `annotations` with
several. The split is that of the file's name. Instances have no captions: an image's caption is
then the names of its objects, so that its features can be extracted. Karpathy's are
dataset_coco.json, dataset_flickr30k.json, dataset_flickr8k.json and files like them.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.foundation.files import remote
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.files.parsing import text, whole
from pipeline.foundation.manifest.reader import Reader, Source, expecting, members_of, table_of_rows
from pipeline.foundation.manifest.split import SPLITS
from pipeline.foundation.manifest.text_file import TextFile
from pipeline.foundation.parts.errors import InputError, refusing

NAME = re.compile(rf"(captions|instances)_(({'|'.join(SPLITS)})(\d*))", re.IGNORECASE)
NO_OBJECT = "no object"
CAPTION = ["image_id", "caption_id", "caption"]
NO_ID = -1
COCO_KEYS = re.compile(r'"(file_name|image_id|annotations)"\s*:')
# Annotations that name their images' files; they are rows of a table, whatever ids they have beside
# them.
NAMES_IMAGES = re.compile(
    r'\{\s*"annotations"\s*:\s*\[\s*\{[^}]*"(image|file_name|filename)"\s*:\s*"'
)
WITHOUT_IMAGE_ID = re.compile(r'\{\s*"annotations"\s*:\s*\[\s*\{(?![^}]*"image_id")')
KARPATHY_KEYS = re.compile(r'"(sentences|sentids|imgid|cocoid)"\s*:')
# What is read of COCO's files; instances have no captions.
COCO_COLUMNS = "image in file_name, caption in caption, or else the name of category_id"
# Keys of Karpathy's images that not every file has.
KARPATHY_COLUMNS = re.compile(r'"(filepath|split)"\s*:')


def _beginning(path: Path) -> str:
    """The beginning of a JSON file that holds an object; "" for anything else."""
    if path.suffix.lower() != ".json" or remote.address(path) or not path.is_file():
        return ""
    json_beginning = TextFile(path).beginning().lstrip()
    if not json_beginning.startswith("{"):
        return ""
    return json_beginning


def _is_coco(path: Path) -> bool:
    """Tell COCO's layout from Karpathy's, which has sentences in its images."""
    if path.is_dir():
        return bool(_captions_in(path))
    beginning = _beginning(path)
    if COCO_KEYS.search(beginning) is None or _is_karpathy(path):
        return False
    is_of_rows = WITHOUT_IMAGE_ID.match(beginning) or NAMES_IMAGES.match(beginning)
    return not is_of_rows


def _is_karpathy(path: Path) -> bool:
    beginning = _beginning(path)
    return KARPATHY_KEYS.search(beginning) is not None and '"images"' in beginning


def coco(source: Source) -> pd.DataFrame:
    """Read a file in COCO's layout, or the captions of all splits in a folder. Images are in the
    file's order.
    """
    path = source.path
    if not path.is_dir():
        file = TextFile(path)
        source.say(f"{path}: read as COCO's JSON, {file.called}; {COCO_COLUMNS}")
        return _file(source, file, "")
    files_read = _captions_in(path)
    names_of_files = [NAME.fullmatch(file.stem) for file, _ in files_read]
    years = sorted({match[4] for match in names_of_files if match})
    if len(years) > 1:
        of_years = " and ".join(years)
        first_file, _ = files_read[0]
        raise InputError(
            f"{path}: holds captions of {of_years}, which are the same images; name one file, "
            f"such as --annotations {first_file}"
        )
    annotation_files = ", ".join(file.name for file, _ in files_read)
    source.say(
        f"{path}: read as COCO's folder of annotations: {annotation_files}; {COCO_COLUMNS}; split by the names "
        "of the files"
    )
    captions_of_files = []
    for annotations, place in files_read:
        captions_of_files.append(_file(source, TextFile(annotations), f"{place}/"))
    return pd.concat(captions_of_files, ignore_index=True)


def _captions_in(folder: Path) -> list[tuple[Path, str]]:
    """Files of captions, and the folder of their images, such as train2014."""
    files = sorted(folder.glob("captions_*.json"))
    named = [(file, NAME.fullmatch(file.stem)) for file in files]
    return [(file, match[2]) for file, match in named if match]


def _file(source: Source, annotations: TextFile, place: str) -> pd.DataFrame:
    path = annotations.path
    files: dict[int, str] = {}
    objects: list[tuple[int, Any]] = []
    ids = _Ids()
    with expecting(
        path, "in COCO's layout: lists images (id, file_name) and annotations (image_id, caption)"
    ):
        rows = _captions(annotations, files, objects, ids, source.left_out)
        table = table_of_rows(rows, CAPTION)
        if not files:  # annotations alone, whose images' ids are their files
            files |= ids.texts()
        if table.empty and objects:
            table = table_of_rows(_of_objects(annotations, files, objects), CAPTION)
        else:
            for image, _ in objects:
                source.left_out.add("no caption", f"{path}, image_id {image}")
    listed_ids = pd.Index([*files])
    file_of_row = listed_ids.get_indexer(pd.Index(table["image_id"]))
    is_listed = file_of_row >= 0
    if not is_listed.all():
        for image in table.loc[~is_listed, "image_id"]:
            source.left_out.add("image not listed", f"{path}, image_id {image}")
        table = table[is_listed]
        file_of_row = file_of_row[is_listed]
    table = _numbered(table)
    caption_order = np.argsort(file_of_row, kind="stable")
    table = table.iloc[caption_order].reset_index(drop=True)
    image_paths = place + pd.Series([*files.values()], dtype="str")
    table["file"] = image_paths.array.take(file_of_row[caption_order])
    split_in_name = NAME.match(path.stem)
    if split_in_name is not None:
        table["split"] = split_in_name[3].lower()
    return table


class _Ids:
    """The ids of COCO's images: whole numbers, or texts such as file names, which are numbered in
    their order.
    """

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._has_numbers = False

    def of(self, value: Any) -> int:
        """The number of an id; ValueError for texts among numbers, which may be another's."""
        is_text = isinstance(value, str) and not value.strip().lstrip("-").isdecimal()
        if is_text and not self._has_numbers:
            return self._number_of.setdefault(value, len(self._number_of))
        if self._number_of:
            raise ValueError(f"expected texts as ids, as before, got {value!r:.40}")
        self._has_numbers = True
        return whole(value)

    def texts(self) -> dict[int, str]:
        """The texts by their numbers."""
        return {number: name for name, number in self._number_of.items()}


def _caption_id(value: Any) -> int:
    """The id of a caption; `NO_ID` for a text, so that all captions are numbered."""
    if isinstance(value, str) and not value.strip().isdecimal():
        return NO_ID
    return whole(value)


def _captions(
    annotations: TextFile,
    files: dict[int, str],
    objects: list[tuple[int, Any]],
    ids: _Ids,
    left_out: LeftOut,
) -> Iterator[tuple[int, int, str]]:
    """Read captions, then images without any; gather the files of images, and the categories of
    objects.
    """
    captioned = set[int]()
    for member, row in _members(annotations, ids):
        if member == "images":
            image_id = row["id"]
            if "file_name" not in row and isinstance(image_id, str):
                file = image_id
            else:
                file = text(row["file_name"])
            files[ids.of(image_id)] = file
            continue
        caption = row.get("caption")
        if isinstance(caption, str):
            image = ids.of(row["image_id"])
            captioned.add(image)
            caption_id = _caption_id(row.get("id", NO_ID))
            yield image, caption_id, caption.strip()
        elif "caption" in row:
            left_out.add("no caption", f"{annotations.path}, image_id {row['image_id']}")
        else:
            image = ids.of(row["image_id"])
            objects.append((image, row.get("category_id")))
    if captioned:
        for image in files:
            if image not in captioned:
                yield image, NO_ID, ""


def _members(annotations: TextFile, ids: _Ids) -> Iterator[tuple[str, Any]]:
    """The images and annotations of a file. It may lack the images if the ids are texts, which are
    then their files.
    """
    try:
        yield from members_of(annotations, "images", "annotations")
    except KeyError as error:
        if error.args != ("images",) or not ids.texts():
            raise


def _of_objects(
    annotations: TextFile, images: Iterable[int], objects: Iterable[tuple[int, Any]]
) -> Iterator[tuple[int, int, str]]:
    """A row for each image, with the names of its objects, each once, in the order of the
    annotations.
    """
    names = {}
    for _, category in members_of(annotations, "categories"):
        category_id = whole(category["id"])
        names[category_id] = text(category["name"])
    names_of: dict[int, dict[str, None]] = {image: {} for image in images}
    for image, category_id in objects:
        name = names[whole(category_id)]
        names_of[image][name] = None
    for image, object_names in names_of.items():
        caption = ", ".join(object_names)
        yield image, image, caption or NO_OBJECT


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Number all captions if one of them has no id."""
    lacks_id = table["caption_id"] == NO_ID
    is_caption = table["caption"] != ""
    lacking = lacks_id & is_caption
    if not lacking.any():
        return table
    return table.assign(caption_id=range(len(table)))


def karpathy(source: Source) -> pd.DataFrame:
    """Read a file in Karpathy's layout."""
    path = source.path
    file = TextFile(path)
    beginning = file.beginning()
    keys = {*KARPATHY_COLUMNS.findall(beginning)}
    image = "filepath and filename" if "filepath" in keys else "filename"
    split = ", split in split" if "split" in keys else ""
    source.say(
        f"{path}: read as Karpathy's JSON, {file.called}; image in {image}, caption in raw{split}"
    )
    rows = _karpathy_rows(file, source.left_out)
    with refusing(LookupError, f"{path}: not in Karpathy's layout: expected a list 'images'"):
        table = table_of_rows(rows, ["image_id", "file", "split", "caption_id", "caption"])
    table = _numbered(table)
    if len(table) and table["split"].notna().all():
        return table
    return table.drop(columns="split")


def _karpathy_rows(
    file: TextFile, left_out: LeftOut
) -> Iterator[tuple[int, str, str | None, int, Any]]:
    place = str(file.path)
    for number, (_, image) in enumerate(members_of(file, "images")):
        yield from _sentences(image, number, place, left_out)


def _sentences(
    image: Any, number: int, place: str, left_out: LeftOut
) -> list[tuple[int, str, str | None, int, Any]]:
    image_place = f"{place}, image {number}"
    with expecting(image_place, "in Karpathy's layout (filename, split and sentences with raw)"):
        folder = text(image.get("filepath", ""))
        name = text(image["filename"])
        file = "/".join(filter(None, [folder, name]))
        imgid = image.get("imgid", number)
        image_id = whole(image.get("cocoid", imgid))
        split: str | None = None
        if "split" in image:
            split = text(image["split"])
        captions = []
        for sentence in image["sentences"]:
            caption_id = whole(sentence.get("sentid", NO_ID))
            captions.append((image_id, file, split, caption_id, sentence["raw"]))
    usable_captions = [row for row in captions if isinstance(row[4], str) and row[4]]
    for _ in range(len(captions) - len(usable_captions)):
        left_out.add("no caption", f"{image_place}, {file}")
    if not captions:
        return [(image_id, file, split, NO_ID, "")]
    return usable_captions


COCO = Reader("COCO's captions_*.json or instances_*.json", _is_coco, coco)
KARPATHY = Reader("a .json file in Karpathy's layout", _is_karpathy, karpathy)
