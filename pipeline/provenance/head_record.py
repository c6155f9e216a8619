"""A result's record of one of its heads or dual encoders: what it was trained on and with, except for the seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from pipeline.systems.scores import ENCODER

# Digests that all seeds of one system have in common -> what differs if they do not.
SHARED_DIGESTS = {"store": "other features", "weights": "another network behind them", "vocabulary": "other words"}


@dataclass(frozen=True)
class HeadRecord:
    """An entry of `made_from["members"]`.

    Attributes:
        head: The head's name.
        feature: Its visual feature.
        features: The name under which the engine's features are reported.
        image: The networks behind the image side, see `training.source.networks`.
        text: The networks behind the text side.
        settings: The settings of the recipe and of its training.
        store: Digest of the features.
        weights: Digest of the feature network's tensors.
        vocabulary: Digest of the words (and of BERT's initial weights).
        published: Whether its weights were published, not trained here.
        encoder: A dual encoder's model, title, training data and usage; None for a head. A dual encoder has no
            feature, networks or settings of its own.
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
    encoder: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Self:
        """Read an entry."""
        networks, encoder = entry["networks"], entry.get(ENCODER)
        parts = networks["image"], networks["text"], entry["settings"]
        if not all(isinstance(part, Mapping) for part in (*parts, encoder or {})):
            raise TypeError("members")
        head, feature, features, store, weights, vocabulary = (
            str(entry[key]) for key in ("head", "feature", "features", "store", "weights", "vocabulary"))
        return cls(head, feature, features, *parts, store, weights, vocabulary, bool(entry.get("published")), encoder)


def differences(mine: tuple[HeadRecord, ...], others: tuple[HeadRecord, ...]) -> str:
    """Say how two systems differ, member by member; "" if they are seeds of one system."""
    if len(mine) != len(others):
        return f"{len(mine)} members and {len(others)}"
    said: list[str] = []
    for one, other in zip(mine, others, strict=True):
        said += [what for key, what in SHARED_DIGESTS.items() if getattr(one, key) != getattr(other, key)]
        said += [f"{key} {one.settings.get(key)} and {other.settings.get(key)}"
                 for key in dict.fromkeys((*one.settings, *other.settings))
                 if one.settings.get(key) != other.settings.get(key)]
    return ", ".join(dict.fromkeys(said))
