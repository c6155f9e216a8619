"""The facts of what is made by one: a file, a head, a dual encoder, given scores."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from pipeline.foundation.settings.paths import of_seed, system_name
from pipeline.judge.systems.scores.made.base import Made
from pipeline.judge.systems.scores.made.facts import Member

# The text encoder of dual encoders as they come, of those trained on here, and of given scores,
# whose own is unknown.
ZERO_SHOT, FINE_TUNED, GIVEN = "zero-shot", "fine-tuned", "given"


class OfFile(Made):
    """What is known of a plain matrix in a user's file."""

    kind: Literal["file"] = "file"

    dataset: str
    split: str
    manifest: str
    file: str  # Digest of the file
    distance: bool  # Whether it holds distances

    @property
    def files(self) -> list[str]:
        """Its file."""
        return [self.file]


class OfOne(Made):
    """The facts of one member's scores or vectors."""

    dataset: str
    split: str
    manifest: str
    languages: list[str]
    lacks: dict[str, int]
    member: Member

    @property
    def members(self) -> list[Member]:
        """The member."""
        return [self.member]

    @property
    def first(self) -> str:
        """Its name."""
        return self.member.head


class OfHead(OfOne):
    """The facts of a head's scores or vectors."""

    kind: Literal["head"] = "head"

    recipe: str
    text: str
    seed: int
    trained_on: str  # The data set of its training
    is_untrained: bool  # Whether an untrained network made its features

    @property
    def features(self) -> dict[str, str]:
        """Its feature -> the name under which the engine's features are reported."""
        return {self.member.feature: self.member.features}

    @property
    def untrained(self) -> list[str]:
        """Its feature, if an untrained network made it."""
        return list(self.features) if self.is_untrained else []

    @property
    def first(self) -> str:
        """The name that a run gives it, without the seed."""
        return system_name(self.recipe, self.member.feature, self.text)

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name."""
        return self.member.head != of_seed(self.first, self.seed)


class OfEncoder(OfOne):
    """The facts of a dual encoder's vectors, and of their products."""

    kind: Literal["encoder"] = "encoder"

    seed: ClassVar[int] = 0

    @property
    def recipe(self) -> str:
        """Its name."""
        return self.member.head

    @property
    def text(self) -> str:
        """Whether it is used as it comes, or was trained on here."""
        if self.member.encoder and self.member.encoder.get("tuned_on"):
            return FINE_TUNED
        return ZERO_SHOT


class OfGiven(OfOne):
    """The facts of scores that a user added."""

    kind: Literal["given"] = "given"

    text: ClassVar[str] = GIVEN

    @property
    def recipe(self) -> str:
        """Its name."""
        return self.member.head

    @property
    def renewal(self) -> str:
        """What makes it anew, for messages."""
        return "add it again"


def lacking(left_out: Mapping[str, int], without_features: int = 0) -> dict[str, int]:
    """Count what is left out: of the manifest, and images without features.

    Returns:
        Reason -> number.
    """
    if not without_features:
        return dict(left_out)
    return {**left_out, "images without features": without_features}
