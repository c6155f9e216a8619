"""What stores of scores depend on: a raised version of any part of them is seen."""

from __future__ import annotations

import pytest
from invented_results import SETTINGS

from pipeline.foundation.artefacts import code
from pipeline.foundation.evaluation.retrieval import PROTOCOLS
from pipeline.foundation.settings.judging import Score
from pipeline.judge.systems.requests import (
    AddRequest,
    EmbedRequest,
    FuseRequest,
    RerankRequest,
    RescoreRequest,
    ScoreRequest,
)
from pipeline.run.provenance.results import EvaluateRequest

HEAD = {"poolings/gpo": 3, "training": 1}


def test_each_store_depends_on_its_own_part_and_on_what_stores_scores() -> None:
    how = Score(split="test", batch_size=8)
    reranked = RerankRequest(
        name="r",
        scorer=("system", "mine"),
        protocol=("all", 1),
        k=20,
        combine="scorer",
        weight=0.0,
        index="exact",
        made_by=HEAD,
    )
    for request, parts in (
        (ScoreRequest.of_head("s", how, HEAD), {*HEAD, "scores"}),
        (AddRequest(name="a", split="test", title="A", scores="a.npy", files={}), {"scores"}),
        (EmbedRequest.of_head(["test"], how, HEAD), {*HEAD}),
        (FuseRequest(name="e", method="zscore", weights=[1.0]), {"fusions/zscore", "scores"}),
        (FuseRequest(name="e", method="rank", weights=[1.0]), {"fusions/rank", "scores"}),
        (RescoreRequest(name="c", rescorer="csls"), {"rescorers/csls", "scores"}),
        (reranked, {*HEAD, "reranking", "scorers/system", "indexes/exact"}),
    ):
        versions = request.versions()
        assert versions.keys() == parts, request
        if "training" in parts:
            assert versions["poolings/gpo"] == 3, request


def test_a_protocol_of_another_package_is_part_of_what_candidates_depend_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs = {"theirs": "their_package:RULES"}
    monkeypatch.setattr(type(PROTOCOLS), "_added", lambda table: theirs)
    monkeypatch.setattr(PROTOCOLS, "module", lambda name: "their_package")
    monkeypatch.setattr(PROTOCOLS, "declared", lambda name: dict)
    monkeypatch.setattr(code.plugins, "sources", lambda module: {module: "digest"})
    for protocol, own in (("theirs", {"their_package"}), ("coco_1k_5fold", set())):
        reranked = RerankRequest(
            name="r", scorer=("system", "s"), protocol=(protocol, 1), k=2, combine="add", weight=0.5
        )
        assert reranked.versions().keys() - {"reranking", "scorers/system"} == own, protocol
        measured = EvaluateRequest(name="r", protocols=["all", protocol], settings=SETTINGS)
        assert {"their_package"} & measured.versions().keys() == own, protocol


def test_of_a_reranked_store_the_order_alone_may_be_another() -> None:
    """k, the combination and how they were chosen order the same scores of the same pairs."""
    mine = RerankRequest(
        name="r", scorer=("system", "s"), protocol=("all", 1), k=20, combine="scorer", weight=0.0
    )
    order = {
        "k": 5,
        "combine": "add",
        "weight": 0.25,
        "tune": True,
        "tuned": {"split": "val", "tried": 3},
    }
    for key, value in order.items():
        recorded = mine.recorded() | {key: value}
        assert mine.in_the_order_of(recorded).recorded() == recorded, key
    for key, value in {"name": "q", "index": "exact", "protocol": ["all", 5]}.items():
        recorded = mine.recorded() | {key: value}
        assert mine.in_the_order_of(recorded).recorded() != recorded, key
