"""The steps of a head or dual encoder: its files, the facts of its systems, and some vectors
computed again.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts.artefact import verify
from pipeline.foundation.evaluation.retrieval import Embeddings, rows_of
from pipeline.foundation.files.compared import Step
from pipeline.foundation.manifest import Manifest, Split, SplitName
from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.judge.systems.requests import EmbedRequest
from pipeline.judge.systems.scores.made import Made
from pipeline.judge.systems.scores.sources import Vectors
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.dual_encoders import record as encoders
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import made_of_head
from pipeline.make.training.artefact import CONTENTS, HeadArtefact
from pipeline.run.provenance.checks import facts_again
from pipeline.run.provenance.context import Context
from pipeline.run.provenance.walk import Link

# How far a unit vector may be from the stored one: another machine, or a GPU, rounds differently.
APART = 1e-3
# Computes vectors or scores of a part of a split, for the system that they are compared with.
Embed = Callable[[Split, System], Embeddings | np.ndarray]


def steps(folder: Path) -> Iterator[Step]:
    """Compare a head's folder with its record, and the words that it reads with those of its
    training.
    """
    yield from verify(folder, *CONTENTS)
    try:
        head = HeadArtefact.open(folder)
    except InputError:  # a step above says why
        return
    words = head.record.made_from.get("text")
    if words:
        yield Step(folder, f"the text of {folder.name}", words.identity, head.facts.vocabulary)


def steps_of_system(
    store: System, inputs: Mapping[str, Link], manifest: Manifest, context: Context
) -> Iterator[Step]:
    """Compare a head's scores or vectors with the head and what it read."""
    folder = inputs["head"].path
    features = context.paths.features(manifest.dataset, "")
    if "features" in inputs:
        features = inputs["features"].path

    def facts() -> Made:
        head = HeadArtefact.open(folder)
        source: training.ImageSource
        if head.facts.own_network is None:
            source = training.stored(features, manifest, head.request.recipe)
        else:
            source = training.photographs_of(head, manifest)
        captions = None
        if "captions" in inputs:
            captions = FeatureStore(inputs["captions"].path).require(manifest)
        parts = [
            training.usable(source, manifest.split(name), captions)
            for name in SplitName(store.split or "").parts
        ]
        made = made_of_head.made_from(head, manifest, source, parts)
        if isinstance(store.kind, Vectors):
            return made_of_head.with_splits(made, source, parts)
        return made

    yield facts_again(store, facts)
    if context.drawn:
        yield embedded_again(folder, store.path, manifest, features, context)


def steps_of_encoder(store: System, manifest: Manifest, context: Context) -> Iterator[Step]:
    """Compare the vectors of a dual encoder with the encoder and what it read."""
    (member,) = store.made_from.members
    known = member.encoder or {}
    model = Path(known["place"])
    try:
        encoder = encoders.load_recorded(member)
    except InputError:
        yield Step(model, "the encoder's files", member.checkpoint, None)
        return
    for name in dict.fromkeys((*member.files, *encoder.files)):
        recorded = member.files.get(name, "no such file")
        yield Step(model / name, "SHA-256", recorded, encoder.files.get(name))
    activation = _of_towers(known.get("activation", {}))
    yield Step(
        model, "activation of its towers", activation or None, _of_towers(encoder.activation)
    )

    def embed(part: Split, scores: System) -> Embeddings:
        from pipeline.make.dual_encoders import embedding  # and with it torch

        files = manifest.gallery(rows=part.store_rows.tolist())
        piece = embedding.embed_part(encoder, files, part.captions.tolist(), context.batch_size)
        return Embeddings(piece.images, piece.captions)

    def facts() -> Made:
        with refusing(
            (ValueError, KeyError), f"{store.path}: its record does not say what was embedded"
        ):
            asked = EmbedRequest.model_validate(store.store.record.request).encoder
            name = asked["name"]
            trained_on = asked.get("trained_on")
        return encoders.made_from(
            name, known["place"], encoder, trained_on, manifest, member.splits
        )

    yield facts_again(store, facts)
    if context.drawn:
        yield _computed_again(store.path, (), lambda split: (manifest.split(split), embed), context)


