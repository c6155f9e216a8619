"""The facts of a system: what its store's record, results and systems made of it say of what made
it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.features import letters
from pipeline.foundation.settings.paths import of_seed, system_name

# Digests that all seeds of one system have in common -> what differs if they do not.
SHARED_DIGESTS = {
    "store": "other features",
    "weights": "another network behind them",
    "vocabulary": "other words",
}
# The text encoder of dual encoders as they come, of those trained on here, and of given scores,
# whose own is unknown.
ZERO_SHOT, FINE_TUNED, GIVEN = "zero-shot", "fine-tuned", "given"


class Facts(BaseModel):
    """Facts, as JSON without those that have their default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def recorded(self) -> dict[str, Any]:
        """Compose the JSON value."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def changed(self, **facts: Any) -> Self:
        """Copy with other facts."""
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


class Fusion(Facts):
    """How an ensemble's members are fused."""

    method: str = "mean"
    weights: list[float] = Field(default_factory=list)  # One for each member, which add up to 1
    members: list[str] = Field(default_factory=list)
    # Those whose heads are averaged, as in the papers; [] where a user chose the members.
    features: list[str] = Field(default_factory=list)
    # How the weights were chosen on val; {} if they were given.
    tuned: dict[str, Any] = Field(default_factory=dict)


class Matrices(Facts):
    """How several stored matrices are read as one system's scores."""

    method: str  # The fusion; or `layout.DIRECTIONS`, one matrix for each direction
    weights: list[float]  # One for each member
    # How many of the matrices each member has; [] for one
    each: list[int] = Field(default_factory=list)

    @property
    def of_each(self) -> list[int]:
        """How many of the matrices each member has: 1, or 2 for one for each direction."""
        return self.each or [1] * len(self.weights)


class Folds(Facts):
    """A protocol by its name and the number of its folds."""

    name: str
    folds: int = 1


class Rescored(Facts):
    """The system whose scores were corrected, and the correction's options."""

    system: str
    options: dict[str, Any] = Field(default_factory=dict)


class Reranked(Facts):
    """What a reranked system was made by."""

    retriever: str  # The system that orders all but the candidates
    scorer: dict[str, Any]  # The scorer's kind, name and digest, and what else it says of itself
    # A digest of what each of the two is on any split
    roles: list[str] = Field(default_factory=list)
    k: int | Literal["all"]  # How many candidates are ordered; the store may hold more
    combine: str = "scorer"  # How the two scores of a candidate become one
    weight: float = 0.0  # The retriever's share
    logits: bool = False  # Whether the scorer's scores are logits
    protocol: Folds  # The protocol within whose folds candidates were sought
    distractors: list[str] = Field(default_factory=list)  # The data sets of the distractors
    # How k and the weight were chosen on val; {} if they were given.
    tuned: dict[str, Any] = Field(default_factory=dict)

    @property
    def place(self) -> str:
        """The scorer's name, or where its files are."""
        return str(self.scorer.get("place", self.scorer["name"]))

    @property
    def asked(self) -> str:
        """The scorer as `rerank --with` names it."""
        if self.by_system:
            return self.place
        return f"{self.scorer['kind']}:{self.place}"

    @property
    def by_system(self) -> bool:
        """Whether the scorer is a stored system."""
        return bool(self.scorer.get("kind") == "system")


