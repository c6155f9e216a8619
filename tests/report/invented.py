"""Invented entries of `results/metrics.json`, and tables of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import invented_facts
import invented_results

from pipeline.judge.systems.scores.made import Fusion, Made
from pipeline.judge.tables.table import Panel, Table, TableRequest
from pipeline.run.provenance import results
from pipeline.run.report import measured as measured_here
from pipeline.run.report.measured import MeasuredSystem, Results
from pipeline.run.report.page import headline
from pipeline.run.report.tables import TABLES

BERT = {"hub": "bert-base-uncased", "kind": "bert", "layers": 12, "width": 768, "pieces": 30522}
LETTERS = {"region": "R", "grid": "G", "patch": "P"}


def system(
    dataset: str,
    protocol: str,
    *,
    recipe: str = "vse2ad",
    ensemble: str | None = "R",
    features: dict[str, str] | None = None,
    text: str = "bigru",
    seed: int = 0,
    split: str = "test",
    untrained: list[str] | None = None,
    manifest: str = "0123456789abcdef",
    r1: float = 50.0,
    images: int = 1000,
    captions: int = 5000,
    networks: dict[str, dict[str, Any]] | None = None,
    bert: dict[str, Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One system under a name of its own, with recalls of r1, r1 + 5 and r1 + 10 both ways.

    networks: feature -> its image network, by default of imported features, known by their name.
        bert: the text's, by default the papers'. settings: what differs from theirs.
    """
    features = features or {"region": "butd-36"}
    side = {"R@1": r1, "R@5": r1 + 5, "R@10": r1 + 10, "MedR": 1.0, "MeanR": 2.0}
    scores = {
        "i2t": side,
        "t2i": side,
        "RSUM": 6 * r1 + 30,
        "images": images,
        "captions": captions,
        "tied": {"i2t": 0, "t2i": 0},
        "protocol": protocol,
    }
    members = []
    for feature, of_engine in features.items():
        head = member(
            feature, of_engine, text, untrained or [], networks or {}, bert, settings or {}
        )
        members.append({"head": f"{feature}-s{seed}", **head})
    facts = {
        "dataset": dataset,
        "split": split,
        "recipe": recipe,
        "text": text,
        "seed": seed,
        "manifest": manifest,
    }
    made_from: Made
    if ensemble is None:
        made_from = invented_facts.of_head(member=members[0], is_untrained=bool(untrained), **facts)
    else:
        made_from = invented_facts.ensemble(
            ensemble,
            members,
            features=features,
            untrained=untrained or [],
            fusion=Fusion(
                method="mean",
                weights=[1 / len(members)] * len(members),
                members=[each["head"] for each in members],
                features=[*features],
            ),
            **facts,
        )
    name = f"{recipe}-{ensemble or '-'.join(features)}-{text}-s{seed} {dataset}"
    return {name: invented_results.result(name, made_from.recorded(), {protocol: scores}).entry}


def see_queries(entry: dict[str, Any]) -> None:
    """Make an entry that of a system which has seen the queries."""
    record = entry["record"]
    record["facts"] = invented_facts.rescored(record["facts"], "csls", "test").recorded()


def read_metrics(tree: Any) -> tuple[MeasuredSystem, ...]:
    """As from results/metrics.json with this content."""
    return measured_here.read_metrics(results.parsed(tree))


def headlines(tree: Any) -> list[headline.Headline]:
    """As from results/metrics.json with this content."""
    return headline.headlines(results.parsed(tree))


def member(
    feature: str,
    features: str,
    text: str,
    untrained: list[str],
    networks: dict[str, dict[str, Any]],
    bert: dict[str, Any] | None,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """The head behind one feature."""
    kind = (
        {"engine": "grid", "weights": "untrained"} if feature in untrained else {"format": "scan"}
    )
    return {
        "checkpoint": "c" * 64,
        "store": f"store of {features}",
        "weights": "w" * 64,
        "feature": feature,
        "features": features,
        "vocabulary": "v" * 64,
        "networks": {
            "image": networks.get(feature, kind),
            "text": (bert or BERT) if text == "bert" else {},
        },
        "settings": {"learning_rate": 5e-4, "dimension": 1024, "batch_size": 128, "epochs": 25}
        | settings,
    }


@functools.cache
def everything() -> dict[str, Any]:
    """Systems of every recipe that a table knows, on benchmarks and on other data: only to be
    read.
    """
    papers = {
        "region": "butd-10-100",
        "grid": "grid16-butd_resnet101",
        "patch": "patch-vit_base_patch16_224.orig_in21k_ft_in1k",
    }
    small = {"region": "pyramid36-small", "grid": "grid16-small", "patch": "patch-small"}
    found: dict[str, Any] = {}
    for ensemble in ("R", "RG", "RGP"):
        parts = list(papers)[: len(ensemble)]
        for recipe in ("vse2ad", "vse_infty", "vse_pp", "my_own"):
            for text in ("bigru", "bert"):
                asked = {"recipe": recipe, "ensemble": ensemble, "text": text}
                coco = system(
                    "coco", "coco_1k_5fold", features={f: papers[f] for f in parts}, **asked
                )
                five = system("coco", "coco_5k", features={f: papers[f] for f in parts}, **asked)
                for name, entry in coco.items():
                    entry["coco_5k"] = five[name]["coco_5k"]
                found |= coco
                stand_ins = {f: small[f] for f in parts}
                untrained = [f for f in parts if f == "patch"]
                for seed in (0, 1):
                    found |= system(
                        "sample", "all", features=stand_ins, untrained=untrained, seed=seed, **asked
                    )
    for ending in (
        "notok",
        "noemb",
        "noadpool",
        "noadopt",
        "gpo",
        "my_pool",
        "w25",
        "w50",
        "w75",
        "random",
    ):
        found |= system("coco", "coco_5k", recipe=f"vse2ad-{ending}")
        found |= system(
            "sample", "all", recipe=f"vse2ad-{ending}", features={"region": "pyramid36-small"}
        )
    return found


def texts(panel: Panel) -> list[list[str]]:
    """The texts of a panel's rows."""
    return [[cell.text for cell in row.cells] for group in panel.groups for row in group.rows]


def built(
    name: str,
    measured: Mapping[str, Any],
    request: TableRequest | None = None,
    throughput: Mapping[str, Any] | None = None,
    synthetic: Sequence[Mapping[str, Any]] = (),
    recorded: Mapping[str, Any] | None = None,
) -> Table:
    """A table of the parsed files of `results`; with no request, all rows and the papers'
    columns.
    """
    results = Results(
        read_metrics(measured), throughput or {}, synthetic, read_metrics(recorded or {})
    )
    return TABLES.find(name)(results, request or TableRequest())


@functools.cache
def everything_read() -> tuple[MeasuredSystem, ...]:
    return read_metrics(everything())


@functools.cache
def of_everything(name: str, delta: bool = False) -> Table:
    """A table of everything, built once for all tests."""
    results = Results(everything_read(), {}, (), ())
    return TABLES.find(name)(results, TableRequest(delta=delta))
