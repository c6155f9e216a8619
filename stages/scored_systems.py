"""The run's scored systems and those made by name, checked to fit together; their photographs and
right answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.foundation.manifest import Manifest, dataset
from pipeline.foundation.parts.errors import InputError, few
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.features import of_ensemble
from pipeline.foundation.settings.paths import (
    Paths,
    ensembles,
    of_seed,
    reranked,
    rescored,
    system_name,
    systems,
)
from pipeline.foundation.settings.run import Rescore
from pipeline.judge.systems.rescoring import RESCORERS
from pipeline.judge.systems.scores.items import Items
from pipeline.judge.systems.scores.judged import Truth, judge, with_languages
from pipeline.judge.systems.scores.made import (
    Ensemble,
    Made,
    OfGiven,
    Reranked,
    no_vectors,
    papers_ensemble,
)
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance import checks, results
from pipeline.run.provenance.results import Result
from stages.progress import say

if TYPE_CHECKING:
    from pipeline.run.report.examples import Gallery


def metrics(paths: Paths) -> dict[str, Result]:
    """The content of results/metrics.json, checked against what made it."""
    entries = results.read(paths.metrics)
    results.refuse_stale(paths.metrics, entries, paths.similarity)
    return entries


def scored(paths: Paths, settings: Settings) -> dict[str, System]:
    """Open the run's systems that are scored, and systems made by name."""
    run = settings.run
    unscored = _unscored(paths, settings)
    opened = {}
    for name in systems(run):
        if name not in unscored:
            path = paths.similarity(run.dataset, name, settings.score.split)
            opened[name] = System.open_named(path)
    if opened:
        checks.refuse_stale(opened, paths)
    return opened | _made_by_name(paths, settings, opened)


def folder_of_stores(paths: Paths, settings: Settings) -> Path:
    """The folder of what is scored on the run's data set and split."""
    return paths.similarity(settings.run.dataset, "", settings.score.split).parent


def of_other_data(paths: Paths, settings: Settings) -> dict[str, list[str]]:
    """What is scored on the run's data set by heads that were trained on another one: the name of
    that one -> names of systems. They are measured by name alone.
    """
    known = systems(settings.run)
    names: dict[str, list[str]] = {}
    for path in sorted(folder_of_stores(paths, settings).glob("*.zarr")):
        if path.stem in known:
            continue
        with suppress(InputError):  # who measures what is scored names the damaged ones
            made = System.open_named(path).made_from
            if made.training_data != made.dataset:
                names.setdefault(made.training_data, []).append(path.stem)
    return names


def twice(systems: Mapping[str, System]) -> dict[str, str]:
    """The systems that are there under a second name: that of a lone head -> that of its ensemble
    of one, under which tables have it. Seeds of a head stay together: none, if one has no ensemble.
    """
    ensembles = []
    lone = {}
    for name, system in systems.items():
        origin = system.made_from.origin
        if not isinstance(origin, Ensemble):
            lone[name] = system
        elif not origin.is_own:
            ensembles.append((name, _scored_by(system)))
    second_names = {}
    without_ensemble = set()
    for name, system in lone.items():
        same = [ensemble for ensemble, scored_by in ensembles if scored_by == _scored_by(system)]
        if same:
            second_names[name] = same[0]
        else:
            without_ensemble.add(system.made_from.without_seed)
    for name in list(second_names):
        if lone[name].made_from.without_seed in without_ensemble:
            del second_names[name]
    return second_names


def _scored_by(system: System) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    """The heads behind a system, their checkpoints, and what was done to their scores."""
    made = system.made_from
    return made.heads, made.checkpoints, made.steps


def _unscored(paths: Paths, settings: Settings) -> list[str]:
    run = settings.run
    unscored = []
    for name in systems(run):
        path = paths.similarity(run.dataset, name, settings.score.split)
        if not path.exists():
            unscored.append(name)
    return unscored


def missing(paths: Paths, settings: Settings) -> str:
    """Name the run's systems that are not scored, with the commands that make them; "" if there are
    none.
    """
    run = settings.run
    command_of = dict.fromkeys(reranked(run), "rerank")
    command_of |= dict.fromkeys(rescored(run), "rescore")
    command_of |= dict.fromkeys(ensembles(run), "ensemble")
    by_command: dict[str, list[str]] = {}
    for name in _unscored(paths, settings):
        command = command_of.get(name, "score")
        by_command.setdefault(command, []).append(name)
    parts = [f"{few(names)} (`pipeline {command}`)" for command, names in by_command.items()]
    return "; ".join(parts)


def _made_by_name(paths: Paths, settings: Settings, run: Mapping[str, System]) -> dict[str, System]:
    """Open what `add`, `rerank`, `ensemble`, `rescore` and `score --system` made by name; say which
    are left out.

    What heads made that were trained on another data set is left out.
    Heads and the papers' ensembles of other recipes of the settings, features, texts or seeds than
    the run's are left out, and so are systems made from them. run: its own systems.
    """
    known = systems(settings.run)
    by_name: dict[str, System] = {}
    not_of_run: list[str] = []
    folder = folder_of_stores(paths, settings)
    elsewhere = of_other_data(paths, settings)
    trained_elsewhere = {*chain.from_iterable(elsewhere.values())}
    for path in sorted(folder.glob("*.zarr")):
        if path.stem in known or path.stem in trained_elsewhere:
            continue
        try:
            store = System.open_named(path)
            if _is_beside_run(store.made_from, settings, known):
                _refuse_unfit(paths, store, {**run, **by_name})
                by_name[path.stem] = store
            else:
                not_of_run.append(path.stem)
        except InputError as error:
            say(f"warning: left out: {error}")
    for data, names in elsewhere.items():
        say(
            f"warning: left out, of heads trained on {data}: {few(names)}; `pipeline evaluate --system "
            f"{folder / names[0]}.zarr --record` keeps the numbers of one for the tables"
        )
    if not_of_run:
        say(
            f"scored, but not in `run` of params.yaml, and left out: {few(not_of_run)}; add their recipes, features, "
            "texts and seeds to `run`, or name them: `pipeline evaluate NAME NAME`"
        )
    return by_name


