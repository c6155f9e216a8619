"""The facts of a reranked system, see `scores.made`. torch is not loaded."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import refusing
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.requests import EmbedRequest, RerankRequest
from pipeline.judge.systems.reranking.base import PairScorer, identity
from pipeline.judge.systems.scores.made import Facts, Folds, Member, Reranked, Scorer
from pipeline.judge.systems.scores.system import System

# Parts of a scorer's record that are joined with the retriever's.
ABOVE = ("members", "features", "untrained")


class _AsOfSystem(Facts):
    """What a scorer's record has in common with a system's."""

    members: list[Member] = Field(default_factory=list)
    features: dict[str, str] = Field(default_factory=dict)
    untrained: list[str] = Field(default_factory=list)
    steps: list[dict[str, Any]] = Field(default_factory=list)
    fusion: dict[str, Any] = Field(default_factory=dict)


def made_from(
    retriever: System,
    scorer: PairScorer,
    place: str,
    request: RerankRequest,
    distractors: Sequence[System] = (),
) -> Reranked:
    """Compose the facts of a system that is made of a retriever and a scorer.

    place: the scorer's name, or where its files are. request: with the k, combination and weight
        that were chosen. distractors: their stores.
    """
    made = retriever.made_from
    of_scorer = _of_scorer(scorer, place)
    further_members = [member for member in of_scorer.members if member.head not in made.heads]
    protocol, folds = request.protocol
    roles = [
        _role(made.checkpoints, made.fused_by, made.steps),
        _role(_checkpoints(of_scorer), of_scorer.fusion, of_scorer.steps),
    ]
    untrained = dict.fromkeys([*made.untrained, *of_scorer.untrained])
    return Reranked(
        source=made,
        named=request.named,
        retriever=retriever.name,
        roles=roles,
        scorer=_described(scorer, place, request),
        k=request.k,
        combine=request.combine,
        weight=request.weight,
        logits=scorer.gives_logits,
        protocol=Folds(name=protocol, folds=folds),
        features={**made.features, **of_scorer.features},
        untrained=list(untrained),
        members=[*made.members, *further_members],
        distractors=[store.made_from.dataset for store in distractors],
        pools=[_place(store).as_posix() for store in distractors],
        tuned=request.tuned or {},
        index=request.index,
    )


def _place(store: System) -> Path:
    """Where a store of distractors is, as seen from the root."""
    made = store.made_from
    if store.reference.kind == EmbedRequest.kind:
        return Paths(Path()).encoded(made.dataset, store.name)
    return Paths(Path()).similarity(made.dataset, store.name, str(made.split))


def _of_scorer(scorer: PairScorer, place: str) -> _AsOfSystem:
    """The parts of a scorer's record that are as in a system's."""
    recorded = scorer.made_from
    parts = {key: recorded[key] for key in _AsOfSystem.model_fields if key in recorded}
    with refusing(
        ValueError, f"{place}: its made_from has members, steps or a fusion that are not a system's"
    ):
        return _AsOfSystem.model_validate(parts)


def _described(scorer: PairScorer, place: str, request: RerankRequest) -> Scorer:
    """What a scorer says of itself, but for what is joined with the retriever's."""
    kind, name = request.scorer
    described = {key: value for key, value in scorer.made_from.items() if key not in ABOVE}
    described |= {"kind": kind, "name": name, "place": place, "made_from": identity(scorer)}
    if request.options:
        described["options"] = request.options
    return Scorer.model_validate(described)


def _checkpoints(scorer: _AsOfSystem) -> list[str]:
    return [member.checkpoint for member in scorer.members]


def _role(checkpoints: list[str], fusion: dict[str, Any], steps: list[dict[str, Any]]) -> str:
    """A digest of what a system is on any split: its heads, how they are fused, and what was done
    to their scores.
    """
    return digest([checkpoints, fusion, steps])
