"""Write what each step of the run depends on besides files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from pipeline import artefacts, heads as networks, manifest, training
from pipeline.dual_encoders import DUAL_ENCODERS
from pipeline.evaluation.metrics import METRICS
from pipeline.evaluation.retrieval import of_packages
from pipeline.features import extraction
from pipeline.features.extraction import needs
from pipeline.files import atomic, digest
from pipeline.heads.pooling import POOLINGS
from pipeline.manifest.build import READERS
from pipeline.parts.errors import InputError, counted
from pipeline.parts.lazy import LookupTable
from pipeline.report.figures import FIGURES
from pipeline.report.tables import TABLES
from pipeline.settings import Settings
from pipeline.settings.features import FEATURES
from pipeline.settings.paths import Paths, ensembles, heads, reranked, system_name, systems
from pipeline.systems import reranking, rescoring
from pipeline.systems.scores.judged import Truth
from stages.progress import say


def write_plan(paths: Paths, settings: Settings) -> None:
    """Write results/plan: for each step of the run a file of its settings and of the versions of its parts."""
    for name, lacking in settings.run.left_out.items():
        say(f"{name}: left out, run.features has no {' and no '.join(lacking)}")
    run = settings.run
    _check(paths, settings)
    absent = [feature for feature in run.features if not paths.features(run.dataset, feature).exists()]
    needs.refuse(needs.missing(settings, run.dataset, absent), run.dataset)
    plan = _plan(paths, settings)
    steps = {step: part for step, part in plan.items() if step not in ("extract", "train")}
    steps |= {f"{step}/{name}": part for step in ("extract", "train") for name, part in plan[step].items()}
    files = {paths.plan / f"{step}.json": part for step, part in steps.items()}
    with atomic.exclusive(paths.plan):
        for file, part in files.items():
            atomic.write_json(file, part)
        for file in {*paths.plan.rglob("*.json")} - files.keys():  # of steps that the run has no more
            file.unlink()
    say(f"{paths.plan}: {counted(len(plan['extract']), 'feature')}, {counted(len(plan['train']), 'head')}, "
        f"{counted(len(ensembles(run)), 'ensemble')}", err=False)


def _check(paths: Paths, settings: Settings) -> None:
    """Refuse at once what later steps would refuse after hours: unknown data sets, tables, figures, parts of heads."""
    manifest.refuse_unknown(settings.run.dataset, paths.root)
    for known, names in ((TABLES, settings.tables), (FIGURES, settings.figures)):
        for name in names:
            known.module(name)  # which refuses an unknown one
    run = settings.run
    for recipe in run.recipes if rescoring.embedded_heads(run) else ():
        if not networks.embeds(settings.recipe(recipe)):
            raise InputError(f"run.rescorers: heads of {recipe} score pairs and have no vectors of train; say "
                             "`bank: test`, or leave one of the two out")
    source = reranking.PairSource(paths, run.dataset, run.dataset, run.dataset, split=settings.score.split)
    for _, other, _ in reranked(run).values():
        if other not in systems(run):
            reranking.resolve(other, source)
    new = {recipe for name, (recipe, *_) in heads(run).items() if not paths.head(run.dataset, name).exists()}
    for recipe in sorted(new):
        training.check_parts(settings.recipe(recipe), settings.training_of(run.dataset).dimension)


def _plan(paths: Paths, settings: Settings) -> dict[str, Any]:
    """Step -> what it depends on; extraction by feature, training by head."""
    run, card = settings.run, manifest.dataset(settings.run.dataset, paths.root)
    made = {"systems": list(systems(run))}
    shown = made | {"published": _published()}
    requests = {feature: _extract(settings, feature) for feature in run.features}
    return {
        "sample": settings.sample.recorded() | _by("sample"),
        "manifest": card.model_dump(exclude={"unstated"}) | _by("manifest", among=[READERS]),
        "extract": {feature: {"request": request.recorded(), "versions": request.versions()}
                    for feature, request in requests.items()},
        "train": {name: _train(paths, settings, name) for name in heads(run)},
        "score": settings.score.recorded() | made
        | {name: [step.model_dump() for step in getattr(run, name)] for name in ("encoders", "rescorers", "rerank")}
        | _by("scores", "fusions/mean", "reranking", among=[DUAL_ENCODERS, rescoring.RESCORERS, reranking.SCORERS]),
        "evaluate": settings.evaluate.recorded({"block_megabytes"}) | made | {"protocols": card.protocols}
        | {"judgements": Truth.of(settings.evaluate).digest()}
        | _by("evaluation", *of_packages(card.protocols), among=[METRICS]),
        "throughput": _throughput(settings),
        "tables": {"tables": settings.tables, "typesetting": settings.typesetting.recorded({"figure_font"}), **shown}
        | _by("tables", *((TABLES, name) for name in settings.tables)),
        "figures": {"figures": settings.figures, "figure_font": settings.typesetting.figure_font, **shown}
        | _by("figures", *((FIGURES, name) for name in settings.figures)),
        "report": {"report": settings.report.recorded(), **shown} | _by("report")
        | settings.typesetting.recorded(settings.typesetting.ALWAYS_RECORDED),  # table_bold
    }


def _by(*parts: str | tuple[LookupTable[Any], str], among: Sequence[LookupTable[Any]] = ()) -> dict[str, Any]:
    """The versions of a step's parts; from tables in `among`, of which it may run any part, those that are not 1."""
    others = artefacts.versions(*((table, name) for table in among for name in table))
    return {"versions": artefacts.versions(*parts) | {name: made for name, made in others.items() if made != 1}}


