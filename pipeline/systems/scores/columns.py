"""Matrices without ids, of another code base say, opened as systems by the user's description of their columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.evaluation import retrieval
from pipeline.files.digest import of_folder, sha256
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.systems.scores.layout import is_store
from pipeline.systems.scores.made import Made
from pipeline.systems.scores.system import System, Vectors

if TYPE_CHECKING:
    from pipeline.evaluation.retrieval.blocks import Ids


@dataclass(frozen=True)
class Columns:
    """The user's description of a matrix without ids: a manifest and its split, or captions an image."""

    manifest: Path | None = None  # the manifest's file; None if not given
    split: str | None = None  # the split; None for test
    captions_per_image: int | None = None  # how many captions each image has, in the images' order; None for five

    @property
    def known_split(self) -> str | None:
        """The split that the manifest is asked for; None without a manifest."""
        return None if self.manifest is None else self.split or "test"

    def of(self, shape: tuple[int, int]) -> tuple[Ids, Ids | None, Ids | None]:
        """Resolve the description for a matrix."""
        if self.manifest is None:
            each = self.captions_per_image or 5
            if shape[0] == each * shape[1] and each > 1:
                raise InputError(f"the matrix is {shape[0]} x {shape[1]}, captions x images: it is transposed; save "
                                 "its transpose, one row an image")
            if self.split is not None:
                raise InputError("--split goes with --manifest")
            return retrieval.consecutive_captions(shape, self.captions_per_image or 5), None, None
        if self.captions_per_image is not None:
            raise InputError("--captions-per-image goes without --manifest, which says how many each image has")
        split = Manifest.load(self.manifest).split(self.split or "test")
        expected = (len(split.image_ids), len(split.caption_ids))
        if shape == expected[::-1] != expected:
            raise InputError(f"the matrix is {shape[0]} x {shape[1]}, captions x images of the manifest's {split.name} "
                             "split: it is transposed; save its transpose, one row an image")
        if shape != expected:
            raise InputError(f"the matrix is {shape[0]} x {shape[1]}, the manifest's {split.name} split {expected[0]} "
                             f"images x {expected[1]} captions; rows are images, columns captions")
        return split.caption_image, split.image_ids, split.caption_ids


def of_matrix(path: Path, columns: Columns) -> System:
    """Open a store, or any matrix [I, C] as `.npy` or zarr."""
    if is_store(path):
        if columns != Columns():
            raise InputError(f"{path}: is a similarity store, which holds the ids of its captions; leave out "
                             "--manifest, --split and --captions-per-image")
        system = System.open_either(path)
        return system if isinstance(system.kind, Vectors) else system.check()
    scores = retrieval.as_similarity(path)
    return System.of(path.stem, scores, *columns.of(scores.shape), split=columns.known_split)


def of_vectors(images: Path, captions: Path, columns: Columns) -> System:
    """Take the inner products of two matrices of vectors, computed block by block."""
    scores = retrieval.Embeddings(images, captions)
    return System.of(images.stem, scores, *columns.of(scores.shape), split=columns.known_split)


def with_record(path: Path, columns: Columns) -> System:
    """Open a store of scores, or a plain matrix of a manifest with what is known of it in its record."""
    if is_store(path) or not path.exists():
        return System.open(path).check()
    if columns.manifest is None:
        raise InputError(f"{path}: is a plain matrix; name the --manifest whose images and captions it is of")
    system, known = of_matrix(path, columns), Manifest.load(columns.manifest)
    return replace(system, folder=path, made_from=Made({
        "dataset": known.dataset, "split": columns.split or "test", "manifest": known.digest, "recipe": None,
        "text": None, "seed": None, "ensemble": None, "features": {}, "untrained": [], "members": [],
        "file": of_folder(path) if path.is_dir() else sha256(path)}))
