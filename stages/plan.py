"""Write what each step of the run depends on besides files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from pipeline.foundation import artefacts, manifest
from pipeline.foundation.evaluation.retrieval import Protocol, protocol
from pipeline.foundation.files import atomic, digest
from pipeline.foundation.manifest.build import READERS
from pipeline.foundation.parts.errors import InputError, counted
from pipeline.foundation.parts.lazy import LookupTable
from pipeline.foundation.settings import Encoder, Settings, kinds
from pipeline.foundation.settings.features import FEATURES, of_ensemble
from pipeline.foundation.settings.paths import (
    Paths,
    encoders,
    ensembles,
    heads,
    reranked,
    rescored,
    system_name,
    systems,
)
from pipeline.judge.systems import reranking, rescoring
from pipeline.judge.systems.fusion.methods import shares
from pipeline.judge.systems.requests import (
    EmbedRequest,
    FuseRequest,
    RerankRequest,
    RescoreRequest,
    ScoreRequest,
)
from pipeline.judge.systems.scores.judged import Truth
from pipeline.make import training
from pipeline.make.dual_encoders import record as records
from pipeline.make.features import extraction
from pipeline.make.features.extraction import needs
from pipeline.run.provenance.results import EvaluateRequest
from pipeline.run.report.figures import FIGURES
from pipeline.run.report.tables import TABLES
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
    read = list(run.features)
    if "features" in run.texts:
        read.append(settings.captions_of(run.dataset))
    absent = []
    for feature in read:
        if not paths.features(run.dataset, feature).exists():
            absent.append(feature)
    missing = needs.missing(settings, run.dataset, absent)
    needs.refuse(missing, run.dataset, settings.preset_of(run.dataset))
    plan = _plan(paths, settings)
    files = {}
    for step, part in plan.items():
        if step in ("extract", "train"):
            for name, part_of_name in part.items():
                files[paths.plan / step / f"{name}.json"] = part_of_name
        else:
            files[paths.plan / f"{step}.json"] = part
    with atomic.exclusive(paths.plan):
        for file, part in files.items():
            atomic.write_json(file, part)
        for file in list(paths.plan.rglob("*.json")):
            if file not in files:  # of a step that the run has no more
                file.unlink()
    features = counted(len(plan["extract"]), "feature")
    trained = counted(len(plan["train"]), "head")
    fused = counted(len(ensembles(run)), "ensemble")
    say(f"{paths.plan}: {features}, {trained}, {fused}", err=False)


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
    new_recipes = set()
    for name, (recipe, *_) in heads(run).items():
        if not paths.head(run.dataset, name).exists():
            new_recipes.add(recipe)
    dimension = settings.training_of(run.dataset).dimension
    for recipe in sorted(new_recipes):
        training.check_parts(settings.recipe(recipe), dimension)


def _plan(paths: Paths, settings: Settings) -> dict[str, Any]:
    """Step -> what it depends on; extraction by feature, training by head."""
    run = settings.run
    card = manifest.dataset(run.dataset, paths.root)
    shown = {"systems": list(systems(run)), "published": _published()}
    extracted = {name: _recorded(_extract(settings, name)) for name in run.features}
    trained = {name: _train(paths, settings, name) for name in heads(run)}
    scored = {name: _recorded(request) for name, request in _scores(paths, settings).items()}
    measured = {name: _recorded(_evaluate(paths, settings, name)) for name in systems(run)}
    tuned = {}
    for encoder in run.encoders:
        if encoder.finetune:
            tuned[encoder.name] = _tune(settings, encoder, encoder.finetune)
    tables = {
        "tables": settings.tables,
        "typesetting": settings.typesetting.recorded({"figure_font"}),
        **shown,
    }
    figures = {
        "figures": settings.figures,
        "figure_font": settings.typesetting.figure_font,
        **shown,
    }
    report = {"report": settings.report.recorded(), **shown}
    data = card.model_dump(exclude={"unstated"})
    of_tables = [(TABLES, name) for name in settings.tables or TABLES]
    of_figures = [(FIGURES, name) for name in settings.figures]
    sample = settings.sample.recorded()
    return {
        "sample": sample | _by("sample"),
        "manifest": data | _by("manifest", among=[READERS]),
        "extract": extracted,
        "train": trained,
        "finetune": tuned,
        "score": scored,
        "evaluate": measured,
        "throughput": _throughput(settings),
        "tables": tables | _by("tables", *of_tables),
        "figures": figures | _by("figures", *of_figures),
        "report": report | _by("report"),
    }


def _recorded(request: artefacts.Request) -> dict[str, Any]:
    return {"request": request.recorded(), "versions": request.versions()}


def _by(
    *parts: str | tuple[LookupTable[Any], str], among: Sequence[LookupTable[Any]] = ()
) -> dict[str, Any]:
    """The versions of a step's parts; from tables in `among`, of which it may run any part, those
    that are not 1.
    """
    versions = artefacts.versions(*parts)
    for table in among:
        of_table = artefacts.versions(*((table, name) for name in table))
        for name, version in of_table.items():
            if version != 1:
                versions[name] = version
    return {"versions": versions}


def _extract(settings: Settings, feature: str) -> extraction.ExtractRequest:
    engine = settings.engine_of(settings.run.dataset, feature)
    content = settings.extract.model_dump(include=extraction.CONTENT)
    return extraction.ExtractRequest.of(engine.engine, engine.options, content)


def _scores(paths: Paths, settings: Settings) -> dict[str, artefacts.Request]:
    """The requests for the run's systems, and for the vectors that they need.

    A dual encoder's files and splits are only known when it is opened: of its vectors the plan has
    the settings.
    """
    run = settings.run
    how = settings.score
    made_by = {name: _train_request(settings, name).versions() for name in heads(run)}
    requests: dict[str, artefacts.Request] = {}
    for name in rescoring.embedded_heads(run):
        requests[f"vectors of {name}"] = EmbedRequest.of_head([], how, made_by[name])
    for encoder in encoders(paths, run):
        versions_of_encoder = records.versions(encoder.model)
        requests[f"vectors of {encoder.name}"] = EmbedRequest(
            splits=[], encoder=encoder.recorded(), made_by=versions_of_encoder
        )
    for name, versions in made_by.items():
        requests[name] = ScoreRequest.of_head(name, how, versions)
    for encoder in run.encoders:
        requests[encoder.name] = ScoreRequest(name=encoder.name, split=how.split)
    for name, (_, letters, *_) in ensembles(run).items():
        features = list(of_ensemble(letters))
        weights = shares(None, len(features))
        requests[name] = FuseRequest(name=name, features=features, method="mean", weights=weights)
    for name, (_, step) in rescored(run).items():
        requests[name] = RescoreRequest(name=name, rescorer=step.name, options=step.options)
    for name in reranked(run):
        requests[name] = _rerank(paths, settings, name)
    return requests


def _rerank(paths: Paths, settings: Settings, name: str) -> RerankRequest:
    run = settings.run
    split = settings.score.split
    _, other, step = reranked(run)[name]
    versions: Mapping[str, int | str] = {}
    if other in systems(run):
        scorer = ("system", other)
        if other in heads(run):
            trained = _train_request(settings, other)
            if trained.scorer:
                scorer = (trained.scorer, other)
                versions = trained.versions()
    else:
        source = reranking.PairSource(paths, run.dataset, run.dataset, run.dataset, split=split)
        scorer = reranking.resolve(other, source)
    rules = protocol(step.protocol) if step.protocol else own_protocol(paths, run.dataset, split)
    return RerankRequest(
        name=name,
        scorer=scorer,
        options=step.options,
        protocol=(rules.name, rules.folds),
        k=step.k,
        combine=step.combine,
        weight=step.weight or 0.0,
        made_by=versions,
    )


def _evaluate(paths: Paths, settings: Settings, name: str) -> EvaluateRequest:
    run = settings.run
    of_card = manifest.dataset(run.dataset, paths.root).protocols_of(settings.score.split)
    by: Sequence[str | Protocol] = of_card
    if name in reranked(run):
        rules, _ = _rerank(paths, settings, name).protocol
        by = [protocol(rules)]
    truth = Truth.of(settings.evaluate).or_of(of_card)
    return EvaluateRequest.of(name, truth.protocols(by), settings.evaluate, truth)


def _published() -> str:
    """A digest of the numbers that papers print, and of the cards of data sets and weights."""
    folder = resources.files("manifests")
    texts = {}
    for place in (folder, folder / "published"):
        for file in place.iterdir():
            is_code = file.name.endswith(".py")
            if file.is_file() and not is_code:
                texts[file.name] = file.read_text(encoding="utf-8")
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
    known = heads(settings.run)
    dataset = settings.run.dataset
    called, feature, text, seed = known[name]
    recipe = settings.recipe(called)
    others = []
    if recipe.start:
        others.append(system_name(recipe.start, feature, text, seed))
    if recipe.pairs.retriever:
        others.append(recipe.pairs.retriever)
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
    planned = _recorded(request)
    if text == "features":
        planned["captions"] = _recorded(_extract(settings, settings.captions_of(dataset)))
    elif not request.words:
        planned["bert"] = settings.training_of(dataset).bert
    if rests_on:
        planned["rests_on"] = rests_on
    return planned


def _train_request(settings: Settings, name: str) -> training.TrainRequest:
    dataset = settings.run.dataset
    called, feature, text, seed = heads(settings.run)[name]
    recipe = settings.recipe(called)
    engine = None
    if recipe.finetune and FEATURES[feature].trainable:
        engine = settings.engine_of(dataset, feature).engine
    return training.TrainRequest.of(
        called, feature, text, seed, recipe, settings.training_of(dataset), engine=engine
    )


def _tune(settings: Settings, encoder: Encoder, recipe: str) -> dict[str, Any]:
    """What an encoder that is trained on depends on. The files of its base are only known when it
    is opened.
    """
    from pipeline.make.dual_encoders.tuning.job import TuneRequest  # and with it torch

    request = TuneRequest.of(
        encoder.model, recipe, settings.run.seeds[0], section(settings, recipe), encoder.prompt
    )
    return _recorded(request) | {"base": encoder.model}


def _throughput(settings: Settings) -> dict[str, Any]:
    """What the times depend on: the settings, and the poolings of all recipes; not how heads are
    trained.
    """
    sides = {}
    poolings: set[str] = set()
    for name, recipe in settings.recipes.items():
        sides[name] = recipe.model_dump(include={"image_pooling", "text_pooling"})
        poolings.update(side["name"] for side in sides[name].values())
    how = settings.training_of(settings.run.dataset)
    timed = {"poolings": sides, "dimension": how.dimension, "word_dimension": how.word_dimension}
    parts = [(kinds.TABLES["poolings"], name) for name in sorted(poolings)]
    return settings.throughput.recorded() | timed | _by("throughput", *parts)
