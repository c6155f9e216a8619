"""Write a feature store as older code bases read it; `pipeline import` reads every format back.

    scan        a split in SCAN's layout (see `importers.scan`)
        {split}_ims.npy     [n, N, D] float32, padding zero
        {split}_ids.txt     an image id a line
        {split}_caps.txt    the first five captions of each image, a line each
        {split}_counts.npy  [n] int32, valid items of each image; only where they are not all N
    butd-tsv    {split}.tsv, a row an image: bottom-up-attention's columns, or LXMERT's where the store has objects
    folder      an .npz an image, named after its file, with the members of MILVLG/bottom-up-attention.pytorch

Beside them lies {split}_made_from.json: the store, the manifest, and what was left out.
"""

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.lib import format as npy_format

from pipeline.features.importers import butd_tsv
from pipeline.features.importers.array_files import EXTRAS
from pipeline.features.importers.base import SourceItems
from pipeline.features.importers.scan import CAPTIONS
from pipeline.features.store import FeatureStore, StoreError, provenance
from pipeline.files.atomic import replacing, write_text
from pipeline.manifest import Manifest, Split, dataset
from pipeline.parts.errors import InputError

BATCH = 64  # images in memory at once
ALL = "all"
"""What files are called that hold every split."""
OnImages = Callable[[int], object]


def _chosen(store: FeatureStore, manifest: Manifest, split: str | None) -> tuple[FeatureStore, np.ndarray, list[str]]:
    """The store, which images of the split have features, and the files of those without."""
    store = store.require(manifest)
    rows = np.arange(len(manifest.images)) if split is None else manifest.split(split).store_rows
    store.require_extracted(rows)
    done = store.done[rows]
    if not done.any():
        which = f"the split {split}" if split else "the manifest"
        raise InputError(f"{store.path}: every image of {which} failed, see its failures.csv")
    return store, rows[done], manifest.images["file"].to_numpy()[rows[~done]].tolist()


def _made_from(store: FeatureStore, manifest: Manifest, split: str, **more: Any) -> str:
    """What an export was made of, as JSON, which tells whether it is there already."""
    form = {"format": more.pop("form")} if "form" in more else {}
    return json.dumps({**form, "store": store.identity, **provenance(store), "dataset": manifest.dataset,
                       "manifest": manifest.digest, "split": split, **more}, indent=1, ensure_ascii=False) + "\n"


def _is_same(record: Path, made_from: str, files: Iterable[Path]) -> bool:
    """Whether a record is of this export. Raises InputError where it is not, and some of the files exist."""
    same = record.exists() and record.read_bytes() == made_from.encode()
    if not same and (taken := next((file for file in files if file.exists()), None)):
        raise InputError(f"{taken}: is there, and not an export of this store and manifest; choose another --out")
    return same


@dataclass(frozen=True)
class Exported:
    """The content of an export."""

    name: str  # what the files call the split
    images: int  # n
    items: int  # N
    dimension: int  # D
    fewest: int  # the fewest valid items of an image
    captions_left_out: int  # how many captions come after an image's fifth
    images_left_out: list[str]  # the files of failed images
    written: bool = True  # false where the export existed already


def scan_name(split: str, manifest: Manifest) -> str:
    """A split's name in SCAN: val is `dev`; COCO's 5K test is `testall`, because SCAN's `test` is its first 1K."""
    if split == "test" and "coco_5k" in dataset(manifest.dataset).protocols:
        return "testall"
    return "dev" if split == "val" else split


def export(store: FeatureStore, manifest: Manifest, split: str, folder: Path, on_start: OnImages = lambda count: None,
           on_images: OnImages = lambda count: None) -> Exported:
    """Write a split into a folder. An existing export of the same store and manifest is left unchanged."""
    store, rows, failed = _chosen(store, manifest, split)
    kept = manifest.split(split).only(store.done[manifest.split(split).store_rows])
    captions, counts = _first_captions(kept, manifest), store.counts[rows]
    exported = Exported(scan_name(split, manifest), len(counts), store.layout.items, store.layout.dimension,
                        int(counts.min()), len(kept.captions) - len(captions), failed)
    texts = {"made_from.json": _made_from(store, manifest, split, holds=asdict(exported)),
             "ids.txt": "".join(f"{number}\n" for number in kept.image_ids),
             "caps.txt": "".join(f"{' '.join(caption.split())}\n" for caption in captions)}
    names = [*texts, "ims.npy", *(["counts.npy"] if exported.fewest < exported.items else [])]
    files = {name: folder / f"{exported.name}_{name}" for name in names}
    if _is_same(files["made_from.json"], texts["made_from.json"], files.values()) and all(
            file.exists() for file in files.values()):
        return replace(exported, written=False)
    on_start(len(counts))
    _write(files, texts, store, rows, on_images)
    return exported


def _first_captions(split: Split, manifest: Manifest) -> list[str]:
    """Five captions an image, in the images' order."""
    counts = np.bincount(split.caption_image, minlength=len(split.image_ids))
    if counts.min() < CAPTIONS:
        row = int(np.argmin(counts))
        raise InputError(f"{manifest.images['file'][split.store_rows[row]]}: has {counts[row]} captions, SCAN's layout "
                         f"holds {CAPTIONS} of every image; export a split that has them")
    order = np.argsort(split.caption_image, kind="stable")
    first = np.cumsum(counts) - counts
    return [split.captions[place] for start in first for place in order[start:start + CAPTIONS]]


