"""The manifest: one table with a row for each caption, which lists all images and captions and
their pairs.

Columns are read from its file when they are needed, some rows at a time. Images keep the order of
the annotation file, because COCO's five folds and "the first five captions of an image" are defined
by it. A caption finds its image by id, never by `5 * index`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from json.encoder import encode_basestring
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pipeline.foundation.artefacts import Reference
from pipeline.foundation.files import atomic, parsing, remote
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.gallery_file import GalleryFile, Kind
from pipeline.foundation.manifest.cache import ManifestCache
from pipeline.foundation.manifest.caption_inputs import CAPTION_INPUTS
from pipeline.foundation.manifest.columns import (
    AT_ONCE,
    CLIP,
    COLUMNS,
    LANGUAGE,
    NO_CAPTION,
    NO_IMAGE,
    PHOTOGRAPH,
    caption_inputs_of,
    columns_of,
)
from pipeline.foundation.manifest.split import Split, SplitName
from pipeline.foundation.manifest.table_file import TableFile, manifest_at, no_manifest
from pipeline.foundation.parts.errors import InputError, refusing

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

ROW_GROUP = 1 << 18  # rows of a part of the file, 20 MB

Keep = Callable[["pd.DataFrame"], "pd.DataFrame"]


@dataclass(frozen=True)
class Manifest:
    """Images, captions, and which caption belongs to which image."""

    # The table, or its file. It has a row for each caption; one that belongs to no image has the
    # image id NO_IMAGE and the file "", and comes after the others. An image that has no caption
    # has a row with the caption id NO_CAPTION and the caption "". The columns are image_id, file
    # (relative to the image folder), bytes (size on disk, or NO_FILE), split, caption_id, caption;
    # where files were read, photograph; with captions in several languages, language; with
    # further inputs of captions, those of `CAPTION_INPUTS`; where an image is a clip, kind, start
    # and end. The rows of an image are consecutive, images in the annotation file's order.
    source: pd.DataFrame | TableFile = field(repr=False)
    dataset: str  # The data set's name
    # The folder of the image files, in no digest. Unless it is absolute, it is saved relative to
    # the manifest's folder, so commands find the files from any working directory.
    images_folder: Path
    # Why captions were left out of it -> how many, see `pipeline.foundation.files.left_out`.
    left_out: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    # When its file was written, in nanoseconds; 0 for no file.
    written: int = field(default=0, repr=False, compare=False)
    # Its digests and its list of images, where they are kept beside its file; a copy with changes
    # has none.
    cache: ManifestCache = field(
        default_factory=ManifestCache, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.columns != [*columns_of(self.columns)]:
            optional = ", ".join([PHOTOGRAPH, LANGUAGE, *CAPTION_INPUTS])
            raise InputError(
                f"manifest: expected columns {', '.join(COLUMNS)} and perhaps {optional} and "
                f"{', '.join(CLIP)}, got {', '.join(map(str, self.columns))}"
            )

    @property
    def columns(self) -> list[str]:
        """The columns of the table, in order."""
        return list(self.source.columns)

    @property
    def caption_inputs(self) -> list[str]:
        """The columns with further inputs of captions, see `CAPTION_INPUTS`."""
        return caption_inputs_of(self.columns)

    @cached_property
    def table(self) -> pd.DataFrame:
        """All rows and columns, also the rows of images that have no caption."""
        if isinstance(self.source, TableFile):
            return _joined(self._batches(self.columns))
        return self.source

    def rows(self, columns: Sequence[str], keep: Keep = lambda rows: rows) -> pd.DataFrame:
        """The rows of some columns, one for each caption in order. keep: from some rows to those
        that are kept.
        """
        return _joined(map(keep, self._captions(columns)))

    def _captions(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        needed = [*dict.fromkeys([*columns, "caption_id"])]
        for batch in self._batches(needed):
            is_caption = batch["caption_id"] != NO_CAPTION
            if not is_caption.all():
                batch = batch[is_caption]
            yield batch[list(columns)]

    def _batches(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        rows = self.__dict__.get("table", self.source)  # the whole, where it was read
        if isinstance(rows, TableFile):
            yield from rows.read(columns)
            return
        for first in range(0, max(1, len(rows)), AT_ONCE):
            yield rows[list(columns)].iloc[first : first + AT_ONCE]

    @cached_property
    def images(self) -> pd.DataFrame:
        """A row for each image or clip: image_id, file, bytes, split; where known also photograph,
        kind, start, end.
        """
        # A feature store has its rows in this order.
        return self.cache.images(self._images)

    def _images(self) -> pd.DataFrame:
        columns = ["image_id", "file", "bytes", "split"]
        if PHOTOGRAPH in self.columns:
            columns.append(PHOTOGRAPH)
        batches = self._batches([*columns, *self._clip])
        once = _joined(rows[rows["file"] != ""].drop_duplicates("image_id") for rows in batches)
        return once.drop_duplicates("image_id", ignore_index=True)

    @property
    def captions(self) -> int:
        """How many captions there are."""
        return len(self.rows(["caption_id"]))

    @property
    def languages(self) -> list[str]:
        """The captions' languages in alphabetical order; [] if the manifest does not name them."""
        if LANGUAGE not in self.columns:
            return []
        return sorted(self.rows([LANGUAGE])[LANGUAGE].unique())

    @property
    def kind(self) -> Kind:
        """What the gallery items are."""
        return "video" if self._clip else "image"

    @property
    def noun(self) -> str:
        """What messages call a gallery item."""
        return "clip" if self._clip else "image"

    @property
    def _clip(self) -> list[str]:
        return [column for column in CLIP if column in self.columns]

    def gallery(
        self, folder: Path | None = None, rows: Sequence[int] | None = None
    ) -> list[GalleryFile]:
        """The file of each image or clip, of all or of some rows of `images`; folder: None for the
        manifest's.
        """
        images_folder = str(folder or self.images_folder)
        images = self.images[["file", *self._clip]]
        if rows is not None:
            images = images.iloc[list(rows)]
        files = [os.path.join(images_folder, file) for file in images["file"].tolist()]
        if not self._clip:
            return [*map(GalleryFile, files)]
        clips = images[[*CLIP]].itertuples(index=False, name=None)
        return [
            GalleryFile(file, kind, _seconds(start), _seconds(end))
            for file, (kind, start, end) in zip(files, clips, strict=True)
        ]

    def require_photographs(self, what: str) -> None:
        """Check that gallery items are photographs; else InputError, of the reader that `what`
        names.
        """
        if self.kind != "image":
            raise InputError(
                f"{what} reads photographs, and the data set {self.dataset} holds clips; extract the "
                "feature frame and train a head on it"
            )

    @cached_property
    def images_digest(self) -> str:
        """SHA-256 over ids and files, and what part of a file a clip is, in order."""
        # Feature stores record it, and each file's size beside its features.
        return self.cache.digest(
            "images", lambda: _digest([self.images[["image_id", "file", *self._clip]]])
        )

    @cached_property
    def captions_digest(self) -> str:
        """SHA-256 over ids and texts of the captions, in order."""
        return self.cache.digest(
            "captions", lambda: _digest(self._captions(["caption_id", "caption"]))
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 over all rows, with the photographs' checksums, and what was left out; not over
        any folder.
        """
        return self.cache.digest(
            "manifest", lambda: digest([_digest(self._batches(self.columns)), self.left_out])
        )

    @property
    def reference(self) -> Reference:
        """What artefacts that are made from it record. Equal rows have one identity, whoever wrote
        them.
        """
        return Reference(kind="manifest", name=self.dataset, identity=self.digest)

    def split(self, name: str) -> Split:
        """The images and captions of the split of a name, or of several, see `SplitName`;
        InputError for no images.
        """
        import numpy as np
        import pandas as pd

        split_names = SplitName(name).parts
        present_splits = self.images["split"].unique()
        missing_splits = [part for part in split_names if part not in present_splits]
        if missing_splits:
            raise InputError(
                f"manifest of {self.dataset}: no images in the split {missing_splits[0]!r}; "
                f"there are: {', '.join(present_splits)}; `pipeline manifest --draw-splits` draws them, if the "
                "annotations name none"
            )
        optional_columns = self.caption_inputs
        if LANGUAGE in self.columns:
            optional_columns = [LANGUAGE, *optional_columns]
        of_parts = self.rows(
            ["image_id", "split", "caption_id", "caption", *optional_columns],
            lambda rows: rows[rows["split"].isin(split_names)],
        )
        rows = of_parts
        if len(split_names) > 1:
            rows = pd.concat([of_parts[of_parts["split"] == part] for part in split_names])
        of_images = self.images["split"].to_numpy()
        store_rows = np.concatenate(
            [np.flatnonzero(of_images == split_name) for split_name in split_names]
        )
        image_ids = self.images["image_id"].to_numpy()[store_rows]
        without_image = (rows["image_id"] == NO_IMAGE).to_numpy()
        if without_image.any():  # joined splits have them between others
            rows = pd.concat([rows[~without_image], rows[without_image]])
            without_image = np.sort(without_image)
        image_rows = pd.Index(image_ids).get_indexer(rows["image_id"])
        is_lost = (image_rows < 0) & ~without_image
        if is_lost.any():
            image_of_two_splits = rows["image_id"].iloc[int(is_lost.argmax())]
            raise InputError(
                f"manifest of {self.dataset}: image {image_of_two_splits} is in the split {name} and in another one; "
                "make it again with `pipeline manifest`"
            )
        languages = None
        if LANGUAGE in rows.columns:
            languages = rows[LANGUAGE].to_numpy(str)
        return Split(
            name,
            store_rows,
            image_ids,
            rows["caption_id"].to_numpy(),
            image_rows.astype(np.int64),
            texts(rows["caption"]),
            languages,
            {column: texts(rows[column]) for column in self.caption_inputs},
        )

    def save(self, path: Path) -> Manifest:
        """Return this manifest, written to a path as a file, whole or not at all, beside which its
        digests are kept.
        """
        table = self.table.copy(deep=False)
        table.attrs = {
            "dataset": self.dataset,
            "images": self._seen_from(path.parent),
            "left_out": self.left_out,
        }
        if remote.address(path):
            with TemporaryDirectory() as folder:
                copy = Path(folder, path.name)
                table.to_parquet(copy, index=False, row_group_size=ROW_GROUP)
                remote.write(path, copy)
            return self
        with atomic.replacing(path) as partial:
            table.to_parquet(partial, index=False, row_group_size=ROW_GROUP)
        return replace(self, written=path.stat().st_mtime_ns)._with(ManifestCache(path))

    def _seen_from(self, folder: Path) -> str:
        """The images' folder as the manifest's file names it."""
        if remote.address(folder):
            return remote.absolute(self.images_folder).as_posix()
        images = self.images_folder
        if images.is_absolute() or remote.address(images):
            return images.as_posix()
        return Path(os.path.relpath(images, folder)).as_posix()

    @classmethod
    def load(cls, path: Path, computed: bool = False) -> Manifest:
        """The manifest saved at a path; InputError for a missing file or one that is not a
        manifest.

        If its file is unchanged, what is kept beside it is read from there, unless all is computed
        from the rows.
        """
        if remote.address(path):
            address = remote.address(path)
            with refusing(
                OSError, lambda error: f"{address}: no manifest can be read there ({error})"
            ):
                copy = remote.copy(path)
            return cls._of_file(copy, path, ManifestCache())
        if not path.is_file():
            # It brings pydantic, which help texts do without.
            from pipeline.foundation.manifest.dataset import refuse_unknown

            refuse_unknown(path.stem, path.parent.parent)
            raise InputError(
                f"{path}: no manifest there; make it with `pipeline manifest {path.stem}`"
            )
        written = path.stat().st_mtime_ns
        cache = ManifestCache(None if computed else path)
        return cls._of_file(path, path, cache, written)

    @classmethod
    def _of_file(cls, file: Path, path: Path, cache: ManifestCache, written: int = 0) -> Manifest:
        """Open a file that is at `path`, or was brought from there."""
        with manifest_at(path):
            table_file = TableFile(file, path)
            attributes = parsing.from_json(table_file.opened.schema_arrow.metadata[b"PANDAS_ATTRS"])
            images_folder = attributes["images"]
            dataset = attributes["dataset"]
            if not remote.address(images_folder):
                images_folder = os.path.normpath(path.parent / images_folder)
            if dataset in ("", "..") or PurePath(dataset).name != dataset:  # it names folders
                raise no_manifest(path, f"its data set {dataset!a} is no name")
            left_out = {}
            for reason, count in attributes["left_out"].items():
                left_out[parsing.text(reason)] = parsing.whole(count)
            manifest = cls(table_file, dataset, Path(images_folder), left_out, written)
            return manifest._with(cache)

    def _with(self, cache: ManifestCache) -> Manifest:
        object.__setattr__(self, "cache", cache)
        return self


def _joined(batches: Iterable[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    manifest_parts = list(batches)
    if len(manifest_parts) > 1:
        return pd.concat(manifest_parts, ignore_index=True)
    return manifest_parts[0].reset_index(drop=True)


def texts(column: pd.Series) -> np.ndarray:
    """A column of texts as an array of StringDType; few at a time become Python objects."""
    import numpy as np

    strings = np.empty(len(column), np.dtypes.StringDType())
    for first in range(0, len(column), AT_ONCE):
        rows = slice(first, first + AT_ONCE)
        strings[rows] = column.iloc[rows].to_numpy(object)
    return strings


def _seconds(value: float) -> float | None:
    return None if value != value else value  # NaN is not itself


def _digest(batches: Iterable[pd.DataFrame]) -> str:
    """SHA-256 of a JSON list a row."""
    writer_of_kind: dict[str, Callable[[Any], str]] = {"i": str, "f": json.dumps}
    hashed = hashlib.sha256()
    for batch in batches:
        columns = []
        for _, column in batch.items():
            write_cell = writer_of_kind.get(column.dtype.kind, encode_basestring)
            columns.append(map(write_cell, column.tolist()))
        rows_as_json = (f"[{', '.join(row)}]\n" for row in zip(*columns, strict=True))
        hashed.update("".join(rows_as_json).encode())
    return hashed.hexdigest()
