"""Write what each step of the run depends on besides files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

from pipeline import artefacts, manifest, training
from pipeline.dual_encoders import record as records
from pipeline.evaluation.retrieval import protocol
from pipeline.features import extraction
from pipeline.features.extraction import needs
from pipeline.files import atomic, digest
from pipeline.manifest.build import READERS
from pipeline.parts.errors import InputError, counted
from pipeline.parts.lazy import LookupTable
from pipeline.provenance.results import EvaluateRequest
from pipeline.report.figures import FIGURES
from pipeline.report.tables import TABLES
from pipeline.settings import Encoder, Settings, kinds
from pipeline.settings.features import FEATURES, of_ensemble
from pipeline.settings.paths import (
    Paths,
    encoders,
    ensembles,
    heads,
    reranked,
    rescored,
    system_name,
    systems,
)
from pipeline.systems import reranking, rescoring
from pipeline.systems.fusion.methods import shares
from pipeline.systems.requests import (
    EmbedRequest,
    FuseRequest,
    RerankRequest,
    RescoreRequest,
    ScoreRequest,
)
from pipeline.systems.scores.judged import Truth
from stages.finetune import section
from stages.progress import say
from stages.rerank import own_protocol


def write_plan(paths: Paths, settings: Settings) -> None:
    """Write results/plan: for each step of the run a file of its settings and of the versions of
    its parts.
    """
    for name, lacking in settings.run.left_out.items():
        say(f"{name}: left out, run.features has no {' and no '.join(lacking)}")
    run = settings.run
    _check(paths, settings)
    read = [
        *run.features,
        *([settings.captions_of(run.dataset)] if "features" in run.texts else []),
    ]
    absent = [feature for feature in read if not paths.features(run.dataset, feature).exists()]
    needs.refuse(
        needs.missing(settings, run.dataset, absent), run.dataset, settings.preset_of(run.dataset)
    )
    plan = _plan(paths, settings)
    steps = {step: part for step, part in plan.items() if step not in ("extract", "train")}
    steps |= {
        f"{step}/{name}": part for step in ("extract", "train") for name, part in plan[step].items()
    }
    files = {paths.plan / f"{step}.json": part for step, part in steps.items()}
    with atomic.exclusive(paths.plan):
        for file, part in files.items():
            atomic.write_json(file, part)
        for file in {
            *paths.plan.rglob("*.json")
        } - files.keys():  # of steps that the run has no more
            file.unlink()
    say(
        f"{paths.plan}: {counted(len(plan['extract']), 'feature')}, {counted(len(plan['train']), 'head')}, "
        f"{counted(len(ensembles(run)), 'ensemble')}",
        err=False,
    )


def _check(paths: Paths, settings: Settings) -> None:
    """Refuse at once what later steps would refuse after hours: unknown data sets, tables, figures,
    parts of heads.
    """
    manifest.refuse_unknown(settings.run.dataset, paths.root)
    for known, names in ((TABLES, settings.tables or ()), (FIGURES, settings.figures)):
        for name in names:
            known.module(name)  # which refuses an unknown one
    run = settings.run
    for name in rescoring.embedded_heads(run):
        if not _train_request(settings, name).embeds:
            raise InputError(
                f"run.rescorers: heads of {heads(run)[name].recipe} score pairs and have no vectors of "
                "train; say `bank: test`, or leave one of the two out"
            )
    for encoder in run.encoders:
        if encoder.finetune:
            section(settings, encoder.finetune)
    source = reranking.PairSource(
        paths, run.dataset, run.dataset, run.dataset, split=settings.score.split
    )
    for _, other, _ in reranked(run).values():
        if other not in systems(run):
            reranking.resolve(other, source)
    new = {
        recipe
        for name, (recipe, *_) in heads(run).items()
        if not paths.head(run.dataset, name).exists()
    }
    for recipe in sorted(new):
        training.check_parts(settings.recipe(recipe), settings.training_of(run.dataset).dimension)


def _plan(paths: Paths, settings: Settings) -> dict[str, Any]:
    """Step -> what it depends on; extraction by feature, training by head."""
    run, card = settings.run, manifest.dataset(settings.run.dataset, paths.root)
    made = {"systems": list(systems(run))}
    shown = made | {"published": _published()}
    return {
        "sample": settings.sample.recorded() | _by("sample"),
        "manifest": card.model_dump(exclude={"unstated"}) | _by("manifest", among=[READERS]),
        "extract": {feature: _recorded(_extract(settings, feature)) for feature in run.features},
        "train": {name: _train(paths, settings, name) for name in heads(run)},
        "finetune": {
            encoder.name: _tune(settings, encoder, encoder.finetune)
            for encoder in run.encoders
            if encoder.finetune
        },
        "score": {name: _recorded(request) for name, request in _scores(paths, settings).items()},
        "evaluate": {name: _recorded(_evaluate(paths, settings, name)) for name in systems(run)},
        "throughput": _throughput(settings),
        "tables": {
            "tables": settings.tables,
            "typesetting": settings.typesetting.recorded({"figure_font"}),
            **shown,
        }
        | _by("tables", *((TABLES, name) for name in settings.tables or TABLES)),
        "figures": {
            "figures": settings.figures,
            "figure_font": settings.typesetting.figure_font,
            **shown,
        }
        | _by("figures", *((FIGURES, name) for name in settings.figures)),
        "report": {"report": settings.report.recorded(), **shown}
        | _by("report")
        | settings.typesetting.recorded(settings.typesetting.ALWAYS_RECORDED),  # table_bold
    }


def _recorded(request: artefacts.Request) -> dict[str, Any]:
    return {"request": request.recorded(), "versions": request.versions()}


def _by(
    *parts: str | tuple[LookupTable[Any], str], among: Sequence[LookupTable[Any]] = ()
) -> dict[str, Any]:
    """The versions of a step's parts; from tables in `among`, of which it may run any part, those
    that are not 1.
    """
    of_tables = artefacts.versions(*((table, name) for table in among for name in table))
    return {
        "versions": artefacts.versions(*parts)
        | {name: made for name, made in of_tables.items() if made != 1}
    }


def _extract(settings: Settings, feature: str) -> extraction.ExtractRequest:
    engine = settings.engine_of(settings.run.dataset, feature)
    return extraction.ExtractRequest.of(
        engine.engine, engine.options, settings.extract.model_dump(include=extraction.CONTENT)
    )


def _scores(paths: Paths, settings: Settings) -> dict[str, artefacts.Request]:
    """The requests for the run's systems, and for the vectors that they need.

    A dual encoder's files and splits are only known when it is opened: of its vectors the plan has
    the settings.
    """
    run, how = settings.run, settings.score
    made_by = {name: _train_request(settings, name).versions() for name in heads(run)}
    requests: dict[str, artefacts.Request] = {
        f"vectors of {name}": EmbedRequest.of_head([], how, made_by[name])
        for name in rescoring.embedded_heads(run)
    }
    requests |= {
        f"vectors of {encoder.name}": EmbedRequest(
            splits=[], encoder=encoder.recorded(), made_by=records.versions(encoder.model)
        )
        for encoder in encoders(paths, run)
    }
    requests |= {
        name: ScoreRequest.of_head(name, how, versions) for name, versions in made_by.items()
    }
    requests |= {
        encoder.name: ScoreRequest(name=encoder.name, split=how.split) for encoder in run.encoders
    }
    for name, (_, letters, *_) in ensembles(run).items():
        features = list(of_ensemble(letters))
        requests[name] = FuseRequest(
            name=name, features=features, method="mean", weights=shares(None, len(features))
        )
    requests |= {
        name: RescoreRequest(name=name, rescorer=step.name, options=step.options)
        for name, (_, step) in rescored(run).items()
    }
    return requests | {name: _rerank(paths, settings, name) for name in reranked(run)}


def _rerank(paths: Paths, settings: Settings, name: str) -> RerankRequest:
    run, dataset = settings.run, settings.run.dataset
    _, other, step = reranked(run)[name]
    source = reranking.PairSource(paths, dataset, dataset, dataset, split=settings.score.split)
    by_head = other in heads(run) and _train_request(settings, other).scorer
    scorer = (
        (by_head or "system", other) if other in systems(run) else reranking.resolve(other, source)
    )
    rules = (
        protocol(step.protocol)
        if step.protocol
        else own_protocol(paths, dataset, settings.score.split)
    )
    return RerankRequest(
        name=name,
        scorer=scorer,
        options=step.options,
        protocol=(rules.name, rules.folds),
        k=step.k,
        combine=step.combine,
        weight=step.weight or 0.0,
        made_by=_train_request(settings, other).versions() if by_head else {},
    )


def _evaluate(paths: Paths, settings: Settings, name: str) -> EvaluateRequest:
    run, split = settings.run, settings.score.split
    of_card = manifest.dataset(run.dataset, paths.root).protocols_of(split)
    by = (
        [protocol(_rerank(paths, settings, name).protocol[0])] if name in reranked(run) else of_card
    )
    truth = Truth.of(settings.evaluate).or_of(of_card)
    return EvaluateRequest.of(name, truth.protocols(by), settings.evaluate, truth)


def _published() -> str:
    """A digest of the numbers that papers print, and of the cards of data sets and weights."""
    folder = resources.files("manifests")
    texts = {
        file.name: file.read_text(encoding="utf-8")
        for place in (folder, folder / "published")
        for file in place.iterdir()
        if file.is_file() and not file.name.endswith(".py")
    }
    return digest.digest(texts)[:16]


def _train(
    paths: Paths, settings: Settings, name: str, above: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What a head depends on, with the heads from which it starts or mines negatives; without where
    it is trained.
    """
    if name in above:
        raise InputError(
            f"{name}: circular dependency: `start` or `pairs.retriever` of "
            f"{' and '.join(above)} leads back to it; change one of them"
        )
    known, dataset = heads(settings.run), settings.run.dataset
    called, feature, text, seed = known[name]
    recipe = settings.recipe(called)
    others = [system_name(recipe.start, feature, text, seed)] if recipe.start else []
    others += [recipe.pairs.retriever] if recipe.pairs.retriever else []
    rests_on: dict[str, Any] = {}
    for other in others:
        folder = paths.head(dataset, other)
        if other in known:
            rests_on[other] = _train(paths, settings, other, (*above, name))
        elif training.HeadArtefact.is_finished(folder):
            rests_on[other] = training.HeadArtefact.open(folder).record.identity
        else:
            rests_on[other] = None
    request = _train_request(settings, name)
    pretrained: dict[str, Any] = (
        {} if request.words else {"bert": settings.training_of(dataset).bert}
    )
    if text == "features":
        pretrained = {"captions": _recorded(_extract(settings, settings.captions_of(dataset)))}
    return _recorded(request) | pretrained | ({"rests_on": rests_on} if rests_on else {})


