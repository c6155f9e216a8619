"""Facts as JSON, and those of the heads, dual encoders and given scores behind a system."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

# Digests that all seeds of one system have in common -> what differs if they do not.
SHARED_DIGESTS = {
    "store": "other features",
    "weights": "another network behind them",
    "vocabulary": "other words",
}


class Facts(BaseModel):
    """Facts, as JSON without those that have their default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def recorded(self) -> dict[str, Any]:
        """Compose the JSON value."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def changed(self, **facts: Any) -> Self:
        """Copy with other facts.

        Returns:
            The copy.
        """
        return self.model_copy(update=facts)


class GivenScores(Facts):
    """Scores or vectors that were computed elsewhere."""

    title: str  # What tables and pages call the system
    files: dict[str, str]  # The files as they are named below the root, or elsewhere -> SHA-256


class Member(Facts):
    """A head, a dual encoder or given scores behind a system: what made them, except for the
    seed.
    """

    head: str  # Its name
    # SHA-256 of its network's file, of given scores of their name. Vectors of one checkpoint are in
    # one space.
    checkpoint: str = ""
    files: dict[str, str] = Field(default_factory=dict)  # A dual encoder's files -> SHA-256
    feature: str = ""
    features: str = ""  # The name under which the engine's features are reported
    # Side, image or text -> the networks behind it, see `training.source.networks`.
    networks: dict[Literal["image", "text"], dict[str, Any]] = Field(default_factory=dict)
    # The settings of the recipe and of its training
    settings: dict[str, Any] = Field(default_factory=dict)
    store: str = ""  # Identity of the features
    content: str = ""  # Digest of the features that were read
    weights: str = ""  # Digest of the feature network's tensors
    vocabulary: str = ""  # Digest of the words (and of BERT's initial weights)
    published: bool = False  # Whether its weights were published, not trained here
    # A dual encoder's model, title, training data and usage; None for a head. A dual encoder has no
    # feature, networks or settings of its own.
    encoder: dict[str, Any] | None = None
    # What is known of given scores; None for a head or a dual encoder
    given: GivenScores | None = None
    # Split -> what was read of it, of vectors of several splits.
    splits: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @property
    def is_head(self) -> bool:
        """Whether it is a head, which has a feature, networks and settings."""
        return self.encoder is None and self.given is None

    @property
    def image(self) -> Mapping[str, Any]:
        """The networks behind the image side."""
        return self.networks.get("image", {})

    @property
    def text(self) -> Mapping[str, Any]:
        """The networks behind the text side."""
        return self.networks.get("text", {})

    @property
    def of_all_seeds(self) -> dict[str, Any]:
        """The facts by which the seeds of one system do not differ."""
        return self.model_dump(
            mode="json",
            exclude={
                **dict.fromkeys(("head", "checkpoint", "files", "content", "splits"), True),
                "encoder": {"place"},
            },
        )


def differences(mine: Sequence[Member], others: Sequence[Member]) -> str:
    """Say how two systems differ, member by member.

    Args:
        mine: One system's members.
        others: The other's.

    Returns:
        What differs, in words; "" if they are seeds of one system.
    """
    if len(mine) != len(others):
        return f"{len(mine)} members and {len(others)}"
    differing: list[str] = []
    for one, other in zip(mine, others, strict=True):
        for key, what in SHARED_DIGESTS.items():
            if getattr(one, key) != getattr(other, key):
                differing.append(what)
        for key in one.settings | other.settings:
            setting = one.settings.get(key)
            other_setting = other.settings.get(key)
            if setting != other_setting:
                differing.append(f"{key} {setting} and {other_setting}")
    return ", ".join(dict.fromkeys(differing))
