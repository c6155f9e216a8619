"""One head behind a result, as the result says it: what it was trained on and with, all but the seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHARED_DIGESTS = {"store": "other features", "weights": "another network behind them", "vocabulary": "other words"}
"""Digests that seeds of one system share -> what it means when they do not."""


@dataclass(frozen=True)
class HeadRecord:
    """An entry of `made_from["members"]`.

    features: the name of the engine's recipe. image, text: the networks behind either side by their names, see
    `training.source.networks`. settings: the recipe's and those of its training. store, weights, vocabulary: digests of
    the features, of their network's tensors, of the text's words (and BERT's first weights).
    published: its weights were not trained here.
    """

    head: str
    feature: str
    features: str
    image: Mapping[str, Any]
    text: Mapping[str, Any]
    settings: Mapping[str, Any]
    store: str
    weights: str
    vocabulary: str
    published: bool = False

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> HeadRecord:
        """From a result. Raises KeyError or TypeError where it was scored before results said all this."""
        networks, settings = entry["networks"], entry["settings"]
        parts = networks["image"], networks["text"], settings
        if not all(isinstance(part, Mapping) for part in parts):
            raise TypeError("members")
        head, feature, features, store, weights, vocabulary = (
            str(entry[key]) for key in ("head", "feature", "features", "store", "weights", "vocabulary"))
        return cls(head, feature, features, *parts, store, weights, vocabulary, bool(entry.get("published")))

    def differs(self, other: HeadRecord) -> list[str]:
        """In what the two are no seeds of one system, e.g. `learning_rate 0.0005 and 0.001`; [] if they may be."""
        said = [what for key, what in SHARED_DIGESTS.items() if getattr(self, key) != getattr(other, key)]
        keys = list(dict.fromkeys((*self.settings, *other.settings)))
        return said + [f"{key} {self.settings.get(key)} and {other.settings.get(key)}" for key in keys
                       if self.settings.get(key) != other.settings.get(key)]


def differences(mine: tuple[HeadRecord, ...], others: tuple[HeadRecord, ...]) -> str:
    """In what two systems, member by member, are no seeds of one; '' if they may be."""
    if len(mine) != len(others):
        return f"{len(mine)} members and {len(others)}"
    pairs = zip(mine, others, strict=True)
    return ", ".join(dict.fromkeys(said for one, other in pairs for said in one.differs(other)))
