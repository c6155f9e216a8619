"""The steps of a system's scores: the record of each store, the bytes of its arrays, its images and captions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.evaluation.retrieval.collection import Collection
from pipeline.files.digest import digest
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError
from pipeline.provenance import computed_again, of_reranked, results
from pipeline.provenance.step import Result, Step, of_record
from pipeline.settings.paths import Paths
from pipeline.systems.scores import layout
from pipeline.systems.scores.made import CONTENTS, RERANKED, RESCORED, Made
from pipeline.systems.scores.sources import Vectors
from pipeline.systems.scores.system import System


def steps(result: Result, paths: Paths, manifest: Manifest, block_megabytes: float) -> Iterator[Step]:
    """Compare the result's own store and numbers, then the stores that an ensemble was made of."""
    if result.entry is not None and result.source is not None:
        yield Step(result.source, "its entry of this system", result.entry.get("digest"),
                   results.digest_of(result.entry))
    above = digest(dict(result.made_from)) if result.entry is not None else None
    yield from _store(result.path, above, paths, manifest, result.entry is not None)
    if result.entry is not None and result.path.exists():
        yield from computed_again.numbers(result.path, result.entry, block_megabytes, manifest)
    yield from _members(result.made_from, paths, manifest, {result.path})


def _members(made_from: Mapping[str, Any], paths: Paths, manifest: Manifest, seen: set[Path]) -> Iterator[Step]:
    """seen: stores that are traced already; one that is edited to be its own member is not followed for ever."""
    members = [] if RERANKED in made_from or RESCORED in made_from else made_from["members"]
    made = Made(made_from)
    older = () if made_from["ensemble"] is None else [(name, None) for name in made.fusion.get("members") or made.heads]
    for name, seal in made.parts or older:
        path = paths.similarity(made_from["dataset"], name, made_from["split"])
        yield from _store(path, seal, paths, manifest, True)
        for member in members:
            if member["head"] == name:
                found = System.open(path).made_from["members"][0]["checkpoint"] if path.exists() else None
                yield Step(path, "the checkpoint it was scored with", member["checkpoint"], found)
        if path.exists() and path not in seen:
            yield from _members(System.open(path).made_from, paths, manifest, seen | {path})


def _store(path: Path, above: str | None, paths: Paths, manifest: Manifest, is_recorded: bool) -> Iterator[Step]:
    """above: the store's seal as what was made from it says; nothing does where is_recorded is False."""
    if not path.exists():
        yield Step(path, "what made it", above, None)
        return
    try:
        store = System.open_either(path)
    except InputError as error:
        yield Step(path, "what made it", above, str(error))
        return
    if is_recorded:
        yield Step(path, "what made it", above, digest(store.made_from))
    yield from of_record(path)
    recorded, found = store.made_from.get(CONTENTS), layout.digests(path)
    wrong = layout.changed(path, store.made_from)
    if not wrong:
        yield Step(path, f"bytes of its {len(found)} arrays", digest(recorded) if recorded else None, digest(found))
    for name in wrong or ():
        yield Step(path / name, "bytes", (recorded or {}).get(name, "no such array"), found.get(name))
    yield Step(path, "whose scores, by the manifest", _size(store), _ids(store, manifest))
    if isinstance(store.kind, Vectors):
        return
    if store.made_from.reranked:
        yield from of_reranked.steps(store, paths)
    elif computed_again.can_be(store):
        yield computed_again.scores(store, paths)


def _size(store: System) -> str:
    return f"{len(store.image_ids)} images, {len(store.caption_ids)} captions of {store.made_from['split']}"


def _ids(store: System, manifest: Manifest) -> str:
    """The store's size where its rows and columns are images and captions of its split, each caption of its image."""
    split = manifest.split(store.made_from["split"])
    owner = Collection(split.image_ids, split.caption_ids, split.caption_image).image_of_caption()
    if extra := np.setdiff1d(store.image_ids, split.image_ids).tolist():
        return f"image {extra[0]}, which is not in the split {split.name}"
    for what, ids in (("image", store.image_ids), ("caption", store.caption_ids)):
        if len(np.unique(ids)) < len(ids):
            return f"the same {what} twice"
    for caption, image in store.image_of_caption().items():
        if owner.get(caption) != image:
            return f"caption {caption} as of image {image}"
    kept = set(store.image_ids.tolist())
    missing = sum(image in kept for image in owner.values()) - len(store.caption_ids)
    return _size(store) if not missing else f"{_size(store)}; {missing} captions are missing"


