"""Photographs packed as img2dataset packs them, with the manifest of what is packed."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from pipeline.foundation.manifest import Manifest, build

EACH = 10  # images in a file


def tars(table: Manifest, folder: Path) -> Manifest:
    """Tars with NUMBER.jpg, .txt and .json; an image's captions are lines, its number its image
    id.
    """
    folder.mkdir(parents=True)
    member_of: dict[int, str] = {}
    for part, first in enumerate(range(0, len(table.images), EACH)):
        with tarfile.open(folder / f"{part:05}.tar", "w") as members:
            for image in table.images.iloc[first : first + EACH].itertuples():
                member_of[image.image_id] = f"{part:05}.tar/{image.image_id:09}.jpg"
                for suffix, content in (
                    ("jpg", (table.images_folder / image.file).read_bytes()),
                    ("txt", "\n".join(captions(table, image.image_id)).encode()),
                    ("json", json.dumps({"split": image.split}).encode()),
                ):
                    info = tarfile.TarInfo(f"{image.image_id:09}.{suffix}")
                    info.size = len(content)
                    members.addfile(info, io.BytesIO(content))
    rows = table.table.assign(file=table.table["image_id"].map(member_of))
    return replace(table, source=rows, images_folder=folder)


def parquets(table: Manifest, folder: Path) -> Manifest:
    """Parquet with columns key, captions, split and jpg; a row whose image could not be fetched
    comes first.
    """
    folder.mkdir(parents=True)
    for part, first in enumerate(range(0, len(table.images), EACH)):
        images = list(table.images.iloc[first : first + EACH].itertuples())
        parquet.write_table(
            pa.table(
                {
                    "key": ["x", *(f"{image.image_id:09}" for image in images)],
                    "split": ["train", *(image.split for image in images)],
                    "captions": [["lost"], *(captions(table, image.image_id) for image in images)],
                    "jpg": [
                        None,
                        *((table.images_folder / image.file).read_bytes() for image in images),
                    ],
                }
            ),
            folder / f"{part:05}.parquet",
            row_group_size=4,
        )
    return build("packed", folder, folder)


def captions(table: Manifest, image: int) -> list[str]:
    found: list[str] = table.table.loc[table.table["image_id"] == image, "caption"].tolist()
    return found
