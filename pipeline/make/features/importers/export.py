"""Write a feature store in formats that older code bases read; `pipeline store import` reads each
of them back.

    scan        a split in SCAN's layout (see `importers.scan`)
        {split}_ims.npy     [n, N, D] float32, padding zero
        {split}_ids.txt     an image id per line
        {split}_caps.txt    the first five captions of each image, a line each
        {split}_counts.npy  [n] int32, valid items of each image; only where they are not all N
    butd-tsv    {split}.tsv, a row per image: bottom-up-attention's columns, or LXMERT's if the
                store has objects
    folder      an .npz per image, named after its file, with the members of
                MILVLG/bottom-up-attention.pytorch

Beside them is {split}_made_from.json: the store, the manifest, and what was left out.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from pipeline.foundation.files.atomic import replacing, write_text
from pipeline.foundation.manifest import Dataset, Manifest, Split, dataset
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.make.features.importers import butd_tsv, scan
from pipeline.make.features.importers.base import SourceItems
from pipeline.make.features.importers.folder import MEMBERS
from pipeline.make.features.store import FeatureStore, StoreError, provenance

BATCH = 64  # images in memory at once
NAMED = 20  # failed images that a message names; made_from.json has all
OnImages = Callable[[int], object]


@dataclass(frozen=True)
class Exported:
    """The outcome of an export."""

    place: Path  # the file, or the folder with a file per image
    images: int  # how many images it holds
    left_out: list[str]  # the files of failed images
    written: bool  # false if the export existed already
    content: str  # what it holds, in words
    notes: tuple[str, ...] = ()  # what a reader of the files must know


@dataclass(frozen=True)
class _Asked:
    """What is exported, and how its record and outcome are made."""

    form: str  # A key of `FORMATS`
    store: FeatureStore
    manifest: Manifest
    split: str | None  # None for all
    folder: Path
    on_start: OnImages
    on_images: OnImages
    rows: np.ndarray  # int64, the images with features
    left_out: list[str]  # the files of those without
    root: Path  # the project

    @property
    def name(self) -> str:
        """The split's name in the files' names."""
        return self.split or "all"

    def record(self, name: str, files: Iterable[Path], **more: Any) -> tuple[Path, str, bool]:
        """The file that says what made an export, its content, and whether it exists with that
        content.

        Raises InputError if it does not, and one of the export's files exists.
        """
        layout = self.store.layout
        facts = {
            "exported_as": self.form,
            "store": self.store.identity,
            **provenance(self.store),
            "dataset": self.manifest.dataset,
            "manifest": self.manifest.digest,
            "split": self.name,
            "images": len(self.rows),
            "items": layout.items,
            "dimension": layout.dimension,
            "left_out": self.left_out,
            **more,
        }
        made_from = json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
        record = self.folder / f"{name}_made_from.json"
        same = record.exists() and record.read_bytes() == made_from.encode()
        for file in files:
            if not same and file.exists():
                raise InputError(
                    f"{file}: exists and is not an export of this store and manifest; choose another --out"
                )
        return record, made_from, same

    def done(self, place: Path, written: bool) -> Exported:
        """The outcome of a format that names the images."""
        images = counted(len(self.rows), "image")
        content = f"{images} of {self.split or 'all splits'}{_if_kept(written)}"
        if self.left_out:
            content += f"; {len(self.left_out):,} failed images are left out, see {self.name}_made_from.json"
        return Exported(place, len(self.rows), self.left_out, written, content)

    def images(self, rows: np.ndarray) -> Iterator[tuple[int, str, SourceItems]]:
        """The id, the file and the items of some images."""
        self.on_start(len(rows))
        numbers = self.manifest.images["image_id"].to_numpy()
        files = self.manifest.images["file"].to_numpy()
        sizes = self.store.columns("sizes")
        for row in rows.tolist():
            features, extras = self.store.items(row)
            width, height = sizes[row].tolist()
            items = SourceItems(features.astype(np.float32), extras, (width, height))
            yield int(numbers[row]), files[row], items
            self.on_images(1)


def export(
    form: str,
    store: FeatureStore,
    manifest: Manifest,
    split: str | None,
    folder: Path,
    on_start: OnImages = lambda count: None,
    on_images: OnImages = lambda count: None,
    *,
    root: Path,
) -> Exported:
    """Write a split, None for all, into a folder in one of `FORMATS`. An existing export is left
    unchanged.
    """
    if form == "scan" and split is None:
        raise InputError("SCAN's layout holds one split; name it with --split")
    store = store.require(manifest)
    rows = np.arange(len(manifest.images)) if split is None else manifest.split(split).store_rows
    store.require_extracted(rows)
    done = store.done[rows]
    if not done.any():
        which = f"the split {split}" if split else "the manifest"
        raise InputError(f"{store.path}: every image of {which} failed, see its failures.csv")
    left_out = manifest.images["file"].to_numpy()[rows[~done]].tolist()
    asked = _Asked(
        form, store, manifest, split, folder, on_start, on_images, rows[done], left_out, root
    )
    return FORMATS[form](asked)


def _if_kept(written: bool) -> str:
    return "" if written else ", up to date"


def scan_name(split: str, card: Dataset) -> str:
    """A split's name in SCAN: val is `dev`; COCO's 5K test is `testall`, because SCAN's `test` is
    its first 1K.
    """
    if split == "val":
        return "dev"
    if split == "test" and "coco_5k" in card.protocols:
        return "testall"
    return split


def _scan(asked: _Asked) -> Exported:
    store = asked.store
    manifest = asked.manifest
    assert asked.split is not None  # `export` checks it
    split = manifest.split(asked.split)
    name = scan_name(asked.split, dataset(manifest.dataset, asked.root))
    exported = split.only(store.done[split.store_rows])
    captions = _first_captions(exported, manifest)
    more = len(exported.captions) - len(captions)
    items = store.layout.items
    fewest = int(store.counts[asked.rows].min())
    texts = {
        "ids.txt": "".join(f"{number}\n" for number in exported.image_ids),
        "caps.txt": "".join(f"{' '.join(caption.split())}\n" for caption in captions),
    }
    parts = ["made_from.json", *texts, "ims.npy"]
    if fewest < items:
        parts.append("counts.npy")
    files = {what: asked.folder / f"{name}_{what}" for what in parts}
    _, texts["made_from.json"], same = asked.record(name, files.values(), captions_left_out=more)
    written = not (same and all(file.exists() for file in files.values()))
    if written:
        _write(files, texts, asked)
    notes = []
    if fewest < items:
        notes.append(
            f"images have {fewest} to {items} items: shorter ones are padded with zeros, which older code takes for "
            f"items; {name}_counts.npy holds how many are valid"
        )
    if more:
        notes.append(f"left out: {counted(more, 'caption')} after an image's fifth")
    if asked.left_out:
        notes.append(_note_on_failed(asked.left_out, name))
    content = (
        f"{len(asked.rows):,} images x {items} items x {store.layout.dimension}, "
        f"{len(captions):,} captions of {asked.split}{_if_kept(written)}"
    )
    return Exported(
        files["ims.npy"], len(asked.rows), asked.left_out, written, content, tuple(notes)
    )


def _note_on_failed(left_out: Sequence[str], name: str) -> str:
    note = (
        f"{len(left_out):,} failed images are left out with their captions: "
        f"{', '.join(left_out[:NAMED])}"
    )
    unnamed = len(left_out) - NAMED
    if unnamed > 0:
        note += f" and {unnamed:,} more, see {name}_made_from.json"
    return note


def _first_captions(split: Split, manifest: Manifest) -> list[str]:
    """The first five captions of each image, in the images' order."""
    split = split.with_images()
    counts = np.bincount(split.caption_image, minlength=len(split.image_ids))
    if counts.min() < scan.CAPTIONS:
        row = int(np.argmin(counts))
        raise InputError(
            f"{manifest.images['file'][split.store_rows[row]]}: has {counts[row]} captions, SCAN's layout "
            f"holds {scan.CAPTIONS} of every image; export a split that has them"
        )
    order = np.argsort(split.caption_image, kind="stable")
    captions = []
    for first in np.cumsum(counts) - counts:
        for place in order[first : first + scan.CAPTIONS]:
            captions.append(split.captions[place])
    return captions