def _is_beside_run(made: Made, settings: Settings, known: Collection[str]) -> bool:
    """Whether a system was made by name, of another recipe, or of the run's systems."""
    if made.is_named:
        return True
    if made.recipe not in settings.recipes:
        return True
    return made.seed is not None and of_seed(made.first, made.seed) in known


def _refuse_unfit(paths: Paths, store: System, scored: Mapping[str, System]) -> None:
    """Refuse a system that cannot be measured with others that are scored, or that is older than
    its members.
    """
    made = store.made_from
    path = store.path
    if isinstance(made, Reranked) and made.distractors:
        raise InputError(
            f"{path}: was reranked among distractors; measure it with `pipeline evaluate --system "
            f"{path} --distractors STORE`"
        )
    if not made.members:
        raise InputError(
            f"{path}: is made of plain matrices; fuse what `pipeline add` makes of them, or measure it "
            f"with `pipeline evaluate --system {path}`"
        )
    first = next(iter(scored.values()), store)
    checks.refuse_stale({first.path.stem: first, path.stem: store}, paths)


def refuse_without_vectors(
    paths: Paths, settings: Settings, dataset: str, name: str, verb: str
) -> None:
    """Refuse a system made of others' scores, there or not, if a head is needed. verb: what the
    command does.
    """
    store = paths.similarity(dataset, name, settings.score.split)
    if paths.head(dataset, name).exists():
        return
    if store.exists():
        made = System.open(store).made_from
        made.refuse_vectors(name, verb)
        if isinstance(made, OfGiven):
            raise InputError(
                f"{name}: was added with its scores, and there is no network here that could {verb} more"
            )
    run = settings.run
    planned = ensembles(run).get(name)
    if planned:
        features = of_ensemble(planned.visual)
        heads = [planned._replace(visual=feature).name for feature in features]
        command = papers_ensemble(planned.visual, planned.recipe, planned.text, planned.seed)
        raise no_vectors(name, command, verb, heads)
    made_of = {}
    for system, step in product(systems(run), RESCORERS):
        made_of[Rescore(name=step).applied_to(system)] = system
    for made_name, (rescored_system, _) in rescored(run).items():
        made_of[made_name] = rescored_system
    for made_name, (retriever, *_) in reranked(run).items():
        made_of[made_name] = retriever
    source = made_of.get(name)
    if source:
        raise InputError(
            f"{name}: is not a head; `pipeline rescore` or `pipeline rerank` makes it of the scores of "
            f"{source}"
        )


def first(settings: Settings, opened: Mapping[str, System]) -> dict[str, System]:
    """The scored systems of the first recipe, text encoder and seed of the run that has any."""
    run = settings.run
    for recipe, text, seed in product(run.recipes, run.texts, run.seeds):
        existing = {}
        for visual in (*run.ensembles, *run.features):
            name = system_name(recipe, visual, text, seed)
            if name in opened:
                existing[visual] = opened[name]
        if existing:
            return existing
    return {}


def run_summary(settings: Settings) -> str:
    """Describe the run, for a message that its scores are missing."""
    run = settings.run
    return (
        f"recipe {', '.join(run.recipes)}; text encoder {', '.join(run.texts)}; "
        f"seed {', '.join(map(str, run.seeds))}"
    )


def photographs(paths: Paths, settings: Settings, given: Path | None) -> Path:
    return given or Manifest.load(paths.manifest(settings.run.dataset)).images_folder


def truth(paths: Paths, settings: Settings, entries: Mapping[str, Result]) -> Truth:
    """The right answers by which results/metrics.json was measured; without entries, those of the
    settings.
    """
    measured = next(iter(entries.values()), None)
    if measured is None:
        card = dataset(settings.run.dataset, paths.root)
        return Truth.of(settings.evaluate).or_of(card.protocols_of(settings.score.split))
    right = measured.truth
    if right.digest() != measured.request.judgements:
        raise InputError(
            f"{right.qrels}: changed since {paths.metrics} was measured; run `pipeline evaluate` again"
        )
    return right


def galleries(
    paths: Paths, settings: Settings, shown: Mapping[str, System], given: Path | None, right: Truth
) -> dict[str, Gallery]:
    """Join systems with their captions and photographs."""
    from pipeline.run.report.examples import Gallery

    if not shown:
        return {}
    manifest = Manifest.load(paths.manifest(settings.run.dataset))
    folder = photographs(paths, settings, given)
    pools = {}
    for visual, store in shown.items():
        pools[visual] = judge(with_languages(store.check(), manifest), right, manifest)
    of_systems = {}
    for visual, pool in pools.items():
        items = Items.of(pool, manifest, folder)
        of_systems[visual] = Gallery.of(pool, items, folder)
    return of_systems
