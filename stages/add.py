"""Make a system of scores or vectors that were computed elsewhere."""

from __future__ import annotations

from pipeline.foundation.artefacts import Draft
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.request import reference
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.paths import Paths, systems
from pipeline.judge.systems import given
from pipeline.judge.systems.requests import AddRequest
from stages import named_systems
from stages.arguments import is_name
from stages.commands.add import AddOptions
from stages.progress import Progress, unless_up_to_date


def add(paths: Paths, settings: Settings, options: AddOptions) -> None:
    """Write given scores as the system NAME of a data set's split, with the digests of their
    files.
    """
    name = options.name
    if not is_name(name):
        raise InputError(f"{name!r}: a system's name consists of letters, digits and _ . + -")
    if name in systems(settings.run):
        raise InputError(
            f"{name}: is a system of this run, which `pipeline score` and its like make; choose another "
            "name"
        )
    if (options.scores is None) == (options.embeddings is None):
        raise InputError("give --scores FILE, or --embeddings IMAGES CAPTIONS")
    named = options.scores or ":".join(options.embeddings or ())
    scores, files = given.named(named, paths.root)
    dataset = options.dataset or settings.run.dataset
    split = options.split or settings.score.split
    file = paths.manifest(dataset)
    title = " ".join((options.title or "").split())
    request = AddRequest(
        name=name,
        split=split,
        title=title or name,
        scores=scores,
        files=files,
        distance=options.distance,
        normalise=options.normalise,
    )

    def write(draft: Draft) -> str:
        manifest = Manifest.load(file)
        system = given.read(request, paths.root, file)
        named_systems.say_read_as([(request.scores, system.read_as)])
        images = len(system.image_ids)
        captions = counted(len(system.caption_ids), "caption")
        with Progress(name, manifest.noun, images) as bar:
            given.write(draft, system, given.facts(request, manifest), bar.reach)
        return f"{images} {manifest.noun}s x {captions} of {split}"

    path = paths.similarity(dataset, name, split)
    made_from = {"manifest": reference(file, dataset)}
    unless_up_to_date(path, request, made_from, write, options.if_changed)
