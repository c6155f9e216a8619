"""The format of a feature store on disk, and its record of how it was made.

    STORE.zarr/
      zarr.json       the group; its attributes hold the sizes, and a format number
      record.json     the record, as of every artefact: what made these features of which images,
                      the code, machines and libraries, and digests of the files that describe them
      features/       [I, N, D] float16 or float32; a file per shard of S rows, an inner chunk per
                      row, padding 0
      counts/         [I] int32, valid items of each row; 0 where it failed
      status/         [I] uint8, PENDING, DONE or FAILED
      ids/            [I] int64, the id of the image, clip or caption of each row
      sizes/          [I, 2] int32, width and height of the decoded image in pixels; 0, 0 where
                      there is none
      bytes/          [I] int64, size of the file, or of the caption, that the features were made
                      from
      boxes/, ...     [I, N, ...] what else the engine stores beside its features
      ledger/         a JSON file for each finished shard, written after the shard's data:
                      checksums, also of what its rows were made from, and failures: a piece of
                      the store, by which an interrupted run is resumed and a grown store linked
      failures.csv    what failed and why

Every array is divided into shards at the same rows, so a shard has one owner, and any zarr library
can read the store. A row is an image, clip or caption of the manifest, in its order; where only
some are extracted, the store has only these.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import numpy as np
import numpy.typing as npt

from pipeline.foundation.artefacts import Record, Reference, Request, Versions, record as records
from pipeline.foundation.files import archives, parsing, regular
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest.sources import Kind
from pipeline.foundation.parts.errors import InputError, refusing, similar

FORMAT = 4
KIND = "features"
# The keys of a fingerprint that name the ids; the others say what makes their features.
OF_IDS = ("dataset", "ids")
# Whose versions a store's record names.
LIBRARIES = (
    "vse-pipeline",
    "torch",
    "torchvision",
    "timm",
    "pillow",
    "zarr",
)
PENDING, DONE, FAILED = 0, 1, 2
ABSENT = -1  # the row of an id that is not in the store
MOST_SHARDS = 1_000_000  # of a store; each is a file in several folders
MOST_VALUES = 1_000_000_000  # of an image's items, and rows of a shard: what memory holds
# Arrays of a few bytes per row: one plain chunk per shard. Features and extras have an inner chunk
# per row.
PLAIN: dict[str, tuple[tuple[int, ...], str]] = {
    "counts": ((), "int32"),
    "status": ((), "uint8"),
    "sizes": ((2,), "int32"),
    "bytes": ((), "int64"),
}


class StoreError(InputError):
    """The store does not match its own record, or is not the requested one. The message says where
    and what to do.
    """


@dataclass(frozen=True)
class Extra:
    """An array stored beside the features."""

    shape: tuple[int, ...]  # an item's shape, () for one number
    dtype: str  # its dtype


@dataclass(frozen=True)
class StoreLayout:
    """Sizes of a store."""

    total: int  # I, the rows
    items: int  # N, the most items of a row
    dimension: int  # D
    shard_rows: int  # S, rows in a shard
    compressor: str = "none"
    # Name -> array stored beside the features
    extras: Mapping[str, Extra] = field(default_factory=dict)
    dtype: str = "float16"  # The features' dtype, "float16" or "float32"
    kind: Kind = "images"  # What the ids are of: images, clips or captions

    @property
    def shards(self) -> int:
        """The number of shards."""
        return -(-self.total // self.shard_rows)

    @property
    def noun(self) -> str:
        """What messages call one of the ids' images, clips or captions."""
        return self.kind.removesuffix("s")

    def rows(self, shard: int) -> range:
        """The rows of the shard of this number."""
        first = shard * self.shard_rows
        return range(first, min(first + self.shard_rows, self.total))

    def places(self, shard: int) -> np.ndarray:
        """The rows of the shard of this number, int64, to index arrays with."""
        rows = self.rows(shard)
        return np.arange(rows.start, rows.stop)

    def recorded(self) -> dict[str, Any]:
        """The sizes as zarr.json holds them, in JSON values."""
        return asdict(self)

    def row(self) -> dict[str, Any]:
        """Return what a row holds, without how many there are and how they are stored."""
        stored = ("total", "shard_rows", "compressor")
        return {key: value for key, value in self.recorded().items() if key not in stored}

    def arrays(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The arrays that a shard's owner writes: name -> (shape of one row's part, dtype)."""
        arrays: dict[str, tuple[tuple[int, ...], str]] = {}
        arrays["features"] = ((self.items, self.dimension), self.dtype)
        arrays |= PLAIN
        for name, extra in self.extras.items():
            arrays[name] = ((self.items, *extra.shape), extra.dtype)
        return arrays


def find(ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The row of each wanted id, int64 [M], by the ids [I] of all rows; ABSENT for none."""
    if not len(ids):
        return np.full(len(wanted), ABSENT)
    order = np.argsort(ids, kind="stable")
    sorted_ids = ids[order]
    place = np.minimum(np.searchsorted(sorted_ids, wanted), len(ids) - 1)
    return np.where(sorted_ids[place] == wanted, order[place], ABSENT)


