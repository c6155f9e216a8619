"""Small sources in every foreign format, written without the project's code, and a manifest without
image files.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from pipeline.foundation.manifest import Manifest

if TYPE_CHECKING:
    from pipeline.extensions.importers import ImportJob

SPLITS = ("train", "train", "val", "test")  # of every four images


def manifest(images: int, captions: int = 5, dataset: str = "coco") -> Manifest:
    """COCO-like: file names with numbers, image ids that are those numbers and not in order."""
    rng = np.random.default_rng(images)
    numbers = rng.choice(10_000, images, replace=False)
    rows = [
        (
            number,
            f"val2014/COCO_val2014_{number:012d}.jpg",
            1000 + number,
            SPLITS[place % 4],
            10 * place + caption,
            f'The {caption}. picture\'s "caption", of number {number}',
        )
        for place, number in enumerate(numbers.tolist())
        for caption in range(captions)
    ]
    columns = ["image_id", "file", "bytes", "split", "caption_id", "caption"]
    return Manifest(pd.DataFrame(rows, columns=columns), dataset, Path("nowhere"))


@dataclass
class Picture:
    """What one image has in a source."""

    number: int
    file: str
    split: str
    captions: list[str]
    features: np.ndarray
    boxes: np.ndarray
    objects: np.ndarray
    scores: np.ndarray
    size: tuple[int, int]

    @property
    def stem(self) -> str:
        return Path(self.file).stem


def pictures(
    table: Manifest, counts: Iterable[int], dimension: int, seed: int = 0
) -> list[Picture]:
    """Random features, boxes and labels of every image of a manifest."""
    rng = np.random.default_rng(seed)
    captions = table.table.groupby("image_id", sort=False)["caption"].agg(list)
    made = []
    for (number, file, split), n in zip(
        table.images[["image_id", "file", "split"]].itertuples(index=False, name=None),
        counts,
        strict=True,
    ):
        size = int(rng.integers(10, 900)), int(rng.integers(10, 900))
        corners = np.sort(rng.random((n, 2, 2)), axis=1).reshape(n, 4) * (*size, *size)
        made.append(
            Picture(
                int(number),
                file,
                split,
                captions[number],
                rng.normal(size=(n, dimension)).astype(np.float32),
                corners.astype(np.float32),
                rng.integers(0, 1600, n),
                rng.random(n).astype(np.float32),
                size,
            )
        )
    return made


def shuffled(images: list[Picture]) -> list[Picture]:
    return [images[place] for place in np.random.default_rng(1).permutation(len(images))]


def text(array: np.ndarray) -> str:
    return base64.b64encode(array.tobytes()).decode()


def anderson(image: Picture) -> str:
    return "\t".join(
        [
            str(image.number),
            str(image.size[0]),
            str(image.size[1]),
            str(len(image.features)),
            text(image.boxes),
            text(image.features),
        ]
    )


def lxmert(image: Picture) -> str:
    return "\t".join(
        [
            image.stem,
            str(image.size[1]),
            str(image.size[0]),
            text(image.objects.astype(np.int64)),
            text(image.scores),
            text(image.objects.astype(np.int64)[::-1]),
            text(image.scores[::-1]),
            str(len(image.features)),
            text(image.boxes),
            text(image.features),
        ]
    )


def anderson_tsv(folder: Path, images: list[Picture]) -> list[Path]:
    """Two files, as the 10-100 features come in; lines end as Python 2's csv ends them."""
    rows = [anderson(image) for image in shuffled(images)]
    for number, part in enumerate((rows[:3], rows[3:])):
        (folder / f"features.tsv.{number}").write_bytes(
            "".join(f"{row}\r\n" for row in part).encode()
        )
    return sorted(folder.glob("features.tsv.*"))


def lxmert_tsv(folder: Path, images: list[Picture]) -> list[Path]:
    (folder / "obj36.tsv").write_text("\n".join(map(lxmert, shuffled(images))))
    return [folder / "obj36.tsv"]


def scan(folder: Path, images: list[Picture], ids_each: int = 1, rows_each: int = 1) -> list[Path]:
    """SCAN's files, captions tokenised as the released ones are."""
    for split, name in (("train", "train"), ("val", "dev"), ("test", "testall")):
        part = [image for image in shuffled(images) if image.split == split]
        np.save(
            folder / f"{name}_ims.npy",
            np.repeat(np.stack([image.features for image in part]), rows_each, axis=0),
        )
        (folder / f"{name}_ids.txt").write_text(
            "".join(f"{image.number}\n" * ids_each for image in part)
        )
        captions = [
            caption.lower().replace("'s", " 's").replace('"', "``").replace(",", " ,") + " ."
            for image in part
            for caption in image.captions[:5]
        ]
        (folder / f"{name}_caps.txt").write_text("\n".join(captions))
    return [folder]


def scan_by_caption(folder: Path, images: list[Picture]) -> list[Path]:
    return scan(folder, images, ids_each=5, rows_each=5)


def npy(folder: Path, images: list[Picture]) -> list[Path]:
    for image in images:
        np.save(folder / f"{image.stem}.npy", image.features.astype(np.float64))
    return [folder]


def npz(folder: Path, images: list[Picture]) -> list[Path]:
    """As bottom-up-attention.pytorch writes them, with its pickled `info`."""
    for image in images:
        np.savez_compressed(
            folder / f"{image.stem}.npz",
            x=image.features,
            bbox=image.boxes,
            num_bbox=len(image.features),
            image_h=image.size[1],
            image_w=image.size[0],
            info=np.array({"objects_id": image.objects}, dtype=object),
        )
    return [folder]


def npz_lying(folder: Path, images: list[Picture]) -> list[Path]:
    """As MCAN's: x is [D, n]."""
    for image in images:
        np.savez(
            folder / f"{image.stem}.npz",
            x=image.features.T,
            bbox=image.boxes,
            num_bbox=len(image.features),
        )
    return [folder]


def pth(folder: Path, images: list[Picture]) -> list[Path]:
    """As grid-feats-vqa writes them: maps of two rows, [1, C, 2, n / 2]; named by the image id."""
    (folder / "train2014").mkdir()
    for image in images:
        maps = torch.from_numpy(image.features).T.reshape(1, -1, 2, len(image.features) // 2)
        torch.save(
            maps.contiguous(),
            folder / "train2014" / f"{image.number}.pth",
            _use_new_zipfile_serialization=image.number % 2 == 0,
        )
    return [folder]


# What is written -> (format, writer, whether images may differ in their number of items, what
# stands beside).
LABELS = ("object", "object_score", "attribute", "attribute_score")
SOURCES: dict[
    str, tuple[str, Callable[[Path, list[Picture]], list[Path]], bool, tuple[str, ...]]
] = {
    "anderson": ("butd-tsv", anderson_tsv, True, ("boxes",)),
    "lxmert": ("butd-tsv", lxmert_tsv, True, ("boxes", *LABELS)),
    "scan": ("scan", scan, False, ()),
    "scan-by-caption": ("scan", scan_by_caption, False, ()),
    "npy": ("folder", npy, True, ()),
    "npz": ("folder", npz, True, ("boxes",)),
    "npz-lying": ("folder", npz_lying, True, ("boxes",)),
    "pth": ("folder", pth, True, ()),
}


def job(table: Manifest, form: str, paths: list[Path], store: Path, **changes: object) -> ImportJob:
    """An import with three images a shard, in float32."""
    from pipeline.extensions.importers import ImportJob

    settings: dict[str, object] = {"shard_images": 3, "dtype": "float32", **changes}
    return ImportJob(table, form, tuple(paths), store, **settings)  # type: ignore[arg-type]
