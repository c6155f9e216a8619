"""Make new similarities from a system's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.errors import InputError
from pipeline.paths import Paths, rescored
from stages import options
from stages.progress import Progress

if TYPE_CHECKING:
    from pipeline.files import asked, code
    from pipeline.rescoring import RESCORERS, stored
    from pipeline.scores import similarity_store
    from pipeline.scores.similarity_store import SimilarityStore
    from pipeline.settings import Named, Settings

ROOMS = ("pipeline.rescoring", "pipeline.retrieval", "pipeline.scores")


@click.command
@click.argument("system", required=False)
@click.option("--by", "name", metavar="NAME", help="A rescorer: csls, or one of run.rescorers with its options.")
@options.dataset
@options.with_settings
def command(paths: Paths, settings: Settings, system: str | None, name: str | None, dataset: str | None) -> None:
    """Rescore SYSTEM by one rescorer; without SYSTEM, all heads and ensembles of the run by each of run.rescorers.

    csls takes off each image's and caption's mean similarity to its nearest neighbours. The new system is called
    SYSTEM+NAME. Running again does nothing where its source is the same.

    Example: pipeline rescore vse2ad-RGP-bigru-s0 --by csls
    """
    dataset = dataset or settings.run.dataset
    if system is None:
        options.refuse("name", why="goes with a SYSTEM")
        for made, (source, step) in rescored(settings.run).items():
            _rescore(paths, dataset, made, source, step)
        return
    if name is None:
        raise InputError(f"pipeline rescore {system}: expected --by NAME, of {', '.join(RESCORERS)}")
    steps = {step.name: step for step in settings.run.rescorers}
    _rescore(paths, dataset, f"{system}+{name}", system, steps.get(name, Named(name=name)))


def _rescore(paths: Paths, dataset: str, name: str, system: str, step: Named) -> None:
    """Write one rescored system, unless it is there and its source is as it was."""
    path, source = paths.similarity(dataset, name), SimilarityStore.open(paths.similarity(dataset, system))
    made = stored.made_from(source, step.name, step.options)
    modules = [RESCORERS.module(step.name)] if step.name in RESCORERS else []
    request = {"made_from": made, "code": code.of([*modules, "pipeline.scores.similarity_store"], ROOMS)}
    if asked.is_done(path, request):
        click.echo(f"{path}: nothing to do")
        return
    scores = stored.compute(source.check(), made)
    with Progress(name, "image", len(source.image_ids)) as bar:
        similarity_store.save(path, [scores], source.image_ids, source.caption_ids, source.caption_image, made,
                              progress=bar.reach)
    asked.write(path, request, asked.files(path))
    click.echo(f"{path}: {step.name} of {system}")
