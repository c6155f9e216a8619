"""The facts of a reranked system, see `scores.made`. torch is not loaded."""

from collections.abc import Sequence
from typing import Any

from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import refusing
from pipeline.judge.systems.requests import RerankRequest
from pipeline.judge.systems.reranking.base import PairScorer, identity
from pipeline.judge.systems.scores.made import Folds, Made, Reranked
from pipeline.judge.systems.scores.system import System

# Parts of a scorer's record that are joined with the retriever's.
ABOVE = ("members", "features", "untrained")
# Parts of a scorer's record that are as in a system's.
JOINED = ("members", "steps", "fusion")


def made_from(
    retriever: System,
    scorer: PairScorer,
    place: str,
    request: RerankRequest,
    distractors: Sequence[str] = (),
) -> Made:
    """Compose the facts of a system: its retriever's, joined with its scorer's, with one more step.

    place: the scorer's name, or where its files are. request: with the k, combination and weight
        that were chosen. distractors: their data sets.
    """
    kind, name = request.scorer
    made = retriever.made_from
    its_facts = scorer.made_from
    with refusing(
        ValueError, f"{place}: its made_from has members, steps or a fusion that are not a system's"
    ):
        of_scorer = Made.model_validate({key: its_facts[key] for key in JOINED if key in its_facts})
    step: dict[str, Any] = {
        "name": "rerank",
        "with": its_facts.get("series", name),
        "k": request.k,
    }
    if request.combine != "scorer":
        step[request.combine] = request.weight
    if of_scorer.has_seen_queries:
        step["bank"] = "test"
    described = {key: value for key, value in its_facts.items() if key not in ABOVE}
    described |= {"kind": kind, "name": name, "place": place, "made_from": identity(scorer)}
    if request.options:
        described["options"] = request.options
    protocol, folds = request.protocol
    record = Reranked(
        retriever=retriever.name,
        roles=[_role(made), _role(of_scorer)],
        scorer=described,
        k=request.k,
        combine=request.combine,
        weight=request.weight,
        logits=scorer.gives_logits,
        protocol=Folds(name=protocol, folds=folds),
        distractors=list(distractors),
        tuned=request.tuned or {},
    )
    return made.with_step(
        step,
        visual=list(made.features),
        named=request.named,
        features={**made.features, **its_facts.get("features", {})},
        untrained=list(dict.fromkeys([*made.untrained, *its_facts.get("untrained", [])])),
        members=[
            *made.members,
            *(member for member in of_scorer.members if member.head not in made.heads),
        ],
        reranked=record,
    )


def _role(made: Made) -> str:
    """A digest of what a system is on any split: its heads, how they are fused, and what was done
    to their scores.
    """
    method = made.fusion.method if made.fusion else None
    weights = made.fusion.weights if made.fusion else None
    return digest([made.checkpoints, method, weights, made.steps])
