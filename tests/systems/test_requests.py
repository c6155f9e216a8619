"""What stores of scores depend on: a raised version of any part of them is seen."""

from __future__ import annotations

from pipeline.foundation.settings.judging import Score
from pipeline.judge.systems.requests import (
    AddRequest,
    EmbedRequest,
    FuseRequest,
    RerankRequest,
    RescoreRequest,
    ScoreRequest,
)

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