def _train_request(settings: Settings, name: str) -> training.TrainRequest:
    dataset, (called, feature, text, seed) = settings.run.dataset, heads(settings.run)[name]
    recipe = settings.recipe(called)
    engine = (
        settings.engine_of(dataset, feature).engine
        if recipe.finetune and FEATURES[feature].trainable
        else None
    )
    return training.TrainRequest.of(
        called, feature, text, seed, recipe, settings.training_of(dataset), engine=engine
    )


def _tune(settings: Settings, encoder: Encoder, recipe: str) -> dict[str, Any]:
    """What an encoder that is trained on depends on. The files of its base are only known when it
    is opened.
    """
    from pipeline.dual_encoders.tuning.job import TuneRequest  # and with it torch

    request = TuneRequest.of(
        encoder.model, recipe, settings.run.seeds[0], section(settings, recipe), encoder.prompt
    )
    return _recorded(request) | {"base": encoder.model}


def _throughput(settings: Settings) -> dict[str, Any]:
    """What the times depend on: the settings, and the poolings of all recipes; not how heads are
    trained.
    """
    sides = {
        name: recipe.model_dump(include={"image_pooling", "text_pooling"})
        for name, recipe in settings.recipes.items()
    }
    poolings = sorted({side["name"] for both in sides.values() for side in both.values()})
    how = settings.training_of(settings.run.dataset)
    return (
        settings.throughput.recorded()
        | {"poolings": sides, "dimension": how.dimension, "word_dimension": how.word_dimension}
        | _by("throughput", *((kinds.TABLES["poolings"], name) for name in poolings))
    )
