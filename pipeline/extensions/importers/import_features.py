"""Import a source: prepare the store, read the manifest's images in its order, write the
failures.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pipeline.extensions.importers.base import (
    UNKNOWN_SIZE,
    FeatureSource,
    OnFound,
    Place,
    SourceItems,
    UnusableItems,
    sampled,
)
from pipeline.extensions.importers.formats import FORMATS
from pipeline.foundation import artefacts
from pipeline.foundation.files import archives, atomic, unfetched
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.left_out import SHARE
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.sources import gallery_kind
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.make.features.extractors.given_boxes import SHARES, are_shares, outside
from pipeline.make.features.store import (
    Plan,
    Shard,
    StoreLayout,
    Wanted,
    exclusive,
    making,
    plan,
    writer,
)
from pipeline.make.features.store.layout import ABSENT, find

FRAMES = 20  # the most frames of a clip, as HGR and VSE∞ take them


# The suffixes of files of many images in a folder.
WHOLE = (".npy", ".hdf5", ".txt", ".tsv")


@dataclass(frozen=True)
class ImportJob:
    """An import: which source, of which format, into which store."""

    manifest: Manifest
    format: str  # A key of `FORMATS`
    paths: tuple[Path, ...]
    store: Path
    shard_images: int
    # The name under which the features are reported; None for a name from format and sizes.
    reported_as: str | None = None
    compressor: str = "none"
    dtype: str = "float16"
    # Whether an image that is missing or damaged ends the import.
    on_error: Literal["fail", "skip"] = "fail"
    # Whether a store with other content is refused or replaced.
    if_changed: Literal["refuse", "redo"] = "refuse"
    frames: int = FRAMES  # The most frames that a clip keeps; of photographs all items are kept
    # The largest share of entries that may be left out because they are damaged or repeat an image.
    left_out: float = SHARE

    def __post_init__(self) -> None:
        name = self.reported_as
        if name is not None and not (name.strip() and name.isprintable()):
            raise InputError(f"--network {name!r}: expected a name in one line")

    def index(self, on_found: OnFound) -> FeatureSource:
        """The indexed source, of a known format, else InputError; on_found: called with the number
        of images found.
        """
        if self.format not in FORMATS:
            raise InputError(f"format {self.format!r}: expected one of {', '.join(FORMATS)}")
        for path in self._few_files():
            what = unfetched.stand_in(path) or archives.named(path)
            if what:
                raise InputError(f"{path}: is {what}")
        source = FORMATS[self.format](self.paths, self.manifest, on_found)
        source.left_out.share = self.left_out
        with refusing(InputError, lambda error: f"{', '.join(map(str, self.paths))}: {error}"):
            source.left_out.check(source.entries)
        if self.manifest.kind == "video":
            source.counts = np.minimum(source.counts, self.frames)
        return source

    def _few_files(self) -> Iterator[Path]:
        """The source's files, unless each is of one image: of these the reader says it."""
        for path in self.paths:
            yield path
            if path.is_dir() and self.format != "folder":
                for file in sorted(path.iterdir()):
                    if file.suffix in WHOLE:
                        yield file

    def name(self, source: FeatureSource) -> str:
        """The features' name: `reported_as`, or one of the source's format and sizes such as
        butd-tsv-10-100x2048.
        """
        if self.reported_as:
            return self.reported_as
        counts = source.counts[source.counts > 0]
        ends = sorted({int(counts.min()), int(counts.max())})
        return f"{self.format}-{'-'.join(map(str, ends))}x{source.dimension}"

    def wanted(self, source: FeatureSource) -> Wanted:
        """The content of the store: all of the manifest's images, N the most items of one in the
        indexed source.
        """
        # The networks behind other code bases' features count as trained; their weights are
        # unknown.
        images = self.manifest.images
        fingerprint: dict[str, Any] = {}
        if self.manifest.kind == "video":
            fingerprint["frames"] = self.frames
        fingerprint |= {
            "dataset": self.manifest.dataset,
            "ids": self.manifest.images_digest,
            "format": self.format,
            "version": artefacts.version(f"importers/{self.format}"),
            "recipe": self.name(source),
            "source": sampled(source.files),
            "weights": "unknown",
            "trained": True,
        }
        layout = StoreLayout(
            len(images),
            int(source.counts.max()),
            source.dimension,
            min(self.shard_images, len(images)),
            self.compressor,
            source.extras,
            self.dtype,
            kind=gallery_kind(self.manifest),
        )
        ids = images["image_id"].to_numpy()
        sizes = images["bytes"].to_numpy()
        return Wanted(ids, sizes, fingerprint, layout)


@dataclass(frozen=True)
class Imported:
    """The outcome of an import."""

    images: int  # how many images were written now
    failed: Mapping[int, str]  # row -> reason, of all failed images of the store
    reported_as: str  # the name under which the features are reported
    notes: list[str]  # lines for the user


