"""Write the page of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.foundation import manifest
from pipeline.foundation.files.atomic import creating, exclusive, write_text
from pipeline.foundation.settings import Settings
from pipeline.foundation.settings.features import of_ensemble
from pipeline.foundation.settings.paths import Paths, heads, system_name
from pipeline.judge.systems.scores import judged
from pipeline.judge.systems.scores.reranked import Folded
from pipeline.judge.systems.scores.system import System
from pipeline.make.features.store import layout
from pipeline.run.provenance.heads import read_heads
from pipeline.run.provenance.results import Result
from pipeline.run.report import names, page
from pipeline.run.report.page import charts, explorer, finding, headline, identity, pairs, systems
from pipeline.run.report.page.render import failures
from stages import scored_systems
from stages.commands.report import ReportOptions
from stages.progress import Progress, say


def write_report(paths: Paths, settings: Settings, options: ReportOptions) -> None:
    """Write results/report.html: results with intervals, curves, what members add, queries,
    failures, provenance.
    """
    unreadable: list[str] = []
    with Progress("report", "step") as bar:
        contents = _contents(paths, settings, options.images, unreadable.append, bar.step)
        text = page.render(contents)
    with exclusive(paths.report):
        write_text(paths.report, text)
        _keep_curves(paths, settings)
    megabytes = len(text.encode()) / 1e6
    say(f"{paths.report}: {megabytes:.1f} MB", err=False)
    asked_side = settings.report.thumbnail
    side = contents["explorer"].get("thumbnail", asked_side)
    if side < asked_side:
        say(
            f"thumbnails have {side} pixels instead of {asked_side}, so that the page stays "
            "small; fewer report.queries have larger ones",
            err=False,
        )
    thumbs = [image["thumb"] for image in contents["explorer"].get("images", ())]
    if None in thumbs:
        folder = scored_systems.photographs(paths, settings, options.images)
        where = f"not readable in {folder}"
        if not folder.is_dir():
            where += ", there is no such folder; name it with --images"
        if folder == Path():
            where = "have no folder in the manifest; name it with --images"
        unreadable.append(f"{thumbs.count(None)} of {len(thumbs)} photographs {where}")
    for why in unreadable:
        say(f"left out: {why}", err=False)


def _keep_curves(paths: Paths, settings: Settings) -> None:
    """Write the curves of all heads as tables for `dvc plots show`: RSUM on val by epoch, negatives
    by step.
    """
    with creating(paths.curves) as making:
        for value, time, file in (
            ("RSUM", "epoch", "history.csv"),
            ("negatives", "steps", "steps.csv"),
        ):
            curves = [pd.DataFrame(columns=["head", time, value])]
            for name in heads(settings.run):
                written = paths.head(settings.run.dataset, name) / file
                if written.exists():
                    curve = pd.read_csv(written).reindex(columns=[time, value])
                    curves.append(curve.dropna().assign(head=name))
            table = pd.concat(curves).to_csv(index=False)
            write_text(making / value / "heads.csv", table, durable=False)


def _contents(
    paths: Paths,
    settings: Settings,
    images: Path | None,
    unreadable: Callable[[str], object],
    progress: Callable[[str], object],
) -> page.Page:
    run = settings.run
    dataset = run.dataset
    card = manifest.dataset(dataset, paths.root)
    heads_of_run = heads(run)
    scored = scored_systems.scored(paths, settings)
    metrics = {}
    if paths.metrics.exists():
        metrics = scored_systems.metrics(paths)
    order = {name: place for place, name in enumerate(headline.best_first(metrics))}
    second_names = scored_systems.twice(scored)

    def place(name: str) -> int:
        """Where a system, or a head by its own system, is in the one order of the page; those not
        measured last.
        """
        return order.get(second_names.get(name, name), len(order))

    finished = read_heads(paths.head(dataset, ""), heads_of_run, unreadable)
    trained = sorted(finished, key=lambda head: place(head.name))
    of_run = [head for head in trained if head.name in heads_of_run]
    further = [head for head in trained if head.name not in heads_of_run]
    features = {}
    for feature in run.features:
        path = paths.features(dataset, feature)
        if path.exists():
            features[feature] = path
    scored = {name: scored[name] for name in sorted(scored, key=place)}
    shown = _of_one_pool(scored)
    truth = scored_systems.truth(paths, settings, metrics)
    # The card's first protocol for the split; or the protocol of other right answers.
    of_card = card.protocols_of(settings.score.split)
    protocol = truth.protocols(of_card[:1])[0]

    def judge(pool: System) -> System:
        known = None
        if truth != judged.Truth():
            known = manifest.Manifest.load(paths.manifest(dataset))
        return judged.judge(judged.with_languages(pool, known), truth, known)

    explored: dict[str, Any] = {}
    headlines = headline.headlines(metrics)
    pairs_of_headlines = [pairs.pairs(of_test_set) for of_test_set in headlines]
    first_shown = _first_shown(headlines, shown)
    if first_shown:
        galleries = scored_systems.galleries(paths, settings, shown, images, truth)
        explored = explorer.gather(galleries, first_shown, settings.report, progress)
    pool = f"{card.title}, {settings.score.split} split"
    ensembles = _ensembles(settings, scored)
    described = {head.name: head.record.model_dump() for head in of_run}
    effects = systems.effects(
        ensembles, protocol, settings.evaluate, pairs_of_headlines, judge, progress
    )
    hubs = systems.hubs(shown, settings.evaluate, progress)
    licence = card.licence
    if card.is_own:
        licence = ""
    provenance = _provenance(paths, settings, card, features, metrics, described)
    return {
        "title": card.title,
        "about": card.description,
        "licence": licence,
        "finding": finding.finding(headlines, pairs_of_headlines, explored),
        "identity": identity.of_run(pool, metrics, scored, of_run, features),
        "headlines": headlines,
        "pairs": pairs_of_headlines,
        "curves": charts.curves(of_run),
        "further_curves": charts.curves(further),
        "effects": effects,
        "hubs": hubs,
        "explorer": explored,
        "relevance": truth.words,
        "run": scored_systems.run_summary(settings),
        "failures": failures(features),
        "stores": list(features),
        "provenance": provenance,
    }


def _first_shown(
    headlines: Sequence[headline.Headline], shown: Mapping[str, System]
) -> tuple[str, str] | None:
    """The systems A and B that the explorer shows first: those of the finding; without results the
    first and the last.
    """
    if not shown:
        return None
    names_shown = [*shown]
    return finding.compared(headlines, shown) or (names_shown[0], names_shown[-1])


def _made_from(store: Path) -> dict[str, Any]:
    """What made a feature store: its fingerprint, and its sizes."""
    sizes, fingerprint = layout.read_header(store)
    return {"fingerprint": fingerprint, "layout": sizes.recorded()}


def _ensembles(settings: Settings, scored: Mapping[str, System]) -> dict[str, dict[str, Path]]:
    """The run's ensembles with all members scored, for the first such seed: title -> feature ->
    similarity store.
    """
    run = settings.run
    order = [*scored]
    ensembles = {}
    for recipe, text, name in product(run.recipes, run.texts, run.ensembles):
        for seed in run.seeds:
            feature_of = {}
            for feature in of_ensemble(name):
                feature_of[system_name(recipe, feature, text, seed)] = feature
            if not feature_of.keys() <= scored.keys():
                continue
            members = [member for member in order if member in feature_of]
            stores = {feature_of[member]: scored[member].path for member in members}
            ensemble = system_name(recipe, name, text, seed)
            place = len(order)
            if ensemble in scored:
                place = order.index(ensemble)
            made_by = f"{names.method(recipe)}, {names.encoder(text)}, seed {seed}"
            ensembles[place, f"{names.features(name)}: {made_by}"] = stores
            break
    return {title: ensembles[place, title] for place, title in sorted(ensembles)}


def _of_one_pool(scored: Mapping[str, System]) -> dict[str, System]:
    """The systems whose queries all have the same candidates, each once: a lone head as its
    ensemble of one.
    """
    second_names = scored_systems.twice(scored)
    shown = {}
    folded = []
    for name, store in scored.items():
        if name in second_names:
            continue
        shown[name] = store
        if isinstance(store.scores, Folded) and not store.scores.is_whole:
            folded.append(name)
    if folded:
        say(
            f"left out of hubs and explorer, which show one pool: {', '.join(folded)}, reranked within folds"
        )
    return {name: store for name, store in shown.items() if name not in folded}


def _provenance(
    paths: Paths,
    settings: Settings,
    card: manifest.Dataset,
    features: dict[str, Path],
    metrics: Mapping[str, Result],
    described: dict[str, Any],
) -> dict[str, Any]:
    run = settings.run
    table = paths.manifest(run.dataset)
    data = card.model_dump()
    if table.exists():
        data["manifest digest"] = manifest.Manifest.load(table).digest
    used = settings.model_dump(include={"run", "extract", "score", "evaluate", "report"})
    engines = {}
    for name in run.features:
        engines[name] = settings.engine_of(run.dataset, name).model_dump()
    recipes = {}
    for name in (*run.recipes, *run.ablations):
        if name in settings.recipes:
            recipes[name] = settings.recipe(name).model_dump()
    used["features"] = engines
    used["recipes"] = recipes
    used["training"] = settings.training_of(run.dataset).model_dump()
    sections = {"Data": data, "Settings of the run": used}
    for name, path in features.items():
        sections[f"Features: {name}"] = _made_from(path)
    for name, description in described.items():
        sections[f"Head: {name}"] = description
    for name in headline.best_first(metrics):
        title = names.title(metrics[name].made)
        sections[f"System: {title} ({name})"] = metrics[name].record.facts
    return sections
