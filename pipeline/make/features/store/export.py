"""Write a feature store in formats that other code bases read: what is exported, and the record
{split}_made_from.json beside it of the store, the manifest, and what was left out. Extensions
bring the formats.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.parts.lazy import LookupTable
from pipeline.make.features.store import FeatureStore, provenance

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
class Export:
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
        content = f"{images} of {self.split or 'all splits'}{if_kept(written)}"
        if self.left_out:
            content += f"; {len(self.left_out):,} failed images are left out, see {self.name}_made_from.json"
        return Exported(place, len(self.rows), self.left_out, written, content)


def if_kept(written: bool) -> str:
    """What follows the content of an export that was there already."""
    return "" if written else ", up to date"


@dataclass(frozen=True)
class Format:
    """A format that a store is written in."""

    write: Callable[[Export], Exported]
    needs_split: str = ""  # What is said where no split is named; "" if all can be written together


FORMATS: LookupTable[Format] = LookupTable({}, "store_formats")


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
    format_of_store = FORMATS.find(form)
    if format_of_store.needs_split and split is None:
        raise InputError(format_of_store.needs_split)
    store = store.require(manifest)
    rows = np.arange(len(manifest.images)) if split is None else manifest.split(split).store_rows
    store.require_extracted(rows)
    done = store.done[rows]
    if not done.any():
        which = f"the split {split}" if split else "the manifest"
        raise InputError(f"{store.path}: every image of {which} failed, see its failures.csv")
    left_out = manifest.images["file"].to_numpy()[rows[~done]].tolist()
    wanted = Export(
        form, store, manifest, split, folder, on_start, on_images, rows[done], left_out, root
    )
    return format_of_store.write(wanted)