def _extract(settings: Settings, feature: str) -> extraction.ExtractRequest:
    engine = settings.engine_of(settings.run.dataset, feature)
    return extraction.ExtractRequest.of(engine.engine, engine.options,
                                        settings.extract.model_dump(include=extraction.CONTENT))


def _published() -> str:
    """A digest of the numbers that papers print, and of the cards of data sets and weights."""
    folder = resources.files("manifests")
    texts = {file.name: file.read_text(encoding="utf-8") for place in (folder, folder / "published")
             for file in place.iterdir() if file.is_file() and not file.name.endswith(".py")}
    return digest.digest(texts)[:16]


def _train(paths: Paths, settings: Settings, name: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a head depends on, with the heads from which it starts or mines negatives; without where it is trained."""
    if name in above:
        raise InputError(f"{name}: circular dependency: `start` or `pairs.retriever` of "
                         f"{' and '.join(above)} leads back to it; change one of them")
    known, dataset = heads(settings.run), settings.run.dataset
    called, feature, text, seed = known[name]
    recipe = settings.recipe(called)
    others = [system_name(recipe.start, feature, text, seed)] if recipe.start else []
    others += [recipe.pairs.retriever] if recipe.pairs.retriever else []
    rests_on: dict[str, Any] = {}
    for other in others:
        folder = paths.head(dataset, other)
        rests_on[other] = (_train(paths, settings, other, (*above, name)) if other in known else
                           training.HeadArtefact.open(folder).record.identity
                           if training.HeadArtefact.is_finished(folder) else None)
    how = settings.training_of(dataset)
    engine = settings.engine_of(dataset, feature).engine if recipe.finetune and FEATURES[feature].trainable else None
    request = training.TrainRequest.of(called, feature, text, seed, recipe, how, engine=engine)
    pretrained = {} if request.words else {"bert": how.bert}
    return {"request": request.recorded(), "versions": request.versions()} | pretrained | (
        {"rests_on": rests_on} if rests_on else {})


def _throughput(settings: Settings) -> dict[str, Any]:
    """What the times depend on: the settings, and the poolings of all recipes; not how heads are trained."""
    sides = {name: recipe.model_dump(include={"image_pooling", "text_pooling"})
             for name, recipe in settings.recipes.items()}
    poolings = sorted({side["name"] for both in sides.values() for side in both.values()})
    how = settings.training_of(settings.run.dataset)
    return settings.throughput.recorded() | {"poolings": sides, "dimension": how.dimension,
                                               "word_dimension": how.word_dimension} | _by(
        "throughput", *((POOLINGS, name) for name in poolings))
