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
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from pipeline.features.importers import butd_tsv, scan
from pipeline.features.importers.base import SourceItems
from pipeline.features.importers.folder import MEMBERS
from pipeline.features.store import FeatureStore, StoreError, provenance
from pipeline.files.atomic import replacing, write_text
from pipeline.manifest import Dataset, Manifest, Split, dataset
from pipeline.parts.errors import InputError, counted

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
        record, layout = self.folder / f"{name}_made_from.json", self.store.layout
        made_from = (
            json.dumps(
                {
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
                },
                indent=1,
                ensure_ascii=False,
            )
            + "\n"
        )
        same = record.exists() and record.read_bytes() == made_from.encode()
        if not same and (taken := next((file for file in files if file.exists()), None)):
            raise InputError(
                f"{taken}: exists and is not an export of this store and manifest; choose another --out"
            )
        return record, made_from, same

    def done(self, place: Path, written: bool) -> Exported:
        """The outcome of a format that names the images."""
        also = (
            f"; {len(self.left_out):,} failed images are left out, see {self.name}_made_from.json"
        )
        return Exported(
            place,
            len(self.rows),
            self.left_out,
            written,
            f"{counted(len(self.rows), 'image')} of "
            f"{self.split or 'all splits'}{_if_kept(written)}{also if self.left_out else ''}",
        )

    def images(self, rows: np.ndarray) -> Iterator[tuple[int, str, SourceItems]]:
        """The id, the file and the items of some images."""
        self.on_start(len(rows))
        numbers, files = (self.manifest.images[name].to_numpy() for name in ("image_id", "file"))
        sizes = self.store.columns("sizes")
        for row in rows.tolist():
            features, extras = self.store.items(row)
            width, height = sizes[row].tolist()
            yield (
                int(numbers[row]),
                files[row],
                SourceItems(features.astype(np.float32), extras, (width, height)),
            )
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
    return FORMATS[form](
        _Asked(
            form, store, manifest, split, folder, on_start, on_images, rows[done], left_out, root
        )
    )


def _if_kept(written: bool) -> str:
    return "" if written else ", up to date"


def scan_name(split: str, card: Dataset) -> str:
    """A split's name in SCAN: val is `dev`; COCO's 5K test is `testall`, because SCAN's `test` is
    its first 1K.
    """
    if split == "test" and "coco_5k" in card.protocols:
        return "testall"
    return "dev" if split == "val" else split


def _scan(asked: _Asked) -> Exported:
    store, manifest, rows = asked.store, asked.manifest, asked.rows
    assert asked.split is not None  # `export` checks it
    split = manifest.split(asked.split)
    name = scan_name(asked.split, dataset(manifest.dataset, asked.root))
    exported, counts = split.only(store.done[split.store_rows]), store.counts[rows]
    captions, fewest, items = (
        _first_captions(exported, manifest),
        int(counts.min()),
        store.layout.items,
    )
    more, dimension = len(exported.captions) - len(captions), store.layout.dimension
    texts = {
        "ids.txt": "".join(f"{number}\n" for number in exported.image_ids),
        "caps.txt": "".join(f"{' '.join(caption.split())}\n" for caption in captions),
    }
    files = {
        what: asked.folder / f"{name}_{what}"
        for what in (
            "made_from.json",
            *texts,
            "ims.npy",
            *(["counts.npy"] if fewest < items else []),
        )
    }
    _, texts["made_from.json"], same = asked.record(name, files.values(), captions_left_out=more)
    written = not (same and all(file.exists() for file in files.values()))
    if written:
        _write(files, texts, asked)
    notes = (
        [
            f"images have {fewest} to {items} items: shorter ones are padded with zeros, which older code takes for "
            f"items; {name}_counts.npy holds how many are valid"
        ]
        if fewest < items
        else []
    )
    notes += [f"left out: {counted(more, 'caption')} after an image's fifth"] if more else []
    if asked.left_out:
        unnamed = len(asked.left_out) - NAMED
        notes.append(
            f"{len(asked.left_out):,} failed images are left out with their captions: "
            + ", ".join(asked.left_out[:NAMED])
            + (f" and {unnamed:,} more, see {name}_made_from.json" if unnamed > 0 else "")
        )
    return Exported(
        files["ims.npy"],
        len(rows),
        asked.left_out,
        written,
        f"{len(rows):,} images x {items} items x "
        f"{dimension}, {len(captions):,} captions of {asked.split}{_if_kept(written)}",
        tuple(notes),
    )


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
    first = np.cumsum(counts) - counts
    return [
        split.captions[place] for start in first for place in order[start : start + scan.CAPTIONS]
    ]


