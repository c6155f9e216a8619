"""Make new similarities from a system's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pipeline.parts.errors import InputError
from pipeline.settings.paths import Paths, rescored
from stages import options
from stages.progress import Progress, unless_done

if TYPE_CHECKING:
    from pipeline.files import record
    from pipeline.settings import Settings
    from pipeline.settings.run import Rescore
    from pipeline.systems.rescoring import RESCORERS, stored
    from pipeline.systems.scores.system import System


@click.command
@click.argument("system", required=False, shell_complete=options.names("scored"))
@click.option("--by", "name", metavar="NAME",
              help="A rescorer: csls, nnn, inverted-softmax, qb-norm, dual-softmax or db-norm. Its options are "
                   "those of run.rescorers, if it stands there.")
@click.option("--bank", type=click.Choice(["train", "test"]),
              help="The queries that tell which candidates are hubs: the captions and images of train, which `pipeline "
                   "embed` embeds, or those that are ranked. Tables mark what was rescored by test.")
@options.dataset
@options.with_settings
def command(paths: Paths, settings: Settings, system: str | None, name: str | None, bank: str | None,
            dataset: str | None) -> None:
    """Rescore SYSTEM by one rescorer; without SYSTEM, all heads and ensembles of the run by each of run.rescorers.

    Rescorers correct hubs: images and captions that are similar to everything. csls subtracts each image's and
    caption's mean similarity to its nearest neighbours, nnn to the nearest queries of a bank; the others are softmaxes
    over a bank. The new system is called SYSTEM+NAME, or SYSTEM+NAME-test with --bank test. Running again does nothing
    where its source is the same.

    Example: pipeline rescore vse2ad-RGP-bigru-s0 --by csls
    """
    dataset = dataset or settings.run.dataset
    if system is None:
        options.refuse("name", "bank", why="goes with a SYSTEM")
        for made, (source, step) in rescored(settings.run).items():
            _rescore(paths, dataset, settings.score.split, made, source, step)
        return
    if name is None:
        raise InputError(f"pipeline rescore {system}: expected --by NAME, of {', '.join(RESCORERS)}")
    steps = {step.name: step for step in settings.run.rescorers}
    step = steps.get(name, Rescore(name=name))
    if bank:
        step = Rescore(**step.model_dump() | {"bank": bank})
    _rescore(paths, dataset, settings.score.split, step.applied_to(system), system, step)


def _rescore(paths: Paths, dataset: str, split: str, name: str, system: str, step: Rescore) -> None:
    """Write one rescored system, unless it is there and its source is as it was."""
    path = paths.similarity(dataset, name, split)
    source = System.open(paths.similarity(dataset, system, split))
    made = stored.made_from(source, step.name, step.options, paths)
    request = {"made_from": made, "versions": record.versions((RESCORERS, step.name), "scores")}

    def rescore() -> str:
        made_anew = stored.compute(source.check(), made, paths)
        with Progress(name, "image", len(source.image_ids)) as bar:
            made_anew.save(path, made, progress=bar.reach)
        return f"{step.name} of {system}"

    unless_done(path, request, rescore)
