"""Write what each step of the run depends on besides files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from pipeline.paths import Paths, ensembles, heads, reranked, system, systems
from stages.options import with_settings

if TYPE_CHECKING:
    from pipeline import extraction, manifest, plugins, reranking, rescoring, training
    from pipeline import heads as networks
    from pipeline.errors import InputError, unknown
    from pipeline.extraction import needs
    from pipeline.files import code
    from pipeline.files.atomic import write_text
    from pipeline.files.digest import digest, sha256
    from pipeline.heads.pooling import POOLINGS
    from pipeline.report.figures import FIGURES
    from pipeline.report.tables import TABLES
    from pipeline.reranking.base import PairSource
    from pipeline.scores.judged import Truth
    from pipeline.settings import Settings

ROOMS = ("pipeline", "stages")
PARTS = {"manifest": ("pipeline.manifest", "readers"), "rescore": ("pipeline.rescoring", "rescorers"),
         "embed": ("pipeline.dual_encoders", "dual_encoders"),
         "rerank": ("pipeline.reranking", "scorers"),
         "evaluate": ("pipeline.metrics", "metrics"),
         "tables": ("pipeline.report.tables", "tables"), "figures": ("pipeline.report.figures", "figures")}
"""Command -> the package of the parts that it finds by name, and their kind in installed packages."""


@click.command
@with_settings
def command(paths: Paths, settings: Settings) -> None:
    """Write results/plan: for each step of the run a file of its settings, and a digest of the code that it runs.

    Settings are resolved: a recipe with what its base says, features and training by the data set's preset. The stages
    of dvc.yaml depend on these files, so a changed recipe reruns its own heads alone. results/plan.json has all in one.

    Example: pipeline plan
    """
    for name, lacking in settings.run.left_out.items():
        click.echo(f"{name}: left out, run.features has no {' and no '.join(lacking)}", err=True)
    run = settings.run
    _check(paths, settings)
    absent = [feature for feature in run.features if not paths.features(run.dataset, feature).exists()]
    needs.refuse(needs.missing(settings, run.dataset, absent), run.dataset)
    plan = _plan(paths, settings)
    write_text(paths.plan, json.dumps(plan, indent=1, ensure_ascii=False))
    _write_steps(paths, plan)
    click.echo(f"{paths.plan}: {len(plan['extract'])} features, {len(plan['train'])} heads, "
               f"{len(ensembles(run))} ensembles")


def _write_steps(paths: Paths, plan: dict[str, Any]) -> None:
    """Write what each step depends on into a file of its own, and remove the files of steps that are no more."""
    steps = {step: part for step, part in plan.items() if step not in ("extract", "train")}
    steps |= {f"{step}/{name}": part for step in ("extract", "train") for name, part in plan[step].items()}
    files = {paths.plans / f"{step}.json": part for step, part in steps.items()}
    for file, part in files.items():
        write_text(file, json.dumps(part, indent=1, ensure_ascii=False))
    for file in {*paths.plans.rglob("*.json")} - files.keys():
        file.unlink()


def _check(paths: Paths, settings: Settings) -> None:
    """Refuse now what later steps would refuse after hours: unknown data sets, tables, figures, parts of new heads."""
    manifest.refuse_unknown(settings.run.dataset, paths.root)
    for kind, names, known in (("table", settings.tables, TABLES), ("figure", settings.figures, FIGURES)):
        for name in names:
            if name not in known:
                raise unknown(kind, name, known)
    run = settings.run
    if rescoring.embedded_heads(run):
        for recipe in run.recipes:
            if not networks.embeds(settings.recipe(recipe)):
                raise InputError(f"run.rescorers: heads of {recipe} score pairs and have no vectors of train; say "
                                 "`bank: test`, or leave one of the two out")
    source = PairSource(paths, run.dataset, run.dataset, run.dataset, split=settings.score.split)
    for _, other, _ in reranked(run).values():
        if other not in systems(run):
            reranking.resolve(other, source)
    new = {recipe for name, (recipe, *_) in heads(run).items() if not paths.head(run.dataset, name).exists()}
    for recipe in sorted(new):
        training.check_parts(settings.recipe(recipe), settings.training_of(run.dataset).dimension)


def _plan(paths: Paths, settings: Settings) -> dict[str, Any]:
    """Step -> what it depends on; of extraction by feature, of training by head."""
    run, card = settings.run, manifest.dataset(settings.run.dataset, paths.root)
    made = {"systems": list(systems(run))}
    shown = made | { "published": code.data("manifests")}
    print_ = {"typesetting": settings.typesetting.model_dump()}
    return {
        "sample": settings.sample.model_dump() | _code("sample"),
        "manifest": card.model_dump() | _code("manifest"),
        "extract": {feature: _extract(settings, feature) for feature in run.features},
        "train": {name: _train(paths, settings, name) for name in heads(run)},
        "score": settings.score.model_dump() | made
        | {name: [step.model_dump() for step in getattr(run, name)] for name in ("encoders", "rescorers", "rerank")}
        | _code("embed", "score", "ensemble", "rescore", "rerank"),
        "evaluate": settings.evaluate.model_dump(exclude={"block_megabytes"}) | made | {"protocols": card.protocols}
        | {"judgements": Truth.of(settings.evaluate).digest()} | _code("evaluate"),
        "throughput": _throughput(settings),
        "tables": {"tables": settings.tables, **print_, **shown} | _code("tables"),
        "figures": {"figures": settings.figures, **print_, **shown} | _code("figures"),
        "report": {"report": settings.report.model_dump(), **shown} | _code("report"),
    }


def _code(*commands: str, modules: tuple[str, ...] = ()) -> dict[str, str]:
    """A digest of the code that commands reach; modules: which are imported by a name in a table."""
    named = [PARTS[name] for name in commands if name in PARTS]
    others = [offer.place.partition(":")[0] for _, kind in named for offer in plugins.offered(kind).values()]
    reached = code.of([*(f"stages.{name}" for name in commands), *modules, *others], ROOMS, [room for room, _ in named])
    return {"code": _short(reached)}


def _short(made_by: dict[str, str]) -> str:
    return digest(made_by)[:16]


def _extract(settings: Settings, feature: str) -> dict[str, Any]:
    """What features depend on; not where and how fast they are computed, nor how they lie on disk."""
    engine = settings.engine_of(settings.run.dataset, feature)
    return engine.model_dump() | settings.extract.model_dump(include=extraction.CONTENT) | {
        "code": _short(extraction.made_by(engine.engine))}


def _train(paths: Paths, settings: Settings, name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a head depends on; not where it is trained. With it the heads that it starts from and seeks negatives by."""
    if name in above:
        raise InputError(f"{name}: needs itself first, by start or pairs.retriever of {' and '.join(above)}")
    known, dataset = heads(settings.run), settings.run.dataset
    called, feature, text, seed = known[name]
    recipe = settings.recipe(called)
    others = [system(recipe.start, feature, text, seed)] if recipe.start else []
    others += [recipe.pairs.retriever] if recipe.pairs.retriever else []
    rests_on = {other: _train(paths, settings, other, (*above, name)) if other in known else
                {"checkpoint": sha256(file)} if (file := paths.head(dataset, other) / "best.safetensors").is_file()
                else None for other in others}
    how = settings.training_of(dataset).recorded(exclude={"device", "pieces", "processes"})
    return {"recipe": recipe.recorded(), "training": how, "code": _short(training.made_by(text, recipe))} | (
        {"rests_on": rests_on} if rests_on else {})


def _throughput(settings: Settings) -> dict[str, Any]:
    """What is timed: the poolings of all recipes, which has no part in how they are trained."""
    sides = {name: recipe.model_dump(include={"image_pooling", "text_pooling"})
             for name, recipe in settings.recipes.items()}
    poolings = sorted({POOLINGS.module(side["name"]) for both in sides.values() for side in both.values()})
    how = settings.training_of(settings.run.dataset)
    return settings.throughput.model_dump() | {"poolings": sides, "dimension": how.dimension,
                                               "word_dimension": how.word_dimension} | _code(
        "throughput", modules=tuple(poolings))
