"""The systems beside a run's own that commands made by name: `rerank`, `ensemble`, `rescore`, `score --system`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from pipeline.parts.errors import InputError
from pipeline.provenance import record
from pipeline.settings import Settings
from pipeline.settings.paths import Paths, system, systems
from pipeline.systems.scores.system import System


def found(paths: Paths, settings: Settings, run: Mapping[str, System]) -> dict[str, System]:
    """Open the systems that lie beside a run's own, and say which are left out.

    Heads and the papers' ensembles of other recipes, features, texts or seeds than the run's are no part of it, nor is
    what is called after them.

    Args:
        paths: Where files lie.
        settings: The run.
        run: Its own systems.

    Returns:
        Name -> store, of those that fit the run's systems and are as their members are now.
    """
    place = partial(paths.similarity, settings.run.dataset, split=settings.score.split)
    known, others = systems(settings.run), {}
    for path in sorted(place("").parent.glob("*.zarr")):
        if path.stem in known:
            continue
        try:
            store = System.open(path)
            if not _is_of_another_run(path.stem, store.made_from, known):
                _refuse_unfit(paths, store, run)
                others[path.stem] = store
        except InputError as error:
            click.echo(f"warning: left out: {error}", err=True)
    return others


def _is_of_another_run(name: str, made_from: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    visual = made_from["ensemble"] or next(iter(made_from["features"]), "")
    base = system(made_from["recipe"], visual, made_from["text"], made_from["seed"])
    return base not in known and f"{name}+".startswith(f"{base}+")


def _refuse_unfit(paths: Paths, store: System, run: Mapping[str, System]) -> None:
    """Refuse what cannot be measured beside the run's systems, or is older than its members."""
    made, path = store.made_from, store.path
    if made.get("trained_on", made["dataset"]) != made["dataset"]:
        raise InputError(f"{path}: its head was trained on {made['trained_on']}; `pipeline evaluate --system "
                         f"{path} --record` keeps its numbers for the tables")
    if made.reranked.get("distractors"):
        raise InputError(f"{path}: was reranked among distractors; measure it with --system and --distractors")
    if not made["members"]:
        raise InputError(f"{path}: is made of matrices of which nothing is known; measure it with --system")
    first = next(iter(run.values()))
    stores = record.with_parts({first.path.stem: first, path.stem: store})
    record.refuse_stale(stores, lambda head: paths.head(made["dataset"], head))
