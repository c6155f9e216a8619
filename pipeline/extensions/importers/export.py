"""Formats of feature stores that older code bases read; `pipeline store import` reads each of them
back.

    scan        a split in SCAN's layout (see `importers.scan`)
        {split}_ims.npy     [n, N, D] float32, padding zero
        {split}_ids.txt     an image id per line
        {split}_caps.txt    the first five captions of each image, a line each
        {split}_counts.npy  [n] int32, valid items of each image; only where they are not all N
    butd-tsv    {split}.tsv, a row per image: bottom-up-attention's columns, or LXMERT's if the
                store has objects
    folder      an .npz per image, named after its file, with the members of
                MILVLG/bottom-up-attention.pytorch
"""

import base64
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from pipeline.extensions.importers import butd_tsv
from pipeline.extensions.importers.base import SourceItems
from pipeline.extensions.importers.folder import MEMBERS
from pipeline.foundation.files.atomic import replacing, write_text
from pipeline.foundation.manifest import Dataset, Manifest, Split, dataset
from pipeline.foundation.manifest.scan import CAPTIONS
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.make.features.store import StoreError
from pipeline.make.features.store.export import Export, Exported, Format, if_kept

BATCH = 64  # images in memory at once
NAMED = 20  # failed images that a message names; made_from.json has all


def scan_name(split: str, card: Dataset) -> str:
    """A split's name in SCAN: val is `dev`; COCO's 5K test is `testall`, because SCAN's `test` is
    its first 1K.
    """
    if split == "val":
        return "dev"
    if split == "test" and "coco_5k" in card.protocols:
        return "testall"
    return split


def _scan(export: Export) -> Exported:
    store = export.store
    manifest = export.manifest
    assert export.split is not None  # `Format.needs_split`
    split = manifest.split(export.split)
    name = scan_name(export.split, dataset(manifest.dataset, export.root))
    exported = split.only(store.done[split.store_rows])
    captions = _first_captions(exported, manifest)
    more = len(exported.captions) - len(captions)
    items = store.layout.items
    fewest = int(store.counts[export.rows].min())
    texts = {
        "ids.txt": "".join(f"{number}\n" for number in exported.image_ids),
        "caps.txt": "".join(f"{' '.join(caption.split())}\n" for caption in captions),
    }
    parts = ["made_from.json", *texts, "ims.npy"]
    if fewest < items:
        parts.append("counts.npy")
    files = {what: export.folder / f"{name}_{what}" for what in parts}
    _, texts["made_from.json"], same = export.record(name, files.values(), captions_left_out=more)
    written = not (same and all(file.exists() for file in files.values()))
    if written:
        _write(files, texts, export)
    notes = []
    if fewest < items:
        notes.append(
            f"images have {fewest} to {items} items: shorter ones are padded with zeros, which older code takes for "
            f"items; {name}_counts.npy holds how many are valid"
        )
    if more:
        notes.append(f"left out: {counted(more, 'caption')} after an image's fifth")
    if export.left_out:
        notes.append(_note_on_failed(export.left_out, name))
    content = (
        f"{len(export.rows):,} images x {items} items x {store.layout.dimension}, "
        f"{len(captions):,} captions of {export.split}{if_kept(written)}"
    )
    return Exported(
        files["ims.npy"], len(export.rows), export.left_out, written, content, tuple(notes)
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


def _images(export: Export, rows: np.ndarray) -> Iterator[tuple[int, str, SourceItems]]:
    """The id, the file and the items of some images."""
    export.on_start(len(rows))
    numbers = export.manifest.images["image_id"].to_numpy()
    files = export.manifest.images["file"].to_numpy()
    sizes = export.store.columns("sizes")
    for row in rows.tolist():
        features, extras = export.store.items(row)
        width, height = sizes[row].tolist()
        items = SourceItems(features.astype(np.float32), extras, (width, height))
        yield int(numbers[row]), files[row], items
        export.on_images(1)


def _first_captions(split: Split, manifest: Manifest) -> list[str]:
    """The first five captions of each image, in the images' order."""
    split = split.with_images()
    counts = np.bincount(split.caption_image, minlength=len(split.image_ids))
    if counts.min() < CAPTIONS:
        row = int(np.argmin(counts))
        raise InputError(
            f"{manifest.images['file'][split.store_rows[row]]}: has {counts[row]} captions, SCAN's layout "
            f"holds {CAPTIONS} of every image; export a split that has them"
        )
    order = np.argsort(split.caption_image, kind="stable")
    captions = []
    for first in np.cumsum(counts) - counts:
        for place in order[first : first + CAPTIONS]:
            captions.append(split.captions[place])
    return captions


def _write(files: dict[str, Path], texts: dict[str, str], export: Export) -> None:
    """Write every file under another name; all are renamed at the end."""
    store = export.store
    rows = export.rows
    export.on_start(len(rows))
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
                export.on_images(len(batch))
        for name, text in texts.items():
            partial[name].write_bytes(text.encode())
        if "counts.npy" in partial:
            with partial["counts.npy"].open("wb") as array:
                np.save(array, store.counts[rows])


def _tsv(export: Export) -> Exported:
    store = export.store
    if "boxes" not in store.layout.extras:
        raise StoreError(
            f"{store.path}: has no boxes, which a TSV of regions needs; export folder does without"
        )
    if not store.columns("sizes")[export.rows].all():
        raise StoreError(
            f"{store.path}: does not know the size of every image, which a TSV of regions needs; export "
            "folder does without"
        )
    labels = {"object", "object_score", "attribute", "attribute_score"}
    columns: tuple[str, ...] = butd_tsv.ANDERSON
    if labels <= set(store.layout.extras):
        columns = butd_tsv.LXMERT
    file = export.folder / f"{export.name}.tsv"
    record, made_from, same = export.record(export.name, [file])
    written = not (same and file.exists())
    if written:
        with replacing(file) as partial, partial.open("wb") as lines:
            for number, name, image in _images(export, export.rows):
                lines.write(_line(number, name, image, columns))
        write_text(record, made_from)
    return export.done(file, written)


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


def _folder(export: Export) -> Exported:
    """An .npz for each image. An interrupted export is resumed."""
    rows = export.rows.tolist()
    files = {}
    for row in rows:
        name = PurePosixPath(export.manifest.images["file"][row])
        if name.is_absolute() or ".." in name.parts:
            raise InputError(
                f"the manifest's file {str(name)!a} leaves the folder; make the manifest again"
            )
        files[row] = export.folder / name.with_suffix(".npz")
    if len(set(files.values())) < len(files):
        raise InputError(
            "two images have the same name but for the suffix; export butd-tsv, which names them by id"
        )
    record, made_from, _ = export.record(export.name, files.values())
    write_text(record, made_from)
    left = np.array([row for row in rows if not files[row].exists()], np.int64)
    for row, (_, _, image) in zip(left.tolist(), _images(export, left), strict=True):
        with replacing(files[row], durable=False) as partial, partial.open("wb") as file:
            np.savez(file, **_members(image))  # type: ignore[arg-type]
    return export.done(export.folder, bool(len(left)))


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


SCAN = Format(_scan, needs_split="SCAN's layout holds one split; name it with --split")
TSV = Format(_tsv)
FOLDER = Format(_folder)
