"""Write the features of images one by one, as older code bases read them; `pipeline import` reads both back.

    butd-tsv    {split}.tsv, a row an image: bottom-up-attention's columns, or LXMERT's where the store has objects
    folder      an .npz an image, named after its file, with the members of MILVLG/bottom-up-attention.pytorch

Beside them lies {split}_made_from.json: the store, the manifest, and what was left out.
"""

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from pipeline.features.importers import tsv_row
from pipeline.features.importers.array_files import EXTRAS
from pipeline.features.store import FeatureStore, StoreError, provenance
from pipeline.files.atomic import replacing, write_text
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError

OnImages = Callable[[int], object]
ALL = "all"
"""What files are called that hold every split."""


@dataclass(frozen=True)
class Image:
    """One image's features."""

    number: int  # its image id
    file: str  # its file by the manifest
    features: np.ndarray  # float32 [n, D]
    extras: Mapping[str, np.ndarray]  # name -> [n, ...], what is stored beside them
    size: tuple[int, int]  # width and height in pixels


@dataclass(frozen=True)
class ExportedImages:
    """The outcome of an export."""

    place: Path  # the file or folder
    images: int  # how many images it holds
    left_out: list[str]  # the files of failed images
    written: bool  # false where the export existed already


def export_tsv(store: FeatureStore, manifest: Manifest, split: str | None, folder: Path,
               on_start: OnImages = lambda count: None, on_images: OnImages = lambda count: None) -> ExportedImages:
    """Write a split as one TSV."""
    store, rows, left_out = _chosen(store, manifest, split)
    _require_boxes(store, rows)
    labels = {"object", "object_score", "attribute", "attribute_score"} <= set(store.layout.extras)
    file, record, made_from = _place(store, manifest, split, folder, left_out, "butd-tsv")
    there = record.exists() and record.read_text(encoding="utf-8") == made_from
    if file.with_suffix(".tsv").exists() and not there:
        raise InputError(f"{file}.tsv: is there, and not an export of this store and manifest; choose another --out")
    done = ExportedImages(file.with_suffix(".tsv"), len(rows), left_out, not there)
    if there and done.place.exists():
        return done
    on_start(len(rows))
    with replacing(done.place) as partial, partial.open("wb") as lines:
        for image in _images(store, manifest, rows):
            lines.write(_line(image, tsv_row.LXMERT if labels else tsv_row.ANDERSON))
            on_images(1)
    write_text(record, made_from)
    return done


def export_folder(store: FeatureStore, manifest: Manifest, split: str | None, folder: Path,
                  on_start: OnImages = lambda count: None, on_images: OnImages = lambda count: None) -> ExportedImages:
    """Write an .npz for each image of a split. An interrupted export goes on."""
    store, rows, left_out = _chosen(store, manifest, split)
    names = {row: PurePosixPath(manifest.images["file"][row]) for row in rows.tolist()}
    if out := next((name for name in names.values() if name.is_absolute() or ".." in name.parts), None):
        raise InputError(f"the manifest's file {str(out)!a} leaves the folder; make the manifest again")
    files = {row: folder / name.with_suffix(".npz") for row, name in names.items()}
    if len(set(files.values())) < len(files):
        raise InputError("two images have the same name but for the suffix; export butd-tsv, which names them by id")
    _, record, made_from = _place(store, manifest, split, folder, left_out, "folder")
    begun = record.exists() and record.read_text(encoding="utf-8") == made_from
    if not begun and (taken := next((file for file in files.values() if file.exists()), None)):
        raise InputError(f"{taken}: is there, and not of an export of this store and manifest; choose another --out")
    write_text(record, made_from)
    left = np.array([row for row in rows.tolist() if not files[row].exists()], np.int64)
    on_start(len(left))
    for row, image in zip(left.tolist(), _images(store, manifest, left), strict=True):
        with replacing(files[row], durable=False) as partial, partial.open("wb") as file:
            np.savez(file, **_members(image))  # type: ignore[arg-type]
        on_images(1)
    return ExportedImages(folder, len(rows), left_out, bool(len(left)))


def _chosen(store: FeatureStore, manifest: Manifest, split: str | None) -> tuple[FeatureStore, np.ndarray, list[str]]:
    """The store, the images with features, and the files of those without."""
    store = store.require(manifest)
    whole = np.arange(len(manifest.images)) if split is None else manifest.split(split).store_rows
    store.require_extracted(whole)
    done = store.done[whole]
    if not done.any():
        raise InputError(f"{store.path}: every image of {split or 'the manifest'} failed, see its failures.csv")
    return store, whole[done], manifest.images["file"].to_numpy()[whole[~done]].tolist()


def _require_boxes(store: FeatureStore, rows: np.ndarray) -> None:
    if "boxes" not in store.layout.extras:
        raise StoreError(f"{store.path}: has no boxes, which a TSV of regions needs; export folder does without")
    if not store.columns("sizes")[rows].all():
        raise StoreError(f"{store.path}: does not know the size of every image, which a TSV of regions needs; export "
                         "folder does without")


def _place(store: FeatureStore, manifest: Manifest, split: str | None, folder: Path, left_out: list[str], form: str
           ) -> tuple[Path, Path, str]:
    """The file without suffix, the record of what made it, and that record's text."""
    made_from = {"format": form, "store": store.identity, **provenance(store), "dataset": manifest.dataset,
                 "manifest": manifest.digest, "split": split or ALL, "left_out": left_out}
    name = split or ALL
    return folder / name, folder / f"{name}_made_from.json", json.dumps(made_from, indent=1, ensure_ascii=False) + "\n"


def _images(store: FeatureStore, manifest: Manifest, rows: np.ndarray) -> Iterator[Image]:
    numbers, files = manifest.images["image_id"].to_numpy(), manifest.images["file"].to_numpy()
    sizes = store.columns("sizes")
    for row in rows.tolist():
        features, counts = store.read(np.array([row]))
        count = int(counts[0])
        extras = {name: store.extra(name, np.array([row]))[0, :count] for name in store.layout.extras}
        yield Image(int(numbers[row]), files[row], features[0, :count].astype(np.float32), extras,
                    (int(sizes[row][0]), int(sizes[row][1])))


def _line(image: Image, columns: tuple[str, ...]) -> bytes:
    """A row. LXMERT's users look images up by file name, bottom-up-attention's by number."""
    values: dict[str, Any] = {
        "image_id": image.number, "img_id": PurePosixPath(image.file).stem, "image_w": image.size[0],
        "img_w": image.size[0], "image_h": image.size[1], "img_h": image.size[1], "num_boxes": len(image.features),
        "features": image.features.astype("<f4"),
        **{column: image.extras[name].astype(kind) for column, (name, kind, _) in tsv_row.EXTRAS.items()
           if name in image.extras}}
    return b"\t".join(_text(values[column]) for column in columns) + b"\n"


def _text(value: Any) -> bytes:
    return base64.b64encode(value.tobytes()) if isinstance(value, np.ndarray) else str(value).encode()


def _members(image: Image) -> dict[str, np.ndarray]:
    known = {"image_w": np.array(image.size[0]), "image_h": np.array(image.size[1])} if all(image.size) else {}
    beside = {member: image.extras[name] for member, name in EXTRAS.items() if name in image.extras}
    boxes = {"num_bbox": np.array(len(image.features))} if "bbox" in beside else {}
    return {"x": image.features, **beside, **boxes, **known}