class FeaturesRequest(Request):
    """What the values of a store depend on besides the images, clips or captions themselves."""

    kind: ClassVar[str] = KIND
    made: dict[str, Any]  # The engine with its network and settings, or the format and its files
    row: dict[str, Any]  # What a row holds, see `StoreLayout.row`
    made_by: dict[str, int | str]  # The code, {} if another code base made the features

    @classmethod
    def of_record(cls, record: Record, versions: Versions) -> Self:
        """The request of a store's record, for code of these versions."""
        made = dict(record.request)
        row = made.pop("row", {})
        return cls(made=made, row=row, made_by=dict(versions))

    def versions(self) -> Versions:
        """The versions of the code that makes the features, as `artefacts.versions`."""
        return self.made_by

    def recorded(self) -> dict[str, Any]:
        """The request as JSON values, those of `made` beside `row`."""
        values = self.model_dump(mode="json")
        return {**values["made"], "row": values["row"]}


def made_from(fingerprint: Mapping[str, Any], layout: StoreLayout) -> dict[str, Reference]:
    """What a store is made from, for its record: all images, clips or captions of a data set."""
    reference = Reference(
        kind=layout.kind,
        name=str(fingerprint.get("dataset", "")),
        identity=str(fingerprint.get("ids", "")),
    )
    return {layout.kind: reference}


def fingerprint_of(record: Record) -> dict[str, Any]:
    """All that a store's values depend on, by its record: what made them, data set and ids."""
    fingerprint = {key: value for key, value in record.request.items() if key != "row"}
    for reference in record.made_from.values():
        named = {"dataset": reference.name, "ids": reference.identity}
        fingerprint |= {key: value for key, value in named.items() if value}
    return fingerprint


def described(layout: StoreLayout) -> list[str]:
    """The files of a store that its record has digests of: all but its shards and its ledger."""
    of_arrays = [f"{name}/zarr.json" for name in layout.arrays()]
    return ["zarr.json", "failures.csv", "ids", *of_arrays]


def create(folder: Path, layout: StoreLayout, ids: np.ndarray) -> None:
    """Write a store without shards, and without a record, into an empty folder."""
    import zarr
    from zarr.codecs import ZstdCodec

    if ids.shape != (layout.total,):
        raise ValueError(f"ids: expected shape ({layout.total},), got {ids.shape}")
    attributes = {"format": FORMAT, "layout": layout.recorded()}
    compressor = None
    if layout.compressor == "zstd":
        compressor = ZstdCodec(level=1)
    group = zarr.create_group(folder, zarr_format=3, attributes=attributes)
    for name, (shape, dtype) in layout.arrays().items():
        whole = (layout.shard_rows, *shape)
        by_item = name not in PLAIN
        group.create_array(
            name,
            shape=(layout.total, *shape),
            dtype=dtype,
            chunks=(1, *shape) if by_item else whole,
            shards=whole if by_item else None,
            filters=None,
            fill_value=unused_value(dtype),
            compressors=compressor if by_item else None,
            config={"write_empty_chunks": True},
        )
    array_of_ids = group.create_array(
        "ids", shape=ids.shape, chunks=ids.shape, dtype="int64", compressors=None, filters=None
    )
    array_of_ids[:] = ids
    (folder / "ledger").mkdir()


def libraries() -> dict[str, str]:
    """The versions of the libraries that features are made with, for a store's record."""
    installed = {}
    for name in LIBRARIES:
        # Features of other code bases are imported without torch.
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def made_by(fingerprint: Mapping[str, Any]) -> dict[str, Any]:
    """What made a store's features, whatever they were made of: a fingerprint without its ids."""
    return {name: value for name, value in fingerprint.items() if name not in OF_IDS}


