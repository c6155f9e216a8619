"""Embed a data set's images and captions with a head that was trained on it or on another, or with
a dual encoder.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from pipeline.foundation.artefacts import Draft
from pipeline.foundation.compute.tasks import Executor
from pipeline.foundation.manifest import SPLITS, Manifest, Split
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Encoder, Settings
from pipeline.foundation.settings.paths import Paths, encoders as encoders_of
from pipeline.judge.systems import rescoring
from pipeline.judge.systems.requests import EmbedRequest
from pipeline.judge.systems.scores import layout, made
from pipeline.make import dual_encoders, training
from pipeline.make.dual_encoders import record as records
from pipeline.make.features.store import FeatureStore
from pipeline.make.training import made_of_head, unknown
from pipeline.run.provenance import references
from stages import scored_systems
from stages.arguments import Source, refuse_given
from stages.commands.embed import EmbedOptions
from stages.progress import Progress, say, unless_up_to_date


def embed(paths: Paths, settings: Settings, options: EmbedOptions) -> None:
    """Embed the images and captions of a data set with a head or an encoder; without one, what the
    run needs.
    """
    run = settings.run
    source = options.source
    encoders: list[Encoder] = []
    heads: list[tuple[Path, Path | None]] = []
    if options.dataset is None:
        # dvc.yaml names the folder, empty or not.
        paths.encoded(run.dataset, "").parent.mkdir(parents=True, exist_ok=True)
        encoders = encoders_of(paths, run)
        heads = [(paths.head(run.dataset, head), None) for head in rescoring.embedded_heads(run)]
        if not encoders and not heads:
            say("no encoder and no bank of train in the run: nothing to do", err=False)
            return
    elif source is None:
        raise InputError("give --system: a head's name, or KIND:PLACE of an encoder")
    elif source.is_encoder:
        dual_encoders.check(source.named)
        described = {
            "name": options.name or source.called,
            "model": source.named,
            "trained_on": options.trained_on,
            **options.usage,
        }
        encoders = [Encoder.model_validate(described)]
    else:
        folder = source.head
        if folder is None:
            trained_on = options.trained_on or run.dataset
            scored_systems.refuse_without_vectors(
                paths, settings, trained_on, source.named, "embed"
            )
            folder = paths.head(trained_on, source.named)
        heads = [(folder, options.images)]
    dataset = options.dataset or run.dataset
    with options.workers.open() as place:
        asked = _Asked(paths, settings, dataset, options.splits, options.out, options.device, place)
        for encoder in encoders:
            _by_encoder(asked, encoder, options.images, options.batch_size)
        for folder, images in heads:
            _by_head(asked, folder, images)


@dataclass(frozen=True)
class _Asked:
    """The data set and splits to embed, where the result is written, and where the network
    computes.
    """

    paths: Paths
    settings: Settings
    name: str
    splits: tuple[str, ...]
    out: Path | None
    device: str | None
    place: Executor | None

    def of(self, manifest: Manifest) -> list[Split]:
        non_empty = [name for name in SPLITS if (manifest.images["split"] == name).any()]
        return [manifest.split(name) for name in self.splits or non_empty]

    def summary(self, parts: list[Split]) -> str:
        images = sum(len(part.image_ids) for part in parts)
        captions = sum(len(part.caption_ids) for part in parts)
        return f"{counted(images, 'image')} and {counted(captions, 'caption')} of {self.name}"


def _by_head(asked: _Asked, folder: Path, images: Path | None) -> None:
    paths = asked.paths
    settings = asked.settings
    name = asked.name
    batch_size = settings.score.batch_size
    dataset = training.HeadArtefact.open(folder).dataset
    path = asked.out or paths.embeddings(name, dataset, folder.name)
    made_from, made_by = references.of_use(paths, folder, name, asked.splits, images)
    request = EmbedRequest.of_head(asked.splits, settings.score, made_by)

    def embed(draft: Draft) -> str:
        use = training.HeadUse(
            paths,
            folder,
            name,
            images,
            asked.device or settings.training_of(dataset).device,
        )
        here = use
        if asked.place is not None:  # the network computes there
            here = replace(use, device="cpu")
        opened = training.OpenHead.open(here)
        opened.head.require_embeddings()
        if isinstance(opened.source, FeatureStore):
            refuse_given("is for a fine-tuned head; this one reads stored features", images=images)
        parts = [opened.split(part.name) for part in asked.of(opened.manifest)]
        opened.source.check(np.concatenate([part.store_rows for part in parts]))
        facts = made_of_head.made_from(opened.head.artefact, opened.manifest, opened.source, parts)
        facts = made_of_head.with_splits(facts, opened.source, parts)
        # Split -> its first rows of the images' and of the captions' vectors.
        first_rows = {}
        images_before = 0
        captions_before = 0
        pieces: list[training.pieces.Piece] = []
        for part in parts:
            first_rows[part.name] = (images_before, captions_before)
            images_before += len(part.image_ids)
            captions_before += len(part.caption_ids)
            pieces += training.pieces.with_captions(part)
        with Progress(path.stem, "image", images_before) as bar:
            stored = training.pieces.kept(path, opened, use.device, batch_size, facts.recorded())
            words = unknown.counts(parts)
            embedded = training.pieces.run(
                opened, pieces, stored, batch_size, use.device, asked.place, bar.piece, words
            )
            with layout.writing_vectors(
                draft, parts, opened.head.model.dimension, facts
            ) as vectors:
                for piece, arrays in embedded:
                    for at, side in enumerate(("images", "captions")):
                        if side in arrays:
                            rows = first_rows[piece.split][at] + getattr(piece, side)
                            vectors[at][rows] = arrays[side]
            stored.remove()
        of_unknown = unknown.summaries(parts, words, opened.head.dataset)
        return "\n".join([asked.summary(parts) + bar.kept, *of_unknown])

    unless_up_to_date(path, request, made_from, embed)


def _by_encoder(asked: _Asked, encoder: Encoder, images: Path | None, batch_size: int) -> None:
    paths = asked.paths
    settings = asked.settings
    name = asked.name
    place = asked.place
    dual_encoders.check(encoder.model)
    manifest = Manifest.load(paths.manifest(name))
    manifest.require_photographs("a dual encoder")
    parts = asked.of(manifest)
    splits = [part.name for part in parts]
    path = asked.out or paths.encoded(name, encoder.name)
    photographs = references.of_photographs(manifest, splits, images)
    from pipeline.make.dual_encoders import embedding  # and with it torch

    device = asked.device or settings.training_of(name).device
    chosen = encoder.model_dump(exclude={"name", "model", "finetune", "trained_on"})
    usage = dual_encoders.Usage(**chosen, device=device)
    usage_here = usage
    if place is not None:  # the network computes there
        usage_here = replace(usage, device="cpu")
    opened = dual_encoders.load(encoder.model, usage_here)
    identity = records.identity(encoder.model, opened)
    request = EmbedRequest(
        splits=splits,
        made_by=records.versions(encoder.model),
        encoder={"identity": identity, **encoder.recorded({"model"})},
    )
    is_named_after_model = encoder.name == Source(encoder.model).called
    if is_named_after_model and encoder not in encoders_of(paths, settings.run):
        records.refuse_another(path, encoder.model, opened)
    job = embedding.Job(
        encoder.model,
        usage,
        manifest,
        images or manifest.images_folder,
        parts,
        batch_size,
    )

    def embed(draft: Draft) -> str:
        facts_of = partial(
            records.made_from, encoder.name, encoder.model, opened, encoder.trained_on, manifest
        )
        total = sum(len(part.image_ids) for part in parts)
        with Progress(path.stem, "image", total) as bar:
            embedding.embed(path, draft, opened, job, facts_of, place, bar.piece)
        lines = [asked.summary(parts) + bar.kept]
        (member,) = made.read(draft.facts).members
        for split, counts in member.splits.items():
            lines += opened.notes_on_cut(counts["cut_captions"], counts["captions"], f" of {split}")
        return "\n".join(lines)

    made_from = {"manifest": manifest.reference, "photographs": photographs}
    unless_up_to_date(path, request, made_from, embed)
    records.found_at(path, encoder.model)
