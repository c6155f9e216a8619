"""From a figure back to the features that it rests on, each step compared with the digest that the step above holds.

    result → similarity store → for each head: checkpoint, what it was trained on → feature store → network's weights,
    shard files → manifest → photograph
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pipeline import retrieval
from pipeline.errors import InputError
from pipeline.files.digest import digest, sha256
from pipeline.manifest import Manifest
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.store import FeatureStore, ledger
from pipeline.training import describe


class Places(Protocol):
    """Where things lie: `stages.layout.Layout`."""

    def manifest(self, dataset: str) -> Path: ...
    def features(self, dataset: str, feature: str) -> Path: ...
    def head(self, dataset: str, name: str) -> Path: ...
    def similarity(self, dataset: str, name: str) -> Path: ...


@dataclass(frozen=True)
class Step:
    """One link: a file or store, what of it is compared, what was recorded, and what is found; None: not there."""

    path: Path
    what: str
    recorded: str
    found: str | None

    @property
    def verdict(self) -> str:
        if self.found is None:
            return "not there"
        return "matches" if self.found == self.recorded else "differs"


@dataclass(frozen=True)
class Result:
    """A system's similarity store, what a result says made it, and the numbers it gives, by protocol."""

    path: Path
    made_from: Mapping[str, Any]
    numbers: Mapping[str, Mapping[str, Any]]


def trace(result: Result, places: Places, network: Callable[[FeatureStore], str], image: int | None = None,
          block_megabytes: float = 64) -> Iterator[Step]:
    """Yield the steps of a result, down to the shard files that hold the image with id `image`, if one is given.

    network: builds a feature store's network anew and gives the SHA-256 over its tensors. Raises InputError where
    the manifest is not there, or has no such image in the result's split.
    """
    made_from = result.made_from
    yield from _similarities(result, block_megabytes)
    manifest_path = places.manifest(made_from["dataset"])
    manifest = Manifest.load(manifest_path)
    row = None if image is None else _row(manifest, image, made_from["split"])
    for member in made_from["members"]:
        yield from _head(member, made_from, places)
        feature = _feature(member, made_from, places)
        yield from _features(places.features(made_from["dataset"], feature), member, network, row)
    yield Step(manifest_path, "digest of every row", made_from["manifest"], manifest.digest)
    if row is not None:
        entry = manifest.images.iloc[row]
        file = manifest.images_folder / entry["file"]
        yield Step(file, f"size of image {image}", f"{entry['bytes']} bytes",
                   f"{file.stat().st_size} bytes" if file.exists() else None)


def image_of(manifest: Manifest, caption: int) -> int:
    """The id of a caption's image. Raises InputError for an unknown caption."""
    found = manifest.table.loc[manifest.table["caption_id"] == caption, "image_id"]
    if not len(found):
        raise InputError(f"no caption {caption} in the manifest of {manifest.dataset}")
    return int(found.iloc[0])


def query(result: Result, image: int, caption: int | None) -> str:
    """In words, where the query's right item stands among all candidates: of a caption its image, of an image the best
    of its captions. Raises InputError where the store does not hold the query.
    """
    store = SimilarityStore.open(result.path)
    ranks = retrieval.rank(store.scores, store.caption_image)
    if caption is None:
        place, queries, size = np.flatnonzero(store.image_ids == image), ranks.i2t, len(store.caption_ids)
        told = f"image {image}: the best of its captions"
    else:
        place, queries, size = np.flatnonzero(store.caption_ids == caption), ranks.t2i, len(store.image_ids)
        told = f"caption {caption}: its image {image}"
    at = np.flatnonzero(np.isin(queries.query, place))
    if not len(at):
        raise InputError(f"{told}: is not among those that {result.path} scores")
    tied = int(queries.equal[at[0]])
    return f"{told} has rank {queries.greater[at[0]] + 1} of {size}" + (f", tied with {tied} others" if tied else "")


def _row(manifest: Manifest, image: int, split: str) -> int:
    rows = np.flatnonzero(manifest.images["image_id"] == image)
    if not len(rows) or manifest.images["split"].iloc[rows[0]] != split:
        there = f"is in its split {manifest.images['split'].iloc[rows[0]]}" if len(rows) else "is not in its manifest"
        raise InputError(f"image {image}: the result is of {manifest.dataset}'s {split} split, and the image {there}")
    return int(rows[0])


def _similarities(result: Result, block_megabytes: float) -> Iterator[Step]:
    if not result.path.exists():
        yield Step(result.path, "what made it", digest(dict(result.made_from)), None)
        return
    store = SimilarityStore.open(result.path)
    yield Step(result.path, "what made it", digest(dict(result.made_from)), digest(store.made_from))
    for protocol, numbers in result.numbers.items():
        again = retrieval.evaluate(store.scores, store.caption_image, protocol, numbers["ties"], block_megabytes)
        recorded = {key: value for key, value in numbers.items() if key in again.as_dict()}
        same = recorded == again.as_dict()
        yield Step(result.path, f"measured again, {protocol}", f"RSUM {numbers['rsum']:.1f}",
                   f"RSUM {numbers['rsum']:.1f}" if same else f"RSUM {again.rsum:.1f}, and other numbers")


def _head(member: Mapping[str, str], made_from: Mapping[str, Any], places: Places) -> Iterator[Step]:
    dataset, name = made_from["dataset"], member["head"]
    if made_from["ensemble"] is not None:
        scored = places.similarity(dataset, name)
        found = SimilarityStore.open(scored).made_from["members"][0]["checkpoint"] if scored.exists() else None
        yield Step(scored, "the checkpoint it was scored with", member["checkpoint"], found)
    folder = places.head(dataset, name)
    file = folder / "best.safetensors"
    yield Step(file, "SHA-256", member["checkpoint"], sha256(file) if file.exists() else None)
    description = describe(folder) if (folder / "head.json").exists() else {}
    for what, recorded in (("manifest", made_from["manifest"]), ("store", member["store"])):
        yield Step(folder / "head.json", f"the {what} it was trained on", recorded, description.get(what))


def _feature(member: Mapping[str, str], made_from: Mapping[str, Any], places: Places) -> str:
    """Which feature a member reads: its head says it, or, where that is gone, its place among the ensemble's."""
    folder = places.head(made_from["dataset"], member["head"])
    if (folder / "head.json").exists():
        return str(describe(folder)["feature"])
    features = list(made_from["features"])
    return features[min(made_from["members"].index(member), len(features) - 1)]


def _features(path: Path, member: Mapping[str, str], network: Callable[[FeatureStore], str],
              row: int | None) -> Iterator[Step]:
    if not path.exists():
        yield Step(path, "what made it, and which images failed", member["store"], None)
        return
    store = FeatureStore(path)
    yield Step(path, "what made it, and which images failed", member["store"], store.identity)
    yield Step(path, "weights of its network", member["weights"], store.fingerprint["weights"])
    try:
        built: str | None = network(store)
    except InputError:  # the checkpoint is not on this machine
        built = None
    yield Step(path, "weights of the network, built anew", member["weights"], built)
    if row is not None:
        shard = row // store.layout.shard_images
        entry = ledger.read(path, shard)
        for name in ("features", "counts"):
            file = ledger.shard_file(path, name, shard, len(store.layout.arrays()[name][0]) + 1)
            recorded = entry.checksums[name] if entry else "no ledger entry"
            yield Step(file, f"BLAKE2b of shard {shard}, with image row {row}", recorded,
                       ledger.checksum(file) if file.exists() else None)
