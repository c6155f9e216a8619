"""What a number rests on, in a few lines: the systems, heads and features behind it, and the
photographs.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.metrics.base import RSUM, at
from pipeline.foundation.manifest import Manifest, SplitName
from pipeline.foundation.parts.errors import InputError, counted, few
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.requests import EmbedRequest
from pipeline.judge.systems.scores.made import (
    Ensemble,
    Made,
    OfEncoder,
    OfGiven,
    Reranked,
    Rescored,
)
from pipeline.judge.systems.scores.system import System
from pipeline.make.features.store import FeatureStore
from pipeline.run.provenance.results import Result
from pipeline.run.provenance.trace import Traced
from pipeline.run.provenance.walk import HEAD, SYSTEMS, Link, behind, needed

# How many of the systems behind a result have a line each.
SYSTEMS_SHOWN = 5
# What a photograph or clip of a manifest is called.
NOUNS = {"image": "photograph", "clip": "clip"}


def lines(traced: Traced, paths: Paths, image: int | None = None) -> Iterator[str]:
    """Say what a number or a store was made from, step by step, down to the photographs.

    image: the image whose photograph alone is read; None for all.
    """
    links = behind(traced.links, paths)
    yield _first_line(traced)
    steps = [*_distractors(traced.result), *_systems(traced, links), *_heads(links)]
    steps += _features(links)
    manifests = needed(links, "manifest")
    steps += map(str, manifests)
    for path in manifests:
        if path.exists():
            of_image = image if path.stem == traced.made_from.dataset else None
            steps += _photographs(Manifest.load(path), path, links, of_image)
    for step in steps:
        yield f"  ← {step}"


def _first_line(traced: Traced) -> str:
    """The number and its file, or the store."""
    result = traced.result
    if result is None:
        what = "scores"
        if _kind(traced.path) == EmbedRequest.kind:
            what = "vectors"
        return f"{what} of {traced.path.stem}, in {traced.path}"
    numbers = []
    for protocol, measured in result.numbers.items():
        number = _rsum(measured)
        if protocol != "all":
            number += f" ({protocol})"
        numbers.append(number)
    return f"RSUM {', '.join(numbers)} of {result.request.name}, in {traced.file}"


def _rsum(measured: Any) -> str:
    """The RSUM of an entry, which somebody may have edited."""
    try:
        return f"{at(measured, RSUM):.1f}"
    except (KeyError, TypeError, ValueError):
        return "that cannot be read"


def _kind(path: Path) -> str:
    return System.open_either(path).store.record.kind


def _distractors(result: Result | None) -> Iterator[str]:
    """The distractors that a result was measured among."""
    if result is None:
        return
    for pool in result.request.distractors:
        images = counted(pool.images, "image")
        captions = counted(pool.captions, "caption")
        yield f"ranked among {images} and {captions} of {pool.dataset} ({pool.split})"


def _systems(traced: Traced, links: Sequence[Link]) -> list[str]:
    """How the system, and each that it was made from, was made; without those of a head alone."""
    steps = []
    for path in needed(links, *SYSTEMS):
        made = traced.made_from
        if path != traced.path:
            try:
                made = System.open_either(path).made_from
            except InputError:  # a comparison says why
                continue
        how = _how(made)
        if how and path != traced.path:
            how = f"{path.stem}: {how}"
        if how:
            steps.append(how)
    if len(steps) > SYSTEMS_SHOWN:
        others = counted(len(steps) - SYSTEMS_SHOWN, "more system")
        steps = [*steps[:SYSTEMS_SHOWN], others]
    return steps


def _how(made: Made) -> str:
    """How a system was made of others, or of what is no head; "" for a head's own scores."""
    if isinstance(made, Ensemble):
        members = made.fusion.members
        if len(members) == 1:
            return f"the scores of {members[0]} alone"
        weights = made.fusion.weights
        weighted = ""
        if len(set(weights)) > 1:
            weighted = f", weighted {', '.join(f'{weight:g}' for weight in weights)}"
        systems = counted(len(members), "system")
        return f"{made.fusion.method} of {systems}{weighted}: {few(members)}"
    if isinstance(made, Rescored):
        return f"{made.system}, corrected by {made.rescorer} (bank: {made.bank})"
    if isinstance(made, Reranked):
        candidates = "all candidates"
        if made.k != "all":
            candidates = f"the {made.k} best candidates"
        by = made.scorer.asked
        if made.combine != "scorer":
            by += f" and its own scores ({made.combine}, λ {made.weight:g})"
        return f"{candidates} of {made.retriever}, reordered by {by}"
    if isinstance(made, OfEncoder):
        encoder = made.member.encoder or {}
        return f"dual encoder {encoder.get('place', made.member.head)}, {made.text}"
    if isinstance(made, OfGiven) and made.member.given:
        return f"scores from elsewhere: {few(list(made.member.given.files))}"
    return ""


def _heads(links: Sequence[Link]) -> Iterator[str]:
    heads = [path.name for path in needed(links, HEAD)]
    if len(heads) == 1:
        yield f"head {heads[0]}"
    elif heads:
        yield f"{len(heads)} heads: {few(heads)}"


def _features(links: Sequence[Link]) -> Iterator[str]:
    stores = needed(links, "features")
    if len(stores) == 1:
        yield f"store of features: {stores[0]}"
    elif stores:
        datasets = {path.parent for path in stores}
        features = [path.stem for path in stores]
        if len(datasets) > 1:
            features = [f"{path.parent.name}/{path.stem}" for path in stores]
        yield f"{len(stores)} stores of features: {few(features)}"


def _photographs(
    manifest: Manifest, path: Path, links: Sequence[Link], image: int | None
) -> Iterator[str]:
    """The photographs of a data set that a network read, or the one of an image."""
    read = np.zeros(len(manifest.images), bool)
    for link in links:
        if link.kind == "features" and link.path.parent.name == path.stem:
            read |= _read_by_store(link.path, manifest)
        elif link.kind == "photographs" and link.path == path:
            read |= manifest.images["split"].isin(_splits(link)).to_numpy()
    if not read.any():
        return
    noun = NOUNS[manifest.noun]
    if image is not None:
        row = manifest.images["image_id"] == image
        for file in manifest.images.loc[row, "file"]:
            yield f"{noun} {manifest.images_folder / file}, of image {image}"
        return
    yield f"{counted(int(read.sum()), noun)} in {manifest.images_folder}"


def _read_by_store(path: Path, manifest: Manifest) -> np.ndarray:
    """Which images a feature network of this pipeline read, bool [M]."""
    none = np.zeros(len(manifest.images), bool)
    try:
        store = FeatureStore(path).require(manifest)
    except InputError:  # a comparison says why
        return none
    if "settings" not in store.fingerprint or store.layout.kind == "captions":
        return none
    return store.done


def _splits(link: Link) -> Sequence[str]:
    """The splits whose photographs the reader of a link read."""
    if link.read_by == HEAD or link.reader is None:
        return ("train", "val")
    try:
        return SplitName(System.open_either(link.reader).split or "").parts
    except InputError:  # a comparison says why
        return ()