def _write(files: dict[str, Path], texts: dict[str, str], asked: _Asked) -> None:
    """Write every file under another name; all are renamed at the end."""
    store, rows = asked.store, asked.rows
    asked.on_start(len(rows))
    with ExitStack() as stack:
        # Files are renamed in reverse order of opening: made_from.json, opened last, is there
        # before all others.
        partial = {
            name: stack.enter_context(replacing(file)) for name, file in reversed(files.items())
        }
        shape = (len(rows), store.layout.items, store.layout.dimension)
        with partial["ims.npy"].open(
            "wb"
        ) as file:  # not through a memory map: on a full disk that kills the process
            npy_format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": shape}
            )
            for start in range(0, len(rows), BATCH):
                batch, _ = store.read(rows[start : start + BATCH])
                file.write(batch.astype("<f4").data)
                asked.on_images(len(batch))
        for name, text in texts.items():
            partial[name].write_bytes(text.encode())
        if "counts.npy" in partial:
            with partial["counts.npy"].open("wb") as file:
                np.save(file, store.counts[rows])


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
    labels = {"object", "object_score", "attribute", "attribute_score"} <= set(store.layout.extras)
    file = asked.folder / f"{asked.name}.tsv"
    record, made_from, same = asked.record(asked.name, [file])
    if written := not (same and file.exists()):
        with replacing(file) as partial, partial.open("wb") as lines:
            for number, name, image in asked.images(asked.rows):
                lines.write(
                    _line(number, name, image, butd_tsv.LXMERT if labels else butd_tsv.ANDERSON)
                )
        write_text(record, made_from)
    return asked.done(file, written)


def _line(number: int, file: str, image: SourceItems, columns: tuple[str, ...]) -> bytes:
    """A row of a TSV. LXMERT's users look images up by file name, bottom-up-attention's by
    number.
    """
    values: dict[str, Any] = {
        "image_id": number,
        "img_id": PurePosixPath(file).stem,
        "image_w": image.size[0],
        "img_w": image.size[0],
        "image_h": image.size[1],
        "img_h": image.size[1],
        "num_boxes": len(image.features),
        "features": base64.b64encode(image.features.astype("<f4").tobytes()).decode(),
        **{
            column: base64.b64encode(image.extras[name].astype(kind).tobytes()).decode()
            for column, (name, kind, _) in butd_tsv.EXTRAS.items()
            if name in image.extras
        },
    }
    return "\t".join(str(values[column]) for column in columns).encode() + b"\n"


def _folder(asked: _Asked) -> Exported:
    """An .npz for each image. An interrupted export is resumed."""
    rows = asked.rows.tolist()
    names = {row: PurePosixPath(asked.manifest.images["file"][row]) for row in rows}
    if out := next(
        (name for name in names.values() if name.is_absolute() or ".." in name.parts), None
    ):
        raise InputError(
            f"the manifest's file {str(out)!a} leaves the folder; make the manifest again"
        )
    files = {row: asked.folder / name.with_suffix(".npz") for row, name in names.items()}
    if len(set(files.values())) < len(files):
        raise InputError(
            "two images have the same name but for the suffix; export butd-tsv, which names them by id"
        )
    record, made_from, _ = asked.record(asked.name, files.values())
    write_text(record, made_from)
    left = np.array([row for row in rows if not files[row].exists()], np.int64)
    for row, (_, _, image) in zip(left.tolist(), asked.images(left), strict=True):
        beside = {
            member: image.extras[name] for member, name in MEMBERS.items() if name in image.extras
        }
        if "bbox" in beside:
            beside["num_bbox"] = np.array(len(image.features))
        if all(image.size):
            beside |= {"image_w": np.array(image.size[0]), "image_h": np.array(image.size[1])}
        with replacing(files[row], durable=False) as partial, partial.open("wb") as file:
            np.savez(file, x=image.features, **beside)  # type: ignore[arg-type]
    return asked.done(asked.folder, bool(len(left)))


# Format -> the function that writes it.
FORMATS: dict[str, Callable[[_Asked], Exported]] = {
    "scan": _scan,
    "butd-tsv": _tsv,
    "folder": _folder,
}
