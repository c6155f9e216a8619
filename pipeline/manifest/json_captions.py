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

from pipeline.files import remote
from pipeline.files.left_out import LeftOut
from pipeline.files.parsing import text, whole
from pipeline.manifest.reader import Reader, Source, expecting, members_of, table_of_rows
from pipeline.manifest.split import SPLITS
from pipeline.manifest.text_file import TextFile
from pipeline.parts.errors import InputError, refusing

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
KARPATHY_KEYS = re.compile(r'"(sentences|sentids|imgid|cocoid)"\s*:')
# What is read of COCO's files; instances have no captions.
COCO_COLUMNS = "image in file_name, caption in caption, or else the name of category_id"
# Keys of Karpathy's images that not every file has.
KARPATHY_COLUMNS = re.compile(r'"(filepath|split)"\s*:')


def _beginning(path: Path) -> str:
    """The beginning of a JSON file that holds an object; "" for anything else."""
    if path.suffix.lower() != ".json" or remote.address(path) or not path.is_file():
        return ""
    beginning = TextFile(path).beginning().lstrip()
    return beginning if beginning.startswith("{") else ""


def _is_coco(path: Path) -> bool:
    """Tell COCO's layout from Karpathy's, which has sentences in its images."""
    if path.is_dir():
        return bool(_captions_in(path))
    beginning = _beginning(path)
    return (
        COCO_KEYS.search(beginning) is not None
        and not _is_karpathy(path)
        and re.match(r'\{\s*"annotations"\s*:\s*\[\s*\{(?![^}]*"image_id")', beginning) is None
        and NAMES_IMAGES.match(beginning) is None
    )


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
    years = sorted(
        {match[4] for match in map(NAME.fullmatch, (file.stem for file, _ in files_read)) if match}
    )
    if len(years) > 1:
        raise InputError(
            f"{path}: holds captions of {' and '.join(years)}, which are the same images; name one file, "
            f"such as --annotations {files_read[0][0]}"
        )
    source.say(
        f"{path}: read as COCO's folder of annotations: {', '.join(file.name for file, _ in files_read)}; "
        f"{COCO_COLUMNS}; split by the names of the files"
    )
    return pd.concat(
        [_file(source, TextFile(file), f"{place}/") for file, place in files_read],
        ignore_index=True,
    )


def _captions_in(folder: Path) -> list[tuple[Path, str]]:
    """Files of captions, and the folder of their images, such as train2014."""
    named = [(file, NAME.fullmatch(file.stem)) for file in sorted(folder.glob("captions_*.json"))]
    return [(file, match[2]) for file, match in named if match]


def _file(source: Source, annotations: TextFile, place: str) -> pd.DataFrame:
    path = annotations.path
    files: dict[int, str] = {}
    objects: list[tuple[int, Any]] = []
    with expecting(
        path, "in COCO's layout: lists images (id, file_name) and annotations (image_id, caption)"
    ):
        table = table_of_rows(_captions(annotations, files, objects, source.left_out), CAPTION)
        if table.empty and objects:
            table = table_of_rows(_of_objects(annotations, files, objects), CAPTION)
        else:
            for image, _ in objects:
                source.left_out.add("no caption", f"{path}, image_id {image}")
    file_of_row = pd.Index([*files]).get_indexer(pd.Index(table["image_id"]))
    if (file_of_row < 0).any():
        for image in table.loc[file_of_row < 0, "image_id"]:
            source.left_out.add("image not listed", f"{path}, image_id {image}")
        table, file_of_row = table[file_of_row >= 0], file_of_row[file_of_row >= 0]
    table = _numbered(table)
    order = np.argsort(file_of_row, kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    table["file"] = (place + pd.Series([*files.values()], dtype="str")).array.take(
        file_of_row[order]
    )
    if match := NAME.match(path.stem):
        table["split"] = match[3].lower()
    return table


def _captions(
    annotations: TextFile, files: dict[int, str], objects: list[tuple[int, Any]], left_out: LeftOut
) -> Iterator[tuple[int, int, str]]:
    """Read captions, then images without any; gather the files of images, and the categories of
    objects.
    """
    captioned = set[int]()
    for member, each in members_of(annotations, "images", "annotations"):
        if member == "images":
            files[whole(each["id"])] = text(each["file_name"])
        elif isinstance(caption := each.get("caption"), str):
            captioned.add(image := whole(each["image_id"]))
            yield image, whole(each.get("id", NO_ID)), caption.strip()
        elif "caption" in each:
            left_out.add("no caption", f"{annotations.path}, image_id {each['image_id']}")
        else:
            objects.append((whole(each["image_id"]), each.get("category_id")))
    if captioned:
        yield from ((image, NO_ID, "") for image in files if image not in captioned)


def _of_objects(
    annotations: TextFile, images: Iterable[int], objects: Iterable[tuple[int, Any]]
) -> Iterator[tuple[int, int, str]]:
    """A row for each image, with the names of its objects, each once, in the order of the
    annotations.
    """
    names = {
        whole(each["id"]): text(each["name"]) for _, each in members_of(annotations, "categories")
    }
    names_of: dict[int, dict[str, None]] = {image: {} for image in images}
    for image, category in objects:
        names_of[image][names[whole(category)]] = None
    return (
        (image, image, ", ".join(object_names) or NO_OBJECT)
        for image, object_names in names_of.items()
    )


def _numbered(table: pd.DataFrame) -> pd.DataFrame:
    """Number all captions if one of them has no id."""
    missing = (table["caption_id"] == NO_ID) & (table["caption"] != "")
    return table.assign(caption_id=range(len(table))) if missing.any() else table


def karpathy(source: Source) -> pd.DataFrame:
    """Read a file in Karpathy's layout."""
    path, file = source.path, TextFile(source.path)
    keys = {*KARPATHY_COLUMNS.findall(file.beginning())}
    image = "filepath and filename" if "filepath" in keys else "filename"
    split = ", split in split" if "split" in keys else ""
    source.say(
        f"{path}: read as Karpathy's JSON, {file.called}; image in {image}, caption in raw{split}"
    )
    place = str(path)
    rows = (
        row
        for number, (_, image) in enumerate(members_of(file, "images"))
        for row in _sentences(image, number, place, source.left_out)
    )
    with refusing(LookupError, f"{path}: not in Karpathy's layout: expected a list 'images'"):
        table = table_of_rows(rows, ["image_id", "file", "split", "caption_id", "caption"])
    table = _numbered(table)
    return table if len(table) and table["split"].notna().all() else table.drop(columns="split")


def _sentences(
    image: Any, number: int, place: str, left_out: LeftOut
) -> list[tuple[int, str, str | None, int, Any]]:
    where = f"{place}, image {number}"
    with expecting(where, "in Karpathy's layout (filename, split and sentences with raw)"):
        file = "/".join(filter(None, [text(image.get("filepath", "")), text(image["filename"])]))
        image_id = whole(image.get("cocoid", image.get("imgid", number)))
        split = text(image["split"]) if "split" in image else None
        captions = [
            (image_id, file, split, whole(sentence.get("sentid", NO_ID)), sentence["raw"])
            for sentence in image["sentences"]
        ]
    usable = [row for row in captions if isinstance(row[4], str) and row[4]]
    for _ in range(len(captions) - len(usable)):
        left_out.add("no caption", f"{where}, {file}")
    return usable if captions else [(image_id, file, split, NO_ID, "")]


COCO = Reader("COCO's captions_*.json or instances_*.json", _is_coco, coco)
KARPATHY = Reader("a .json file in Karpathy's layout", _is_karpathy, karpathy)
