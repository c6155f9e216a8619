"""From a number back to the photographs that it was made from: one walk over the records behind it.

    result → system → those that it was made from → heads → those that they were trained from →
        features → manifests
    → photographs

A record names its inputs by their identities, so a change in between breaks a link. Somebody who
changes an artefact and rewrites all records above it breaks no link; then the values that are
computed again (`computed_again.py`, `of_head.py`) differ, as long as the artefacts below are
unchanged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from pipeline.foundation.artefacts import artefact
from pipeline.foundation.artefacts.record import FILE
from pipeline.foundation.evaluation.retrieval import Relevance, rank
from pipeline.foundation.files.compared import Step
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.manifest import Manifest, SplitName
from pipeline.foundation.manifest.columns import NO_IMAGE
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import FEW, InputError
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.made import Made
from pipeline.judge.systems.scores.reranked import Folded
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance import checks, computed_again, of_features, of_head, of_system
from pipeline.run.provenance.context import Context
from pipeline.run.provenance.results import Result
from pipeline.run.provenance.walk import HEAD, SYSTEMS, Link, behind, distractors, links


@dataclass(frozen=True)
class Traced:
    """A system, by its store, or by its entry in a file of results."""

    path: Path  # the system's store
    made_from: Made  # the result's record, or the store's if there is no result
    links: Sequence[Link]  # to the store, and of a result also to distractors
    file: Path | None = None  # the file of results; None if only a store is traced
    result: Result | None = None  # that file's entry of the system

    @classmethod
    def of_store(cls, path: Path) -> Self:
        """Trace a store alone."""
        made = System.open_either(path).made_from
        return cls(path, made, [Link(path, SYSTEMS[0], None, "system")])

    @classmethod
    def of_result(cls, result: Result, file: Path, paths: Paths) -> Self:
        """Trace an entry of a file of results."""
        inputs = links(result.record, file, paths)
        store = {link.role: link.path for link in inputs}["system"]
        return cls(store, result.made, inputs, file, result)


def trace(
    traced: Traced, paths: Paths, settings: Settings, drawn: int, image: int | None = None
) -> Iterator[Step]:
    """Follow a result back. drawn: how many images of each head are embedded again with their
    captions; 0 for none.
    """
    made = traced.made_from
    result = traced.result
    if drawn and any(member.given is None for member in made.members):
        extras.require("training", "embedding again")
    context = Context(
        paths, behind(traced.links, paths), made.dataset, drawn, image, settings.score.batch_size
    )
    row = None
    if image is not None:
        row = _row(context.manifest(made.dataset), image, SplitName(made.split or ""))
    if result is not None and traced.file is not None:
        yield from result.verify(traced.file, result.request.name)
    if result is not None and traced.file is not None and traced.path.exists():
        try:
            pool = computed_again.pool_of(traced.path, distractors(traced.links))
            yield from checks.entry_again(result, traced.file, pool)
            manifest = context.manifest(made.dataset)
            megabytes = settings.evaluate.block_megabytes
            yield from computed_again.numbers(
                traced.path, result, traced.file, megabytes, manifest, distractors(traced.links)
            )
        except InputError as error:
            yield Step(traced.file, "measured again", "its numbers", str(error))
    for path in context.paths_of(*SYSTEMS):
        yield from _identities(context, path)
        yield from of_system.steps(path, context)
    for path in context.paths_of(HEAD):
        yield from _identities(context, path)
        yield from of_head.steps(path)
    features = []
    for path in context.paths_of("features"):
        if paths.manifest(path.parent.name).exists():
            features.append(path)
    for path in features:
        dataset = path.parent.name
        row_of_store = row if dataset == made.dataset else None
        yield from _identities(context, path)
        yield from of_features.steps(
            path, context.manifest(dataset), row_of_store, whole=image is None
        )
    for path in context.paths_of("manifest"):
        yield from _identities(context, path)
        remembered = paths.remembered(path.stem)
        # A manifest that a library user wrote has no record.
        if (remembered / FILE).exists():
            yield from artefact.verify(remembered)
    checksums: dict[GalleryFile, str] = {}
    for path in features:
        if image is None or path.parent.name == made.dataset:
            yield from of_features.photographs(
                path, context.manifest(path.parent.name), row, checksums
            )
    if row is not None:
        manifest = context.manifest(made.dataset)
        entry = manifest.images.iloc[row]
        file = manifest.images_folder / entry["file"]
        size = None
        if file.exists():
            size = f"{file.stat().st_size} bytes"
        yield Step(file, f"size of image {image}", f"{entry['bytes']} bytes", size)


def first_cause(wrong: Sequence[Step]) -> Step:
    """Of steps that do not match, in the order of `trace`, the one from which others may follow:
    the first of the artefact that is nearest to the photographs. Facts that follow from what an
    artefact was made from differ where something else does, such as a file of its encoder.
    """
    own = [step for step in wrong if step.what != checks.FACTS]
    if own:
        wrong = own
    deepest = wrong[-1].path
    for step in wrong:
        if step.path.is_relative_to(deepest) or deepest.is_relative_to(step.path):
            return step
    return wrong[-1]


def _identities(context: Context, path: Path) -> Iterator[Step]:
    """Compare an artefact's identity with what each record that refers to it says."""
    for link in context.links_to(path):
        if link.reference is None:
            continue
        identity = context.identity(link)
        if identity is None and link.read_by == HEAD:
            continue
        place = path
        if link.kind == "photographs":
            place = context.manifest(path.stem).images_folder
        what = f"the {link.role} of {link.reader and link.reader.stem}"
        yield Step(place, what, link.reference.identity, identity)