class Made(Facts):
    """What is known of a system. Of plain matrices any part may be unknown."""

    dataset: str = ""  # The data set of its images and captions; "" if nothing is known
    split: str | None = None  # The split, or several joined by +
    manifest: str | None = None  # Digest of the manifest
    # The recipe of its heads, or the name of a dual encoder or given system; None if its members
    # differ in it.
    recipe: str | None = None
    text: str | None = None  # The text encoder; None if its members differ in it
    seed: int | None = None  # The seed; None if its members differ in it
    ensemble: str | None = None  # An ensemble's name, or the letters of its features
    # Feature -> the name under which its engine's features are reported.
    features: dict[str, str] = Field(default_factory=dict)
    # Those of a reranked system's retriever, by which tables name it
    visual: list[str] | None = None
    # The features that an untrained network made
    untrained: list[str] = Field(default_factory=list)
    members: list[Member] = Field(default_factory=list)  # The heads and dual encoders behind it
    # The data set that its heads were trained on, if that is another one
    trained_on: str | None = None
    # The captions' languages, if they are several
    languages: list[str] = Field(default_factory=list)
    # What was left out of its data set and split: reason -> number of captions, or of images
    # without features.
    lacks: dict[str, int] = Field(default_factory=dict)
    # The images that not all members of an ensemble have
    left_out: list[int] = Field(default_factory=list)
    named: bool = False  # Whether a user chose the name of a reranked system
    fusion: Fusion | None = None  # How an ensemble's members are fused
    # The corrections and rerankings of its scores, in their order.
    steps: list[dict[str, Any]] = Field(default_factory=list)
    rescored: Rescored | None = None  # What a correction was made of
    reranked: Reranked | None = None  # What a reranking was made of
    # The only protocol that an ensemble of reranked systems can be measured by
    protocol: Folds | None = None
    matrices: Matrices | None = None  # How several stored matrices are read
    file: str | None = None  # Digest of a plain matrix's file
    distance: bool = False  # Whether a plain matrix holds distances

    @property
    def is_known(self) -> bool:
        """Whether anything is known."""
        return self != Made()

    @property
    def training_data(self) -> str:
        """The data set that its heads were trained on."""
        return self.trained_on or self.dataset

    @property
    def reasons_left_out(self) -> dict[str, int]:
        """What was left out of its data set and pool: reason -> count."""
        if not self.left_out:
            return dict(self.lacks)
        return {**self.lacks, "images that a member lacks": len(self.left_out)}

    @property
    def heads(self) -> list[str]:
        """Its members' names."""
        return [member.head for member in self.members]

    @property
    def checkpoints(self) -> list[str]:
        """SHA-256 of its members' checkpoints."""
        return [member.checkpoint for member in self.members]

    @property
    def is_own_ensemble(self) -> bool:
        """Whether a user chose its members; otherwise an ensemble averages the heads of features,
        as in the papers.
        """
        return self.fusion is not None and not self.fusion.features

    @property
    def letters(self) -> str:
        """The letters of its features, by which tables name them; of a reranked system those of its
        retriever.
        """
        if self.visual is None:
            return letters(tuple(self.features))
        return letters(tuple(self.visual))

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name, or that of what it is made of."""
        if self.named or self.is_own_ensemble or not self.members:
            return True
        if self.ensemble is not None:
            return False
        return self.seed is None or self.heads[0] != of_seed(self.first, self.seed)

    @property
    def first(self) -> str:
        """What its facts call the head, dual encoder, given system or ensemble that it is made of,
        without its seed.
        """
        if self.is_own_ensemble or not self.members or not self.members[0].is_head:
            return str(self.ensemble or self.recipe)
        features = self.ensemble or self.members[0].feature
        return system_name(str(self.recipe), features, str(self.text))

    @property
    def series(self) -> str:
        """What its facts call it, without its seed: "vse2ad-RG-bigru+csls", whatever its own name
        is.
        """
        steps = [step["name"] for step in self.steps]
        return "+".join([self.first, *steps])

    @property
    def without_seed(self) -> str:
        """SHA-256 over what all seeds of one system have in common."""
        same = self.model_dump(
            mode="json",
            include={
                "dataset",
                "split",
                "manifest",
                "trained_on",
                "features",
                "untrained",
                "visual",
                "steps",
            },
        )
        members = [member.of_all_seeds for member in self.members]
        fusion = self.fusion or Fusion()
        return digest([self.series, same, members, fusion.method, fusion.weights])

    @property
    def has_seen_queries(self) -> bool:
        """Whether its scores depend on the other queries that are ranked, which tables mark."""
        return any(step.get("bank") == "test" for step in self.steps)

    @property
    def is_encoder(self) -> bool:
        """Whether a dual encoder made it, without a head."""
        return len(self.members) == 1 and self.members[0].encoder is not None

    @property
    def is_given(self) -> bool:
        """Whether its scores were given, and nothing was done to them."""
        if len(self.members) != 1 or self.is_made_of_others:
            return False
        return self.members[0].given is not None

    @property
    def renewal(self) -> str:
        """What makes it anew, for messages."""
        return "add it again" if self.is_given else "score it again"

    @property
    def is_made_of_others(self) -> bool:
        """Whether its scores are an ensemble's, corrected or reranked."""
        return self.ensemble is not None or self.rescored is not None or self.reranked is not None

    def made_again(self, name: str) -> tuple[str, str]:
        """How a system of that name was made from others, in words, and the command that makes it
        again.
        """
        if self.reranked:
            command = (
                f"rerank --retriever {self.reranked.retriever} "
                f"--with {self.reranked.asked} --name {name}"
            )
            return "reranked with scores", command
        if self.rescored:
            command = f"rescore {self.rescored.system} --by {self.steps[-1]['name']}"
            if self.rescored.options.get("bank") == "test":
                command += " --bank test"
            return "made", command
        if not self.is_own_ensemble:
            command = (
                f"ensemble {self.ensemble} --recipe {self.recipe} --text {self.text} "
                f"--seed {self.seed}"
            )
            return "an ensemble", command
        fusion = self.fusion or Fusion()
        command = f"ensemble {self.ensemble}"
        for member in fusion.members:
            command += f" --member {member}"
        if len(set(fusion.weights)) > 1:
            for weight in fusion.weights:
                command += f" --weight {weight:g}"
        if fusion.method != "mean":
            command += f" --fusion {fusion.method}"
        return "an ensemble", command

    def refuse_vectors(self, name: str, verb: str) -> None:
        """Refuse a system made of others' scores where vectors are needed. verb: what to do with
        its members.
        """
        if not self.is_made_of_others:
            return
        _, command = self.made_again(name)
        members = ", ".join(dict.fromkeys(self.heads))
        advice = f"; {verb} its members: {members}" if members else ""
        raise InputError(
            f"{name}: `pipeline {command}` makes it of other systems' scores, and it "
            f"has no vectors of its own{advice}"
        )

    def with_step(self, step: dict[str, Any], **facts: Any) -> "Made":
        """Add a correction or a reranking, for a system that is made of this one."""
        return self.changed(steps=[*self.steps, step], matrices=None, **facts)


def lacking(left_out: Mapping[str, int], without_features: int = 0) -> dict[str, int]:
    """Count what is left out: of the manifest, and images without features."""
    if not without_features:
        return dict(left_out)
    return {**left_out, "images without features": without_features}


def differences(mine: Sequence[Member], others: Sequence[Member]) -> str:
    """Say how two systems differ, member by member; "" if they are seeds of one system."""
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