def _write(files: dict[str, Path], texts: dict[str, str], store: FeatureStore, rows: np.ndarray,
           on_images: OnImages) -> None:
    """Write every file beside its place; all of them take their places at the end."""
    with ExitStack() as stack:
        # The last that is opened is the first in its place, the provenance: what is there has one.
        partial = {name: stack.enter_context(replacing(file)) for name, file in reversed(files.items())}
        shape = (len(rows), store.layout.items, store.layout.dimension)
        with partial["ims.npy"].open("wb") as file:  # not through a memory map: on a full disk that kills the process
            npy_format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
            for start in range(0, len(rows), BATCH):
                batch, _ = store.read(rows[start:start + BATCH])
                file.write(batch.astype("<f4").data)
                on_images(len(batch))
        for name, text in texts.items():
            partial[name].write_bytes(text.encode())
        if "counts.npy" in partial:
            with partial["counts.npy"].open("wb") as file:
                np.save(file, store.counts[rows])


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
    if "boxes" not in store.layout.extras:
        raise StoreError(f"{store.path}: has no boxes, which a TSV of regions needs; export folder does without")
    if not store.columns("sizes")[rows].all():
        raise StoreError(f"{store.path}: does not know the size of every image, which a TSV of regions needs; export "
                         "folder does without")
    labels = {"object", "object_score", "attribute", "attribute_score"} <= set(store.layout.extras)
    file, record = folder / f"{split or ALL}.tsv", folder / f"{split or ALL}_made_from.json"
    made_from = _made_from(store, manifest, split or ALL, form="butd-tsv", left_out=left_out)
    same = _is_same(record, made_from, [file])
    done = ExportedImages(file, len(rows), left_out, not same)
    if same and file.exists():
        return done
    on_start(len(rows))
    with replacing(file) as partial, partial.open("wb") as lines:
        for number, name, image in _images(store, manifest, rows):
            lines.write(_line(number, name, image, butd_tsv.LXMERT if labels else butd_tsv.ANDERSON))
            on_images(1)
    write_text(record, made_from)
    return done


def export_folder(store: FeatureStore, manifest: Manifest, split: str | None, folder: Path,
                  on_start: OnImages = lambda count: None, on_images: OnImages = lambda count: None) -> ExportedImages:
    """Write an .npz for each image of a split. An interrupted export is resumed."""
    store, rows, left_out = _chosen(store, manifest, split)
    names = {row: PurePosixPath(manifest.images["file"][row]) for row in rows.tolist()}
    if out := next((name for name in names.values() if name.is_absolute() or ".." in name.parts), None):
        raise InputError(f"the manifest's file {str(out)!a} leaves the folder; make the manifest again")
    files = {row: folder / name.with_suffix(".npz") for row, name in names.items()}
    if len(set(files.values())) < len(files):
        raise InputError("two images have the same name but for the suffix; export butd-tsv, which names them by id")
    record = folder / f"{split or ALL}_made_from.json"
    made_from = _made_from(store, manifest, split or ALL, form="folder", left_out=left_out)
    _is_same(record, made_from, files.values())
    write_text(record, made_from)
    left = np.array([row for row in rows.tolist() if not files[row].exists()], np.int64)
    on_start(len(left))
    for row, (_, _, image) in zip(left.tolist(), _images(store, manifest, left), strict=True):
        beside = {member: image.extras[name] for member, name in EXTRAS.items() if name in image.extras}
        if "bbox" in beside:
            beside["num_bbox"] = np.array(len(image.features))
        if all(image.size):
            beside |= {"image_w": np.array(image.size[0]), "image_h": np.array(image.size[1])}
        with replacing(files[row], durable=False) as partial, partial.open("wb") as file:
            np.savez(file, x=image.features, **beside)  # type: ignore[arg-type]
        on_images(1)
    return ExportedImages(folder, len(rows), left_out, bool(len(left)))


def _images(store: FeatureStore, manifest: Manifest, rows: np.ndarray
            ) -> Iterator[tuple[int, str, SourceItems]]:
    """The id, the file and the items of each image."""
    numbers, files = manifest.images["image_id"].to_numpy(), manifest.images["file"].to_numpy()
    sizes = store.columns("sizes")
    for row in rows.tolist():
        features, extras = store.items(row)
        width, height = sizes[row].tolist()
        yield int(numbers[row]), files[row], SourceItems(features.astype(np.float32), extras, (width, height))


def _line(number: int, file: str, image: SourceItems, columns: tuple[str, ...]) -> bytes:
    """A row. LXMERT's users look images up by file name, bottom-up-attention's by number."""
    values: dict[str, Any] = {
        "image_id": number, "img_id": PurePosixPath(file).stem, "image_w": image.size[0],
        "img_w": image.size[0], "image_h": image.size[1], "img_h": image.size[1], "num_boxes": len(image.features),
        "features": base64.b64encode(image.features.astype("<f4").tobytes()).decode(),
        **{column: base64.b64encode(image.extras[name].astype(kind).tobytes()).decode()
           for column, (name, kind, _) in butd_tsv.EXTRAS.items() if name in image.extras}}
    return "\t".join(str(values[column]) for column in columns).encode() + b"\n"
