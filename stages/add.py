"""Make a system of scores or vectors that were computed elsewhere."""

from __future__ import annotations

from typing import Literal

from pipeline.artefacts import Draft
from pipeline.manifest import Manifest
from pipeline.manifest.request import reference
from pipeline.parts.errors import InputError, counted
from pipeline.settings import Settings
from pipeline.settings.paths import Paths, systems
from pipeline.systems import given
from pipeline.systems.requests import AddRequest
from stages import named_systems
from stages.arguments import is_name
from stages.progress import Progress, unless_up_to_date


def add(
    paths: Paths,
    settings: Settings,
    name: str,
    scores: str | None = None,
    embeddings: tuple[str, str] | None = None,
    normalise: bool = False,
    distance: bool = False,
    dataset: str | None = None,
    split: str | None = None,
    title: str | None = None,
    if_changed: Literal["refuse", "redo"] = "refuse",
) -> None:
    """Write given scores as the system NAME of a data set's split, with the digests of their
    files.
    """
    if not is_name(name):
        raise InputError(f"{name!r}: a system's name consists of letters, digits and _ . + -")
    if name in systems(settings.run):
        raise InputError(
            f"{name}: is a system of this run, which `pipeline score` and its like make; choose another "
            "name"
        )
    if (scores is None) == (embeddings is None):
        raise InputError("give --scores FILE, or --embeddings IMAGES CAPTIONS")
    given_scores, files = given.named(scores or ":".join(embeddings or ()), paths.root)
    dataset, split = dataset or settings.run.dataset, split or settings.score.split
    path, file = paths.similarity(dataset, name, split), paths.manifest(dataset)
    request = AddRequest(
        name=name,
        split=split,
        title=" ".join((title or "").split()) or name,
        scores=given_scores,
        files=files,
        distance=distance,
        normalise=normalise,
    )

    def write(draft: Draft) -> str:
        manifest = Manifest.load(file)
        system = given.read(request, paths.root, file)
        named_systems.say_read_as(request.scores, system)
        with Progress(name, manifest.noun, len(system.image_ids)) as bar:
            given.write(draft, system, given.facts(request, manifest), bar.reach)
        return f"{len(system.image_ids)} {manifest.noun}s x {counted(len(system.caption_ids), 'caption')} of {split}"

    unless_up_to_date(path, request, {"manifest": reference(file, dataset)}, write, if_changed)