def _write(files: dict[str, Path], texts: dict[str, str], asked: _Asked) -> None:
    """Write every file under another name; all are renamed at the end."""
    store = asked.store
    rows = asked.rows
    asked.on_start(len(rows))
    with ExitStack() as stack:
        # Files are renamed in reverse order of opening: made_from.json, opened last, is there
        # before all others.
        partial = {}
        for name, file in reversed(files.items()):
            partial[name] = stack.enter_context(replacing(file))
        shape = (len(rows), store.layout.items, store.layout.dimension)
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        # Not through a memory map: on a full disk that kills the process.
        with partial["ims.npy"].open("wb") as array:
            npy_format.write_array_header_1_0(array, header)
            for start in range(0, len(rows), BATCH):
                batch, _ = store.read(rows[start : start + BATCH])
                array.write(batch.astype("<f4").data)
                asked.on_images(len(batch))
        for name, text in texts.items():
            partial[name].write_bytes(text.encode())
        if "counts.npy" in partial:
            with partial["counts.npy"].open("wb") as array:
                np.save(array, store.counts[rows])


def _tsv(asked: _Asked) -> Exported:
    store = asked.store
    if "boxes" not in store.layout.extras:
        raise StoreError(
            f"{store.path}: has no boxes, which a TSV of regions needs; export folder does without"
        )
    if not store.columns("sizes")[asked.rows].all():
        raise StoreError(
            f"{store.path}: does not know the size of every image, which a TSV of regions needs; export "
            "folder does without"
        )
    labels = {"object", "object_score", "attribute", "attribute_score"}
    columns: tuple[str, ...] = butd_tsv.ANDERSON
    if labels <= set(store.layout.extras):
        columns = butd_tsv.LXMERT
    file = asked.folder / f"{asked.name}.tsv"
    record, made_from, same = asked.record(asked.name, [file])
    written = not (same and file.exists())
    if written:
        with replacing(file) as partial, partial.open("wb") as lines:
            for number, name, image in asked.images(asked.rows):
                lines.write(_line(number, name, image, columns))
        write_text(record, made_from)
    return asked.done(file, written)