def maker(fingerprint: Mapping[str, Any]) -> str:
    """Digest (SHA-256) what made a store's features, without the ids: it stays the same when the
    store grows.
    """
    return digest({name: value for name, value in fingerprint.items() if name != "ids"})


def imported(fingerprint: Mapping[str, Any]) -> bool:
    """Tell whether another code base made a store's features."""
    return "format" in fingerprint


def unused_value(dtype: npt.DTypeLike) -> float | int:
    """Choose a fill value that no data has."""
    # zarr leaves out inner chunks that hold nothing but the fill value, even when asked not to, and
    # reads a missing chunk as that value. With this choice a chunk of zeros is written, and a lost
    # chunk is noticed.
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return float("nan")
    return int(np.iinfo(kind).min or np.iinfo(kind).max)


def _readable(path: Path) -> AbstractContextManager[None]:
    return refusing(
        (OSError, ValueError, KeyError, TypeError, AttributeError),
        f"{path}: not a feature store of this pipeline",
        StoreError,
    )


def has_ledger(path: Path) -> bool:
    """Whether shards of a store are at a path, described or not."""
    return (path / "ledger").is_dir()


def is_undescribed(path: Path) -> bool:
    """Whether shards are at a path whose description was removed, because it was damaged."""
    return has_ledger(path) and not (path / "zarr.json").exists()


def missing(path: Path) -> str:
    """The message for a store that does not exist, or is packed, or has no description."""
    if is_undescribed(path):
        return f"{path}: has lost zarr.json; run the command that made the store again, which writes it"
    archive = archives.named(path)
    if archive:
        return f"{path}: is {archive}"
    return (
        f"{path}: no feature store there; make it with `pipeline extract` or `pipeline store "
        f"import`{similar(path)}"
    )


def attributes(path: Path) -> dict[str, Any]:
    """Read the attributes of a store's zarr.json."""
    archive = archives.named(path)
    if archive:
        raise StoreError(f"{path}: is {archive}")
    with _readable(path), refusing(FileNotFoundError, lambda error: missing(path), StoreError):
        return dict(parsing.from_json(regular.text(path / "zarr.json"))["attributes"])


def _require_possible(layout: StoreLayout) -> None:
    """Raise ValueError for sizes, types and names that no store has, before they are used."""
    sizes = (layout.items, layout.dimension, layout.shard_rows)
    if not all(type(count) is int and count >= 0 for count in (layout.total, *sizes)):
        raise ValueError("counts")
    if 0 in sizes:
        raise ValueError("counts")
    if layout.shards > MOST_SHARDS:
        raise ValueError("shards")
    if max(layout.items * layout.dimension, layout.shard_rows) > MOST_VALUES:
        raise ValueError("values of a row, or rows of a shard")
    if layout.compressor not in ("none", "zstd") or layout.dtype not in ("float16", "float32"):
        raise ValueError("values")
    if layout.kind not in get_args(Kind):
        raise ValueError("kind")
    taken = {"features", "ids", "ledger", *PLAIN}
    for name, extra in layout.extras.items():
        if not name.isidentifier() or name in taken:
            raise ValueError(name)
        if not all(type(size) is int and size > 0 for size in extra.shape):
            raise ValueError(name)
        if np.dtype(extra.dtype).kind not in "fiub":
            raise ValueError(name)


def read_header(path: Path) -> tuple[StoreLayout, dict[str, Any]]:
    """The layout at a path, in zarr.json, and the fingerprint, in record.json; StoreError if edited
    or no store's.
    """
    header = attributes(path)
    with _readable(path):
        recorded = header["layout"]
        extras = {}
        for name, extra in recorded["extras"].items():
            extras[name] = Extra(tuple(extra["shape"]), extra["dtype"])
        layout = StoreLayout(**{**recorded, "extras": extras})
    with refusing(InputError, str, StoreError):
        record = records.require(path, "zarr.json")
    if header.get("format") != FORMAT:
        raise StoreError(
            f"{path}: store format {header.get('format')}, this version reads {FORMAT}; extract again"
        )
    with _readable(path):
        _require_possible(layout)
    return layout, fingerprint_of(record)