def _of_towers(activation: Mapping[str, str]) -> str:
    """Activation functions in words."""
    return ", ".join(f"{tower} {name}" for tower, name in sorted(activation.items()))


def embedded_again(
    folder: Path, store: Path, manifest: Manifest, features: Path, context: Context
) -> Step:
    """Embed some images again by a head, with all their captions, and compare the vectors with the
    stored ones.
    """

    def opened(split: str) -> tuple[Split, Embed]:
        head = training.Head.open(folder).reading(context.paths, manifest)
        source = head.images(manifest, features)

        def embed(part: Split, scores: System) -> Embeddings | np.ndarray:
            source.check(part.store_rows)
            if isinstance(scores.kind, Vectors) or head.embeds:
                return Embeddings(*head.embed(source, part, context.batch_size))
            return head.score(source, part, context.batch_size)

        return training.usable(source, manifest.split(split)), embed

    return _computed_again(store, (folder, features), opened, context)


def _computed_again(
    store: Path,
    needed: tuple[Path, ...],
    opened: Callable[[str], tuple[Split, Embed]],
    context: Context,
) -> Step:
    """Compute vectors or scores of some images, and of one that is named, again, and compare them
    with those stored.
    """
    what = "embedded again"
    size = "images drawn at random"
    try:
        scores = System.open_either(store)
        size = counted(min(context.drawn, len(scores.image_ids)), "image")
        whole, embed = opened(str(scores.split))
        shared = np.intersect1d(whole.image_ids, scores.image_ids)
        chosen = np.random.default_rng().permutation(shared)[: context.drawn].tolist()
        if context.image is not None:
            chosen.append(context.image)
        part = whole.only(np.isin(whole.image_ids, chosen))
        again = embed(part, scores)
        images = counted(len(part.image_ids), "image")
        size = f"{images}, {counted(len(part.captions), 'caption')}"
        different = _first_difference(scores, part, again)
        if not isinstance(again, Embeddings):
            return Step(store, "scored again", size, different or size)
        return Step(store, what, size, different or size)
    except InputError as error:
        if not all(path.exists() for path in (store, *needed)):
            return Step(store, what, size, None)
        return Step(store, what, size, str(error))


def _first_difference(scores: System, part: Split, again: Embeddings | np.ndarray) -> str | None:
    """Describe the first vector or score that differs from the stored one; None if none does."""

    def rows(what: str, ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        return rows_of(ids, wanted, lambda each: f"{what} {each} is not scored")

    images = rows("image", scores.image_ids, part.image_ids)
    captions = rows("caption", scores.caption_ids, part.caption_ids)
    if not isinstance(again, Embeddings):
        stored_scores = np.asarray(scores.similarity[:])[np.ix_(images, captions)]
        apart = np.abs(stored_scores - again)
        image, caption = np.unravel_index(int(apart.argmax()), apart.shape)
        if apart[image, caption] <= APART * max(1.0, float(np.abs(again).max())):
            return None
        pair = f"image {part.image_ids[image]} with caption {part.caption_ids[caption]}"
        return f"{pair} is {apart[image, caption]:.3f} apart"
    stored = scores.embeddings()
    of_images = _first_vector("image", part.image_ids, stored.images[images], again.images)
    if of_images:
        return of_images
    return _first_vector("caption", part.caption_ids, stored.captions[captions], again.captions)


def _first_vector(what: str, ids: np.ndarray, stored: np.ndarray, made: np.ndarray) -> str | None:
    """Describe the first of some vectors that differs from the stored one; None if none does."""
    if stored.shape[1] != made.shape[1]:
        return f"{what}s in {stored.shape[1]} dimensions, the head's have {made.shape[1]}"
    distance = np.linalg.norm(stored - made, axis=1)
    wrong = np.flatnonzero(~(distance <= APART))
    if not len(wrong):
        return None
    first = wrong[0]
    return f"{what} {ids[first]} is {distance[first]:.3f} apart"