def _line(number: int, file: str, image: SourceItems, columns: tuple[str, ...]) -> bytes:
    """A row of a TSV. LXMERT's users look images up by file name, bottom-up-attention's by
    number.
    """
    width, height = image.size
    values: dict[str, Any] = {
        "image_id": number,
        "img_id": PurePosixPath(file).stem,
        "image_w": width,
        "img_w": width,
        "image_h": height,
        "img_h": height,
        "num_boxes": len(image.features),
        "features": _base64(image.features, "<f4"),
    }
    for column, (name, dtype, _) in butd_tsv.EXTRAS.items():
        if name in image.extras:
            values[column] = _base64(image.extras[name], dtype)
    return "\t".join(str(values[column]) for column in columns).encode() + b"\n"


def _base64(values: np.ndarray, dtype: str) -> str:
    return base64.b64encode(values.astype(dtype).tobytes()).decode()


def _folder(asked: _Asked) -> Exported:
    """An .npz for each image. An interrupted export is resumed."""
    rows = asked.rows.tolist()
    files = {}
    for row in rows:
        name = PurePosixPath(asked.manifest.images["file"][row])
        if name.is_absolute() or ".." in name.parts:
            raise InputError(
                f"the manifest's file {str(name)!a} leaves the folder; make the manifest again"
            )
        files[row] = asked.folder / name.with_suffix(".npz")
    if len(set(files.values())) < len(files):
        raise InputError(
            "two images have the same name but for the suffix; export butd-tsv, which names them by id"
        )
    record, made_from, _ = asked.record(asked.name, files.values())
    write_text(record, made_from)
    left = np.array([row for row in rows if not files[row].exists()], np.int64)
    for row, (_, _, image) in zip(left.tolist(), asked.images(left), strict=True):
        with replacing(files[row], durable=False) as partial, partial.open("wb") as file:
            np.savez(file, **_members(image))  # type: ignore[arg-type]
    return asked.done(asked.folder, bool(len(left)))


def _members(image: SourceItems) -> dict[str, np.ndarray]:
    """The members of an image's .npz."""
    members = {"x": image.features}
    for member, name in MEMBERS.items():
        # Other tools call the boxes `boxes`; a file with both is refused.
        if member != "boxes" and name in image.extras:
            members[member] = image.extras[name]
    if "bbox" in members:
        members["num_bbox"] = np.array(len(image.features))
    if all(image.size):
        width, height = image.size
        members["image_w"] = np.array(width)
        members["image_h"] = np.array(height)
    return members


# Format -> the function that writes it.
FORMATS: dict[str, Callable[[_Asked], Exported]] = {
    "scan": _scan,
    "butd-tsv": _tsv,
    "folder": _folder,
}