def image_of(manifest: Manifest, caption: int, split: str) -> int:
    """Find a caption's image. split: whose captions are named where there is no such caption."""
    rows = manifest.rows(
        ["caption_id", "image_id", "split"], lambda rows: rows[rows["caption_id"] == caption]
    )
    where = f"no caption {caption} in the manifest of {manifest.dataset}"
    if len(rows):
        where = f"caption {caption} is in {manifest.dataset}'s split {rows['split'].iloc[0]}"
    if not len(rows) or rows["split"].iloc[0] not in SplitName(split).parts:
        captions = in_ranges(manifest.split(split).with_images().caption_ids)
        raise InputError(
            f"{where}; the result is of the {split} split, which has the captions {captions}"
        )
    image = int(rows["image_id"].iloc[0])
    if image == NO_IMAGE:
        raise InputError(
            f"caption {caption} of {manifest.dataset} belongs to no image, so it is no query"
        )
    return image


def query(traced: Traced, image: int, caption: int | None) -> str:
    """State in words the rank of a query's relevant item: a caption's image, or the best of an
    image's captions.
    """
    store = computed_again.pool_of(traced.path, distractors(traced.links))
    scores = store.scores
    relevance = Relevance.of_owner(store.caption_image, len(store.image_ids))
    _, image_ids = store.items("image")
    _, caption_ids = store.items("caption")
    if isinstance(scores, Folded) and image in image_ids:
        images, captions = scores.fold(int(np.flatnonzero(image_ids == image)[0]))
        scores = scores.select(images, captions)
        relevance = relevance.select(images, captions)
        image_ids = image_ids[images]
        caption_ids = caption_ids[captions]
    ranks = rank(scores, relevance)
    if caption is None:
        wanted = image_ids[: store.queries[0]] == image
        queries = ranks.i2t
        size = len(caption_ids)
        subject = f"image {image}: the best of its captions"
    else:
        wanted = caption_ids[: store.queries[1]] == caption
        queries = ranks.t2i
        size = len(image_ids)
        subject = f"caption {caption}: its image {image}"
    at = np.flatnonzero(np.isin(queries.query, np.flatnonzero(wanted)))
    if not len(at) and caption is None:
        scored = in_ranges(image_ids[queries.query])
        raise InputError(
            f"image {image} is not scored in {traced.path}, which has the images {scored}"
        )
    if not len(at):
        scored = in_ranges(caption_ids[queries.query])
        raise InputError(
            f"caption {caption} (image {image}) is not scored in {traced.path}, which has the captions {scored}"
        )
    tied = int(queries.equal[at[0]])
    sentence = f"{subject} has rank {queries.greater[at[0]] + 1} of {size}"
    if tied:
        sentence += f", tied with {tied} others"
    return sentence


def in_ranges(ids: np.ndarray) -> str:
    """Ids in words: "0 to 4, 10 to 14, 20 to 24, … 95 to 99 (50 in all)"."""
    ordered = np.unique(ids)
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    ranges = []
    for run in runs:
        first = str(run[0])
        if len(run) > 1:
            first += f" to {run[-1]}"
        ranges.append(first)
    shown = ", ".join(ranges)
    if len(ranges) > FEW + 1:
        shown = f"{', '.join(ranges[:FEW])}, … {ranges[-1]}"
    return f"{shown} ({len(ordered):,} in all)"


def _row(manifest: Manifest, image: int, split: SplitName) -> int:
    rows = np.flatnonzero(manifest.images["image_id"] == image)
    where = "is not in its manifest"
    if len(rows):
        other = manifest.images["split"].iloc[rows[0]]
        if other in split.parts:
            return int(rows[0])
        where = f"is in its split {other}"
    images = in_ranges(manifest.split(split).image_ids)
    raise InputError(
        f"image {image}: the result is of {manifest.dataset}'s {split} split, and the image {where}; "
        f"the {split} split has the images {images}"
    )
