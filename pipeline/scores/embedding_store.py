"""Embeddings on disk: unit vectors of images and captions, their ids, and the head that made them.

    NAME.zarr/
      zarr.json             attributes: made_from, as in similarity stores, with digests of the arrays; made_with
      image_ids/            [I] int64
      caption_ids/          [C] int64
      caption_image/        [C] int64, each caption's image as a row of the image embeddings
      image_embeddings/     [I, d] float32, in one chunk without a codec, to be memory-mapped
      caption_embeddings/   [C, d] float32, likewise

A head's similarity store holds the same arrays beside its matrix, and can be read here too. Whoever reads vectors gets
those that were written: ids and vectors are compared with their digests before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pipeline.compute import machine
from pipeline.errors import InputError
from pipeline.files.atomic import creating
from pipeline.files.digest import of_files
from pipeline.retrieval.blocks import Ids
from pipeline.scores import contents, ids

if TYPE_CHECKING:
    import zarr

    from pipeline.files.remembered import Remembered
    from pipeline.retrieval import Embeddings


@dataclass(frozen=True)
class EmbeddingStore:
    """Embeddings, open for reading: ids in memory, vectors memory-mapped.

    Attributes:
        path: The store.
        image_ids: Int64 [I].
        caption_ids: Int64 [C].
        caption_image: Int64 [C], each caption's image as a row.
        made_from: What made them.
        remembered: A cache of digests, used while files are unchanged; None to digest them each time.
    """

    path: Path
    image_ids: Ids
    caption_ids: Ids
    caption_image: Ids
    made_from: dict[str, Any]
    remembered: Remembered | None = None

    @classmethod
    def open(cls, path: Path, remembered: Remembered | None = None) -> EmbeddingStore:
        """Open a store."""
        import zarr

        try:
            group = zarr.open_group(path, mode="r", zarr_format=3)
            image_ids, caption_ids, caption_image = ids.read(path, group)
            made_from: dict[str, Any] = dict(group.attrs["made_from"])  # type: ignore[arg-type]
            return cls(path, image_ids, caption_ids, caption_image, made_from, remembered)
        except (FileNotFoundError, KeyError, ValueError, TypeError):
            raise InputError(f"{path}: no embeddings there; make them with `pipeline score` or `pipeline embed`"
                             ) from None

    @property
    def checkpoints(self) -> list[str]:
        """SHA-256 of the head's checkpoint. Embeddings of one head lie in one space."""
        return [member["checkpoint"] for member in self.made_from["members"]]

    def embeddings(self) -> Embeddings:
        """Map all vectors."""
        from pipeline.retrieval import Embeddings

        return Embeddings(self.vectors("image"), self.vectors("caption"))

    def vectors(self, side: Literal["image", "caption"]) -> np.ndarray:
        """Map the vectors of one side."""
        name, length = f"{side}_embeddings", len(self.image_ids if side == "image" else self.caption_ids)
        import zarr

        from pipeline.retrieval.zarr_pieces import refuse_missing

        try:
            array = zarr.open_array(self.path / name, mode="r", zarr_format=3)
        except (FileNotFoundError, ValueError):
            raise InputError(f"{self.path}: holds no embeddings; those of a single head do, see `pipeline score`"
                             ) from None
        if array.shape[0] != length:
            raise InputError(f"{self.path}/{name}: {array.shape[0]} vectors for {length} ids; make it again")
        refuse_missing(array, f"embeddings {name}")
        digests = self.remembered.of_files if self.remembered else of_files
        contents.require_vectors(self.path, self.made_from, (*ids.IDS, name), digests)
        return np.memmap(_bytes_of(self.path / name), array.dtype, "r", shape=array.shape)


def holds_no_scores(path: Path) -> bool:
    """Recognise a store that holds embeddings and no matrix of similarities."""
    return (path / "image_embeddings").is_dir() and not (path / "similarity").exists()


def refuse_other(path: Path) -> None:
    """Check that a store may be written: that the path is free, or holds embeddings."""
    if path.exists() and not (path / "image_embeddings").is_dir():
        raise InputError(f"{path}: exists and holds no embeddings; move it, or write elsewhere")


@contextmanager
def writing(path: Path, image_ids: Ids, caption_ids: Ids, caption_image: Ids, dimension: int,
            made_from: Mapping[str, Any]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Write a store. It appears complete when the block ends without an error, and replaces an older one."""
    import zarr

    refuse_other(path)
    with creating(path) as making:
        group = zarr.create_group(making, zarr_format=3, attributes={"made_with": machine.record()})
        for name, values in zip(ids.IDS, (image_ids, caption_ids, caption_image), strict=True):
            array = group.create_array(name, shape=values.shape, dtype="int64", chunks=values.shape, compressors=None,
                                       filters=None, config={"write_empty_chunks": True})
            array[:] = values
        maps = [_map(group, making, name, (length, dimension))
                for name, length in (("image_embeddings", len(image_ids)), ("caption_embeddings", len(caption_ids)))]
        yield maps[0], maps[1]
        for each in maps:
            each.flush()
        group.attrs["made_from"] = {**made_from, contents.KEY: contents.of(making)}


def _map(group: zarr.Group, folder: Path, name: str, shape: tuple[int, int]) -> np.memmap:
    group.create_array(name, shape=shape, dtype="float32", chunks=shape, compressors=None, filters=None)
    file = _bytes_of(folder / name)
    file.parent.mkdir(parents=True, exist_ok=True)
    return np.memmap(file, np.float32, "w+", shape=shape)


def _bytes_of(array: Path) -> Path:
    """The only chunk of a matrix: without a codec it is the array's bytes as they are."""
    return array / "c" / "0" / "0"
