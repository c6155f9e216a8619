"""What is recorded of a reranked system."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.evaluation.retrieval.protocols import Protocol
from pipeline.files.digest import digest
from pipeline.parts.errors import InputError
from pipeline.settings.features import letters
from pipeline.systems.fusion.reranked import Combination
from pipeline.systems.reranking.base import PairScorer
from pipeline.systems.scores.made import RERANKED, Made
from pipeline.systems.scores.system import System

ABOVE = ("members", "features", "untrained")
"""Parts of a scorer's record that join those of the retriever."""
FREE = ("combine", "weight", "k", "tuned", "roles")
"""Parts of `Made.reranked` on which the scores of a pair do not depend, or that follow from the others."""


def made_from(retriever: System, kind: str, name: str, scorers: Sequence[PairScorer], k: int | str,
              protocol: Protocol, how: Combination, distractors: Sequence[Mapping[str, Any]] = (),
              tuned: Mapping[str, Any] | None = None) -> Made:
    """Compose the record of a reranked system: its retriever's, joined with its scorer's, with one more step."""
    theirs, said = retriever.made_from, Made(scorers[0].made_from)
    step: dict[str, Any] = {"name": "rerank", "with": re.sub(r"-s\d+$", "", name), "k": k}
    if how.name != "scorer":
        step[how.name] = how.weight
    if said.has_seen_queries:
        step["bank"] = "test"
    record = {
        "retriever": {"system": retriever.name, "seal": retriever.seal},
        "roles": [_role(theirs), _role(said)],
        "scorer": {key: value for key, value in said.items() if key not in ABOVE} | {
            "kind": kind, "name": name, "made_from": digest(said)},
        "with_distractors": [digest(each.made_from) for each in scorers[1:]],
        "k": k, "combine": how.name, "weight": how.weight, "logits": scorers[0].gives_logits,
        "protocol": {"name": protocol.name, "folds": protocol.folds},
        "distractors": [dict(each) for each in distractors]}
    return Made(theirs | {"visual": visual(theirs)}).with_step(
        step, features={**theirs["features"], **said.get("features", {})},
        untrained=list(dict.fromkeys([*theirs["untrained"], *said.get("untrained", [])])),
        members=[*theirs.members, *(member for member in said.members if member["head"] not in theirs.heads)],
        **{RERANKED: record | ({"tuned": dict(tuned)} if tuned else {})})


def _role(made: Made) -> str:
    """A digest of what a system is on any split: its heads, how they are fused, and what was done to their scores."""
    return digest([made.checkpoints, made.fusion.get("method"), made.fusion.get("weights"), made.steps])


def visual(made: Made) -> str:
    """Find the letters of the features that a system retrieves by."""
    return str(made.get("visual") or made.get("ensemble") or letters(tuple(made["features"])))


def what_differs(mine: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Compare on what the scores of pairs depend."""
    return [key for key in dict.fromkeys((*mine, *other)) if key not in FREE and mine.get(key) != other.get(key)]


def require_one_split(retriever: System, scorer: PairScorer, name: str) -> None:
    """Check that a retriever and a scorer are of one manifest and split, where the scorer says of which it is."""
    for key in ("manifest", "split"):
        if (said := scorer.made_from.get(key, retriever.made_from[key])) != retriever.made_from[key]:
            raise InputError(f"{name}: its {key} is {said!r}, that of the retriever {retriever.name} "
                             f"{retriever.made_from[key]!r}; score both anew")
    if scorer.made_from.keys() & {"checkpoint", "seal"}:  # a network of pixels, as it comes, was trained on neither
        here = retriever.made_from.trained_on
        if here != (there := scorer.made_from.get("trained_on", retriever.made_from.dataset)):
            raise InputError(f"{name}: was trained on {there}, the retriever {retriever.name} on {here}; give two "
                             "that were trained on the same, see --trained-on")
