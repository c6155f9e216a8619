"""Write one split of a feature store in SCAN's format, which older code bases read (see `importers.scan`).

    {split}_ims.npy         [n, N, D] float32, padding zero
    {split}_ids.txt         an image id a line
    {split}_caps.txt        the first five captions of each image, a line each
    {split}_counts.npy      [n] int32, valid items of each image; only where they are not all N
    {split}_made_from.json  the store, the manifest, and what was left out
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.lib import format as npy_format

from pipeline.features.importers.scan_text import CAPTIONS
from pipeline.features.store import FeatureStore, provenance
from pipeline.files.atomic import replacing
from pipeline.manifest import Manifest, Split, dataset
from pipeline.parts.errors import InputError

BATCH = 64  # images in memory at once

OnImages = Callable[[int], object]


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
    store = store.require(manifest)
    whole = manifest.split(split)
    store.require_extracted(whole.store_rows)
    done = store.done[whole.store_rows]
    if not done.any():
        raise InputError(f"{store.path}: every image of the split {split} failed, see its failures.csv")
    kept = whole.only(done)
    captions = _first_captions(kept, manifest)
    counts = store.counts[kept.store_rows]
    failed = manifest.images["file"].to_numpy()[whole.store_rows[~done]].tolist()
    exported = Exported(scan_name(split, manifest), len(counts), store.layout.items, store.layout.dimension,
                        int(counts.min()), len(kept.captions) - len(captions), failed)
    made_from = {"store": store.identity, **provenance(store), "dataset": manifest.dataset,
                 "manifest": manifest.digest, "split": split, "holds": asdict(exported)}
    texts = {"made_from.json": json.dumps(made_from, indent=1, ensure_ascii=False) + "\n",
             "ids.txt": "".join(f"{number}\n" for number in kept.image_ids),
             "caps.txt": "".join(f"{' '.join(caption.split())}\n" for caption in captions)}
    names = [*texts, "ims.npy", *(["counts.npy"] if exported.fewest < exported.items else [])]
    files = {name: folder / f"{exported.name}_{name}" for name in names}
    if _is_there(files, texts["made_from.json"]):
        return replace(exported, written=False)
    on_start(len(counts))
    _write(files, texts, store, kept.store_rows, on_images)
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


def _is_there(files: dict[str, Path], made_from: str) -> bool:
    """Whether the export is there whole. Raises InputError where its place is taken by other files."""
    taken = [file for file in files.values() if file.exists()]
    if taken and (not files["made_from.json"].exists() or files["made_from.json"].read_bytes() != made_from.encode()):
        raise InputError(f"{taken[0]}: is there, and not an export of this store and manifest; "
                         "choose another --out")
    return len(taken) == len(files)


def _write(files: dict[str, Path], texts: dict[str, str], store: FeatureStore, rows: np.ndarray,
           on_images: OnImages) -> None:
    """Write every file beside its place; all of them take their places at the end."""
    with ExitStack() as stack:
        # The last that is opened is the first in its place, the provenance: what is there has one.
        partial = {name: stack.enter_context(replacing(file)) for name, file in reversed(files.items())}
        _write_features(partial["ims.npy"], store, rows, on_images)
        for name, text in texts.items():
            partial[name].write_bytes(text.encode())
        if "counts.npy" in partial:
            with partial["counts.npy"].open("wb") as file:
                np.save(file, store.counts[rows])


def _write_features(path: Path, store: FeatureStore, rows: np.ndarray, on_images: OnImages) -> None:
    """[n, N, D] float32, batch after batch. Not through a memory map: on a full disk that kills the process."""
    shape = (len(rows), store.layout.items, store.layout.dimension)
    with path.open("wb") as file:
        npy_format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
        for start in range(0, len(rows), BATCH):
            batch, _ = store.read(rows[start:start + BATCH])
            file.write(batch.astype("<f4").data)
            on_images(len(batch))
