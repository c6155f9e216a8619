"""Similarity matrices: of heads and dual encoders, and new ones computed from a system's."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pipeline.foundation.artefacts import Draft
from pipeline.foundation.compute.tasks import Executor
from pipeline.foundation.evaluation.retrieval.blocks import Matrix
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.request import reference
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths, heads, rescored, system_name
from pipeline.foundation.settings.run import Rescore
from pipeline.judge.systems.requests import RescoreRequest, ScoreRequest
from pipeline.judge.systems.rescoring import RESCORERS, stored
from pipeline.judge.systems.scores import layout
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.dual_encoders import record as records
from pipeline.make.training import made_of_head, unknown
from pipeline.run.provenance import references
from stages import scored_systems
from stages.arguments import Source, Workers, refuse_given
from stages.commands.scores import RescoreOptions, ScoreOptions
from stages.progress import Progress, unless_up_to_date


def score(paths: Paths, settings: Settings, options: ScoreOptions) -> None:
    """Write similarity matrices, embeddings and ids of heads and dual encoders for the split
    score.split.
    """
    dataset = options.dataset or settings.run.dataset
    source = options.source
    store = None
    if source:
        store = _embedded(paths, source, dataset)
    if store:
        workers = None
        if options.workers != Workers():
            workers = options.workers
        refuse_given(
            "cannot be given with a store of embeddings, which are multiplied as they are",
            images=options.images,
            device=options.device,
            workers=workers,
        )
        _score_embeddings(paths, settings, store, options.dataset)
        return
    extras.require("training", "scoring by a head")
    if source:
        if source.path is None:
            scored_systems.refuse_without_vectors(paths, settings, dataset, source.named, "score")
        folders = [source.path or paths.head(dataset, source.named)]
    elif options.feature:
        folders = []
        for recipe in options.recipes:
            for seed in options.seeds:
                system = system_name(recipe, options.feature, options.text, seed)
                folders.append(paths.head(dataset, system))
    else:
        folders = [paths.head(dataset, name) for name in heads(settings.run)]
    if not any(training.HeadArtefact.open(folder).facts.own_network for folder in folders):
        refuse_given("is for a fine-tuned head; others read stored features", images=options.images)
    split = settings.score.split
    device = options.device or settings.training_of(dataset).device
    with ExitStack() as stack:
        place = cache(lambda: stack.enter_context(options.workers.open()))
        for folder in dict.fromkeys(folders):
            made_from, made_by = references.of_use(
                paths, folder, dataset, split.split("+"), options.images
            )
            trained_on = training.HeadArtefact.open(folder).dataset
            name = folder.name
            if trained_on != dataset:  # as embeddings are named
                name = f"{trained_on}-{folder.name}"
            request = ScoreRequest.of_head(name, settings.score, made_by)
            path = paths.similarity(dataset, name, split)
            used = (paths, folder, dataset, options.images, device)
            write = partial(_score, path, settings, place, used)
            unless_up_to_date(path, request, made_from, write)
    if source or options.feature:
        return
    for encoder in settings.run.encoders:
        _score_embeddings(paths, settings, paths.encoded(dataset, encoder.name))


def _score(
    path: Path,
    settings: Settings,
    opened_place: Callable[[], Executor | None],
    used: tuple[Any, ...],
    draft: Draft,
) -> str:
    """Write a head's scores, and say how many. used: arguments of `HeadUse`, whose import brings
    torch.
    """
    use = training.HeadUse(*used)
    pieces = training.pieces
    place = opened_place()
    here = use
    if place is not None:  # the network computes there
        here = replace(use, device="cpu")
    opened = training.OpenHead.open(here)
    split = opened.split(settings.score.split)
    batch_size = settings.score.batch_size
    opened.source.check(split.store_rows)
    made = made_of_head.made_from(opened.head.artefact, opened.manifest, opened.source, [split])
    noun = opened.manifest.noun
    with Progress(path.stem, noun, len(split.image_ids)) as bar:
        finished = pieces.kept(path, opened, use.device, batch_size, made.recorded())
        embeds = opened.head.embeds
        if embeds:
            tasks = pieces.apart(opened, split, batch_size)
        else:
            tasks = pieces.against_all(opened, split, batch_size)
        words = unknown.counts([split])
        computed = pieces.run(
            opened, tasks, finished, batch_size, use.device, place, bar.piece, words
        )
        if embeds:
            layout.write_products(draft, *pieces.vectors(computed, split), split, made)
        else:
            layout.write(draft, [Matrix(pieces.matrix(computed, split))], split, made)
        finished.remove()
    captions = counted(len(split.captions), "caption")
    scored = f"{len(split.image_ids)} {noun}s x {captions} of {split.name}{bar.kept}"
    return "\n".join([scored, *unknown.summaries([split], words, opened.head.dataset)])


def _embedded(paths: Paths, source: Source, dataset: str) -> Path | None:
    """The store of embeddings that --system names, by its path or by its name; None for a head."""
    if source.path:
        if source.path.suffix == ".zarr" or (source.path / "zarr.json").exists():
            return source.path
        return None
    source.refuse_encoder(dataset)
    store = paths.encoded(dataset, source.named)
    is_of_head = paths.head(dataset, source.named).exists()
    if is_of_head or not store.exists():
        return None
    return store


def _score_embeddings(
    paths: Paths, settings: Settings, path: Path, asked: str | None = None
) -> None:
    """Multiply stored vectors of score.split, unless the result is up to date. asked: the data set
    they must be of.
    """
    embedded = System.open_vectors(path)
    dataset = embedded.made_from.dataset
    split = settings.score.split
    if asked not in (None, dataset):
        raise InputError(
            f"--dataset {asked}: {path} holds embeddings of {dataset}; name another store"
        )
    target = paths.similarity(dataset, path.stem, split)

    def multiply(draft: Draft) -> str:
        manifest = Manifest.load(paths.manifest(dataset))
        vectors = records.of_split(embedded, manifest, split)
        with Progress(path.stem, "image", len(vectors.images)) as bar:
            layout.write_products(
                draft, vectors.images, vectors.captions, vectors.split, vectors.made_from, bar.reach
            )
        images = counted(len(vectors.images), "image")
        captions = counted(len(vectors.captions), "caption")
        return f"{images} x {captions} of {split}"

    made_from = {
        "vectors": embedded.reference,
        "manifest": reference(paths.manifest(dataset), dataset),
    }
    unless_up_to_date(target, ScoreRequest(name=target.stem, split=split), made_from, multiply)
    known = embedded.made_from.members[0].encoder
    if known:
        records.found_at(target, known["place"])


def rescore(paths: Paths, settings: Settings, options: RescoreOptions) -> None:
    """Rescore SYSTEM by one rescorer; without SYSTEM, all heads and ensembles of the run by each of
    run.rescorers.
    """
    dataset = options.dataset or settings.run.dataset
    if options.system is None:
        for made, (source, step) in rescored(settings.run).items():
            _rescore(paths, dataset, settings.score.split, made, source, step)
        return
    if options.name is None:
        raise InputError(
            f"pipeline rescore {options.system}: expected --by NAME, of {', '.join(RESCORERS)}"
        )
    steps = {step.name: step for step in settings.run.rescorers}
    step = steps.get(options.name) or Rescore.of(name=options.name)
    if options.bank:
        if "bank" not in RESCORERS.declared(options.name).model_fields:
            raise InputError(f"{options.name} takes no --bank; leave it out")
        step = Rescore.of(**step.model_dump() | {"bank": options.bank})
    made = step.applied_to(options.system)
    _rescore(paths, dataset, settings.score.split, made, options.system, step)


def _rescore(paths: Paths, dataset: str, split: str, name: str, system: str, step: Rescore) -> None:
    path = paths.similarity(dataset, name, split)
    source = System.open_named(paths.similarity(dataset, system, split))
    request = RescoreRequest(name=name, rescorer=step.name, options=step.options)
    made = stored.made(source, request)
    made_from = stored.made_from(source, request, paths)

    def rescore(draft: Draft) -> str:
        corrected = stored.compute(source.check(), made, made_from, paths)
        with Progress(name, "image", len(source.image_ids)) as bar:
            corrected.write(draft, made, progress=bar.reach)
        return f"{step.name} of {system}"

    unless_up_to_date(path, request, made_from, rescore)