def import_features(
    job: ImportJob,
    on_found: OnFound = lambda count: None,
    on_start: OnFound = lambda count: None,
    on_images: OnFound = lambda count: None,
) -> Imported:
    """The outcome of a job, which writes what a store lacks from a source. A finished store is left
    unchanged.

    on_found, on_start, on_images: called with the number of images that were found in the source
        since the last call, with that to be written, and with that written since.

    Raises:
        InputError: If the source does not fit the manifest, lacks images or holds damaged ones that
            must not be skipped.
    """
    with exclusive(job.store):
        atomic.put_back(job.store.resolve())
        source = job.index(on_found)
        _check_whole(job, source)
        files = job.manifest.images["file"].tolist()
        wanted = job.wanted(source)
        with making(job.store, wanted, plan(job.store, wanted), job.if_changed) as (store, todo):
            on_start(todo.count)
            for shard in _shards(job, source, todo):
                writer.write_shard(store, todo.layout, shard, digest(wanted.fingerprint))
                rows_there = todo.rows_there[todo.layout.places(shard.number)]
                on_images(int((rows_there == ABSENT).sum()))
            rows = find(todo.ids, wanted.ids)
            failed = writer.write_failures(store, todo.layout, files, rows)
    if failed and job.on_error == "fail":
        row, reason = min(failed.items())
        raise InputError(
            f"{job.store}: an earlier import left out {counted(len(failed), 'image')}, the first "
            f"{files[row]} ({reason}); accept that with --on-error skip, or repair the source and "
            "import again with --if-changed redo"
        )
    listed = job.store.with_name(f".{job.store.stem}.left_out.csv")
    source.left_out.save(listed)
    notes = [f"read as {source.title}"] if source.title else []
    if source.repeated:
        repeated = counted(source.repeated, source.left_out.noun)
        notes.append(f"{repeated} repeated with the same features; the first of each counts")
    notes += source.left_out.lines(listed)
    notes += source.notes
    return Imported(todo.count, failed, job.name(source), notes)


def _check_whole(job: ImportJob, source: FeatureSource) -> None:
    """Note the images that the source lacks; raise InputError if they must not be skipped, or if it
    has no others.
    """
    for row in np.flatnonzero(source.counts == 0).tolist():
        source.faults.setdefault(row, "the source has no features of it")
    fails = job.on_error == "fail"
    if not source.faults or (source.counts.any() and not fails):
        return
    row, reason = min(source.faults.items())
    images = job.manifest.images
    advice = ["complete the source"]
    if fails:
        advice[0] += ", or leave them out with --on-error skip"
    advice += source.notes
    raise InputError(
        f"{', '.join(map(str, job.paths))}: {len(source.faults):,} of {len(source.counts):,} images "
        f"are missing or damaged, the first {images['file'][row]} (id {images['image_id'][row]}): "
        f"{reason}; {'; '.join(advice)}"
    )


def _shards(job: ImportJob, source: FeatureSource, todo: Plan) -> Iterator[Shard]:
    ids = job.manifest.images["image_id"].to_numpy()
    sizes = job.manifest.images["bytes"].to_numpy()
    images = todo.places_of_rows(ids)
    for number in todo.pending:
        shard = Shard.empty(todo.layout, number)
        shard.take(job.store, todo.rows_there[todo.layout.places(number)])
        for row in shard.rows:
            if todo.rows_there[row] != ABSENT:
                continue
            image = int(images[row])
            reason = source.faults.get(image)
            try:
                if reason is None:
                    items = _checked(source, image, job)
                    shard.fill(row, items.features, items.size, items.extras, int(sizes[image]))
            except UnusableItems as error:
                reason = f"{source.places[image]}, id {ids[image]}: {error}"
                if job.on_error == "fail":
                    raise InputError(
                        f"{reason}; repair the source, or leave out what is damaged with --on-error skip"
                    ) from None
            if reason is not None:
                shard.fail(row, reason)
        yield shard


def _checked(source: FeatureSource, row: int, job: ImportJob) -> SourceItems:
    """Read an image and check it: as many items as the index found, all values finite and in the
    store's range.
    """
    items = int(source.counts[row])
    read = source.read_place(source.places[row])
    if read.extras.keys() != source.extras.keys():
        raise UnusableItems(
            f"expected beside the features {', '.join(source.extras) or 'nothing'}, got "
            f"{', '.join(read.extras) or 'nothing'}"
        )
    # From a long clip, frames are taken evenly as HGR chooses them: round(linspace(0, T − 1,
    # most)).
    if items < len(read.features) > job.frames and job.manifest.kind == "video":
        frames = np.round(np.linspace(0, len(read.features) - 1, job.frames)).astype(np.int64)
        extras = {name: values[frames] for name, values in read.extras.items()}
        read = SourceItems(read.features[frames], extras, read.size)
    _check(read.features, "features", (items, source.dimension), job.dtype)
    for name, extra in source.extras.items():
        _check(read.extras[name], name, (items, *extra.shape), extra.dtype)
    if "boxes" in read.extras:
        _check_boxes(read.extras["boxes"], read.size, source.places[row])
    return read


def _check_boxes(boxes: np.ndarray, size: tuple[int, int], place: Place) -> None:
    """Check that boxes are in pixels, which no image of a source can do without, and within the
    image's size, where it is known.
    """
    if are_shares(boxes):
        raise InputError(f"{place}: {SHARES}")
    if size == UNKNOWN_SIZE:
        return
    box = outside(boxes, size)
    if box is not None:
        raise UnusableItems(f"{box} by its width and height; correct the boxes or the size")


def _check(values: np.ndarray, name: str, shape: tuple[int, ...], dtype: str) -> None:
    if values.shape != shape:
        raise UnusableItems(f"{name}: expected shape {shape}, got {values.shape}")
    if values.dtype.kind not in "fiu":
        raise UnusableItems(f"{name}: expected numbers, got {values.dtype}")
    least = values.min()
    greatest = values.max()
    if not (np.isfinite(least) and np.isfinite(greatest)):
        item = np.unravel_index(int(np.argmin(np.isfinite(values))), shape)
        raise UnusableItems(f"{name}: expected finite values, got {values[item]} in item {item[0]}")
    most: Any
    if np.dtype(dtype).kind == "f":
        most = np.finfo(dtype).max
        beyond = max(greatest, -least)
    else:
        most = np.iinfo(dtype).max
        beyond = max(greatest, -int(least) - 1)
    if beyond > most:
        advice = "; import with --dtype float32" if dtype == "float16" else ""
        raise UnusableItems(
            f"{name}: expected values up to {most} as {dtype}, got {beyond}{advice}"
        )
