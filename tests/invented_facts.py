"""The facts of systems of each kind, with something for each fact that a test does not name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.judge.systems.scores.made import (
    Ensemble,
    Facts,
    Folds,
    Made,
    OfFile,
    OfHead,
    Reranked,
    Rescored,
    read,
)


def of_file(**facts: Any) -> OfFile:
    """A plain matrix."""
    return OfFile.model_validate(
        {"dataset": "sample", "split": "test", "manifest": "m", "file": "f", "distance": False}
        | _plain(facts)
    )


def of_one(name: str = "mine", checkpoint: str | None = None) -> dict[str, Any]:
    """The facts that a head, a dual encoder and given scores of that name have."""
    return {
        "dataset": "sample",
        "split": "test",
        "manifest": "m",
        "languages": [],
        "lacks": {},
        "member": {"head": name, "checkpoint": name if checkpoint is None else checkpoint},
    }


def of_head(name: str = "mine", checkpoint: str | None = None, **facts: Any) -> OfHead:
    """A head of that name; its checkpoint is called as it is."""
    common = of_one(name, checkpoint)
    common["member"] |= {"feature": "grid", "features": "grid2"}
    of_heads = {
        "recipe": "vse2ad",
        "text": "bigru",
        "seed": 0,
        "trained_on": facts.get("dataset", "sample"),
        "is_untrained": False,
    }
    return OfHead.model_validate(common | of_heads | _plain(facts))


def ensemble(name: str, members: Sequence[Any] = (), **facts: Any) -> Ensemble:
    """An ensemble of these heads, by mean."""
    dataset = facts.get("dataset", "sample")
    heads = [_plain(member) for member in members]
    fusion = {
        "method": "mean",
        "weights": [1 / max(1, len(heads))] * len(heads),
        "members": [member["head"] for member in heads],
    }
    return Ensemble.model_validate(
        {
            "name": name,
            "dataset": dataset,
            "split": "test",
            "manifest": "m",
            "languages": [],
            "lacks": {},
            "recipe": "vse2ad",
            "text": "bigru",
            "seed": 0,
            "trained_on": dataset,
            "features": {},
            "untrained": [],
            "members": heads,
            "fusion": fusion,
        }
        | _plain(facts)
    )


def rescored(
    source: Made | Mapping[str, Any], rescorer: str = "csls", bank: str = "train", **options: Any
) -> Rescored:
    """These facts after a correction."""
    return Rescored.model_validate(
        {
            "source": source,
            "system": "source",
            "rescorer": rescorer,
            "bank": bank,
            "options": options,
        }
    )


def reranked(
    source: Made | Mapping[str, Any], by: str = "another", k: Any = 20, **facts: Any
) -> Reranked:
    """These facts after a reranking by a stored system, or another scorer among the facts."""
    made = read(source)
    scorer = {"kind": "system", "name": by, "place": by, "made_from": "d"}
    return Reranked.model_validate(
        {
            "source": made,
            "named": False,
            "retriever": "retriever",
            "roles": ["a", "b"],
            "k": k,
            "combine": "scorer",
            "weight": 0.0,
            "logits": False,
            "protocol": Folds(name="all"),
            "features": made.features,
            "untrained": made.untrained,
            "members": made.members,
        }
        | _plain(facts)
        | {"scorer": scorer | facts.get("scorer", {})}
    )


def _plain(facts: Any) -> dict[str, Any]:
    """Facts as JSON values."""
    if isinstance(facts, Facts):
        return facts.recorded()
    return {
        key: value.recorded() if isinstance(value, Facts) else value for key, value in facts.items()
    }
