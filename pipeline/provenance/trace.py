"""From a number back to the photographs that it was made from. Each step is compared with the digest in the step above.

    result → similarity store → an ensemble's members → for each head: its files, what it was trained on, some vectors
    again → feature store → network's weights, shard files → manifest → photographs; for each dual encoder: its files,
    some vectors again → photographs

Each step's digest is in the one above it, so a change in between breaks the link. Somebody who changes a step and
rewrites everything above it breaks no link; then the values that are computed again (`computed_again.py`, `of_head.py`)
differ, as long as the files below are unchanged.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import training
from pipeline.artefacts import artefact
from pipeline.artefacts.record import FILE
from pipeline.evaluation.retrieval import Relevance, rank
from pipeline.files.compared import Step
from pipeline.manifest import Manifest, SplitName
from pipeline.manifest.columns import NO_IMAGE
from pipeline.parts.errors import InputError
from pipeline.provenance import of_features, of_head, of_scores, references
from pipeline.provenance.traced import Traced
from pipeline.settings import Settings
from pipeline.settings.paths import Paths
from pipeline.systems.scores.layout import holds_vectors_alone
from pipeline.systems.scores.reranked import Folded
from pipeline.systems.scores.system import System


def trace(result: Traced, paths: Paths, settings: Settings, drawn: int, image: int | None = None) -> Iterator[Step]:
    """Follow a result back. drawn: how many images of each head are embedded again with their captions; 0 for none."""
    made_from = result.made_from
    dataset, split = made_from.dataset, SplitName(made_from.split or "")
    manifest_path = paths.manifest(dataset)
    manifest = Manifest.load(manifest_path, computed=True)
    row = None if image is None else _row(manifest, image, split)
    yield from of_scores.steps(result, paths, manifest, settings.evaluate.block_megabytes)
    features = []

    def vectors(name: str) -> Path:
        return result.path if holds_vectors_alone(result.path) else paths.similarity(dataset, name, split)

    for member in made_from.members:
        if member.given is not None:
            continue  # whose files are compared with its store
        if member.encoder is not None:
            yield from of_head.steps_of_encoder(member, made_from, vectors(member.head), manifest, drawn,
                                                image, settings.score.batch_size)
            continue
        trained_on = made_from.training_data
        folder = paths.head(trained_on, member.head)
        yield from of_head.steps(folder, member, made_from)
        head = _opened(folder)
        path = paths.features(dataset, member.feature)
        if drawn:
            scored = member.head if trained_on == dataset else f"{trained_on}-{member.head}"
            yield of_head.embedded_again(folder, vectors(scored), manifest, path, drawn, image,
                                         settings.score.batch_size)
        if head is not None and head.facts.own_network:
            yield _photographs(manifest, split.split("+"), member.content or None)
            if trained_on == dataset and (trained := head.record.made_from.get("photographs")):
                yield _photographs(manifest, ["train", "val"], trained.identity)
        else:
            content = head.facts.content if head and trained_on == dataset else None  # else it was another store's
            yield from of_features.steps(path, member, content, manifest, split, row)
            features.append(path)
    yield Step(manifest_path, "digest of every row", made_from.manifest, manifest.digest)
    remembered = paths.remembered(dataset)  # a manifest that a library user wrote has no record
    yield from artefact.verify(remembered) if (remembered / FILE).exists() else ()
    read: dict[Any, str] = {}
    for path in dict.fromkeys(features):
        yield from of_features.photographs(path, manifest, row, read)
    if row is not None:
        entry = manifest.images.iloc[row]
        file = manifest.images_folder / entry["file"]
        yield Step(file, f"size of image {image}", f"{entry['bytes']} bytes",
                   f"{file.stat().st_size} bytes" if file.exists() else None)


def _opened(folder: Path) -> training.HeadArtefact | None:
    """The head of a folder; None where its own steps say what is wrong."""
    try:
        return training.HeadArtefact.open(folder)
    except InputError:
        return None


def _photographs(manifest: Manifest, splits: list[str], recorded: str | None) -> Step:
    """What a fine-tuned head reads: the photographs of some splits."""
    try:
        found: str | None = references.of_photographs(manifest, splits).identity
    except InputError:
        found = None
    return Step(manifest.images_folder, f"BLAKE2b of the images of {' and '.join(splits)}", recorded, found)


def image_of(manifest: Manifest, caption: int) -> int:
    """Find a caption's image."""
    found = manifest.rows(["caption_id", "image_id"], lambda rows: rows[rows["caption_id"] == caption])["image_id"]
    if not len(found):
        raise InputError(f"no caption {caption} in the manifest of {manifest.dataset}")
    if found.iloc[0] == NO_IMAGE:
        raise InputError(f"caption {caption} of {manifest.dataset} belongs to no image, so it is no query")
    return int(found.iloc[0])


def query(result: Traced, image: int, caption: int | None) -> str:
    """State in words the rank of a query's relevant item: a caption's image, or the best of an image's captions."""
    store = System.open(result.path)
    scores, relevance = store.scores, Relevance.of_owner(store.caption_image, len(store.image_ids))
    image_ids, caption_ids = store.image_ids, store.caption_ids
    if isinstance(scores, Folded) and image in image_ids:
        images, captions = scores.fold(int(np.flatnonzero(image_ids == image)[0]))
        scores, relevance = scores.select(images, captions), relevance.select(images, captions)
        image_ids, caption_ids = image_ids[images], caption_ids[captions]
    ranks = rank(scores, relevance)
    if caption is None:
        place, queries, size = np.flatnonzero(image_ids == image), ranks.i2t, len(caption_ids)
        told = f"image {image}: the best of its captions"
    else:
        place, queries, size = np.flatnonzero(caption_ids == caption), ranks.t2i, len(image_ids)
        told = f"caption {caption}: its image {image}"
    at = np.flatnonzero(np.isin(queries.query, place))
    if not len(at):
        subject = f"image {image}" if caption is None else f"caption {caption} (image {image})"
        raise InputError(f"{subject} is not scored in {result.path}")
    tied = int(queries.equal[at[0]])
    return f"{told} has rank {queries.greater[at[0]] + 1} of {size}" + (f", tied with {tied} others" if tied else "")


def _row(manifest: Manifest, image: int, split: SplitName) -> int:
    rows = np.flatnonzero(manifest.images["image_id"] == image)
    if not len(rows) or manifest.images["split"].iloc[rows[0]] not in split.parts:
        there = f"is in its split {manifest.images['split'].iloc[rows[0]]}" if len(rows) else "is not in its manifest"
        raise InputError(f"image {image}: the result is of {manifest.dataset}'s {split} split, and the image {there}")
    return int(rows[0])
