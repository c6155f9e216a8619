"""The facts of a system: what its store's record, results and systems made of it say of what made
it.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)

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

    method: str
    weights: list[float]  # One for each member, which add up to 1
    members: list[str]
    # Those whose heads are averaged, as in the papers; [] where a user chose the members.
    features: list[str] = Field(default_factory=list)
    # How the weights were chosen on val; {} if they were given.
    tuned: dict[str, Any] = Field(default_factory=dict)


class Folds(Facts):
    """A protocol by its name and the number of its folds."""

    name: str
    folds: int = 1


class Made(Facts):
    """What is known of a system: the base of the classes for each kind of system."""

    if TYPE_CHECKING:
        # Each kind has these: as facts, as what follows from them, or from what it is made of.

        @property
        def kind(self) -> str:
            """The kind as records write it."""

        @property
        def dataset(self) -> str:
            """The data set of its images and captions; "" if nothing is known."""

        @property
        def split(self) -> str | None:
            """The split, or several joined by +; None if it is unknown."""

        @property
        def manifest(self) -> str | None:
            """Digest of the manifest; None if it is unknown."""

        @property
        def languages(self) -> list[str]:
            """The captions' languages, if they are several."""

        @property
        def lacks(self) -> dict[str, int]:
            """What was left out of its data set and split: reason -> number of captions, or of
            images without features.
            """

        @property
        def recipe(self) -> str | None:
            """The recipe of its heads, or the name of a dual encoder or given system; None if its
            members differ in it.
            """

        @property
        def text(self) -> str | None:
            """The text encoder; None if its members differ in it."""

        @property
        def seed(self) -> int | None:
            """The seed; None if its members differ in it."""

        @property
        def features(self) -> dict[str, str]:
            """Feature -> the name under which its engine's features are reported."""

        @property
        def untrained(self) -> list[str]:
            """The features that an untrained network made."""

        @property
        def members(self) -> list[Member]:
            """The heads, dual encoders and given scores behind it."""

        @property
        def left_out(self) -> list[int]:
            """The images that not all members of an ensemble have."""

        @property
        def files(self) -> list[str]:
            """Digests of the files of plain matrices behind it."""

        @property
        def protocol(self) -> Folds | None:
            """The only protocol that it can be measured by; None for any."""

    @model_serializer(mode="wrap")
    def _with_kind(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The facts with the kind, which is a default."""
        return {"kind": self.kind, **write(self)}

    @property
    def lineage(self) -> "list[Made]":
        """What its first scores were made by, the corrections and rerankings of these, and
        itself.
        """
        return [self]

    @property
    def origin(self) -> "Made":
        """What made its first scores, before any correction or reranking."""
        return self.lineage[0]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The corrections and rerankings of its scores, in their order, as tables name them."""
        return []

    @property
    def fused_by(self) -> dict[str, Any]:
        """The method and the weights of an ensemble's fusion; {} for other systems."""
        return {}

    @property
    def training_data(self) -> str:
        """The data set that its heads were trained on."""
        return self.dataset

    @property
    def letters(self) -> str:
        """The letters of its features, by which tables name them; of a reranked system those of its
        retriever.
        """
        return letters(tuple(self.features))

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name, or that of what it is made of."""
        return True

    @property
    def first(self) -> str:
        """What its facts call the head, dual encoder, given system or ensemble that it is made of,
        without its seed.
        """
        return ""

    @property
    def renewal(self) -> str:
        """What makes it anew, for messages."""
        return "score it again"

    def refuse_vectors(self, name: str, verb: str) -> None:
        """Refuse a system made of others' scores where vectors are needed. verb: what to do with
        its members.
        """

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
    def series(self) -> str:
        """What its facts call it, without its seed: "vse2ad-RG-bigru+csls", whatever its own name
        is.
        """
        names = [step["name"] for step in self.steps]
        return "+".join([self.first, *names])

    @property
    def without_seed(self) -> str:
        """SHA-256 over what all seeds of one system have in common."""
        data = [self.dataset, self.split, self.manifest, self.training_data]
        features = [self.features, self.untrained, self.letters]
        members = [member.of_all_seeds for member in self.members]
        return digest([self.series, data, features, self.steps, members, self.fused_by])

    @property
    def has_seen_queries(self) -> bool:
        """Whether its scores depend on the other queries that are ranked, which tables mark."""
        return any(step.get("bank") == "test" for step in self.steps)


class Plain(Made):
    """Scores of which no head, dual encoder or title is known."""

    languages: ClassVar[list[str]] = []
    lacks: ClassVar[dict[str, int]] = {}
    recipe: ClassVar[str | None] = None
    text: ClassVar[str | None] = None
    seed: ClassVar[int | None] = None
    features: ClassVar[dict[str, str]] = {}
    untrained: ClassVar[list[str]] = []
    members: ClassVar[list[Member]] = []
    left_out: ClassVar[list[int]] = []
    protocol: ClassVar[Folds | None] = None


class Unknown(Plain):
    """Scores of which nothing is known."""

    kind: Literal["unknown"] = "unknown"

    dataset: ClassVar[str] = ""
    split: ClassVar[str | None] = None
    manifest: ClassVar[str | None] = None
    files: ClassVar[list[str]] = []


class OfFile(Plain):
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

    left_out: ClassVar[list[int]] = []
    files: ClassVar[list[str]] = []
    protocol: ClassVar[Folds | None] = None

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
    def training_data(self) -> str:
        """The data set of its training."""
        return self.trained_on

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
    features: ClassVar[dict[str, str]] = {}
    untrained: ClassVar[list[str]] = []

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
    seed: ClassVar[int | None] = None
    features: ClassVar[dict[str, str]] = {}
    untrained: ClassVar[list[str]] = []

    @property
    def recipe(self) -> str:
        """Its name."""
        return self.member.head

    @property
    def renewal(self) -> str:
        """What makes it anew, for messages."""
        return "add it again"


class MadeOfOthers(Made, ABC):
    """The facts of scores that are made of other systems' scores."""

    @abstractmethod
    def made_again(self, name: str) -> tuple[str, str]:
        """Say how a system of that name was made from others, and by which command.

        Returns:
            How, in words, and the command that makes it again.
        """

    def refuse_vectors(self, name: str, verb: str) -> None:
        """Refuse it where vectors are needed."""
        _, command = self.made_again(name)
        raise no_vectors(name, command, verb, self.heads)


class Ensemble(MadeOfOthers):
    """The facts of several systems' scores, fused."""

    kind: Literal["ensemble"] = "ensemble"

    name: str  # The name that a user chose, or the letters of its features
    dataset: str
    split: str
    manifest: str
    languages: list[str]
    lacks: dict[str, int]
    # The images that not all members have
    left_out: list[int] = Field(default_factory=list)
    recipe: str | None
    text: str | None
    seed: int | None
    trained_on: str  # The data set of its heads' training
    # Feature -> the names under which its engines' features are reported, joined by +
    features: dict[str, str]
    untrained: list[str]
    members: list[Member]
    fusion: Fusion
    # The only protocol that an ensemble of reranked systems can be measured by
    protocol: Folds | None = None
    # Whether a member's scores depend on the other queries that are ranked
    sees_queries: bool = False
    # Digests of the files of members that are plain matrices
    files: list[str] = Field(default_factory=list)

    @property
    def is_own(self) -> bool:
        """Whether a user chose its members; otherwise it averages the heads of features, as in the
        papers.
        """
        return not self.fusion.features

    @property
    def steps(self) -> list[dict[str, Any]]:
        """A mark, if a member has seen the queries."""
        return [{"name": "ensemble", "bank": "test"}] if self.sees_queries else []

    @property
    def fused_by(self) -> dict[str, Any]:
        """The method and the weights."""
        return {"method": self.fusion.method, "weights": self.fusion.weights}

    @property
    def training_data(self) -> str:
        """The data set of its heads' training."""
        return self.trained_on

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name."""
        return self.is_own

    @property
    def first(self) -> str:
        """Its own name, or the name that a run gives it, without the seed."""
        if self.is_own:
            return self.name
        return system_name(str(self.recipe), self.name, str(self.text))

    def made_again(self, name: str) -> tuple[str, str]:
        """The command that fuses its members again."""
        if not self.is_own:
            return "an ensemble", papers_ensemble(self.name, self.recipe, self.text, self.seed)
        command = f"ensemble {self.name}"
        for member in self.fusion.members:
            command += f" --member {member}"
        if len(set(self.fusion.weights)) > 1:
            for weight in self.fusion.weights:
                command += f" --weight {weight:g}"
        if self.fusion.method != "mean":
            command += f" --fusion {self.fusion.method}"
        return "an ensemble", command


class OfAnother(MadeOfOthers):
    """The facts of one system's scores after a correction or a reranking."""

    # The facts of that system
    source: Annotated[SerializeAsAny[Made], BeforeValidator(lambda facts: read(facts))]

    @property
    def lineage(self) -> list[Made]:
        """The lineage of what it is made of, and itself."""
        return [*self.source.lineage, self]

    @property
    @abstractmethod
    def step(self) -> dict[str, Any]:
        """What was done to the scores, as tables name it."""

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps of what it is made of, and its own."""
        return [*self.source.steps, self.step]

    @property
    def dataset(self) -> str:
        """The data set of what it is made of."""
        return self.source.dataset

    @property
    def split(self) -> str | None:
        """The split of what it is made of."""
        return self.source.split

    @property
    def manifest(self) -> str | None:
        """The manifest's digest of what it is made of."""
        return self.source.manifest

    @property
    def languages(self) -> list[str]:
        """The languages of what it is made of."""
        return self.source.languages

    @property
    def lacks(self) -> dict[str, int]:
        """How many images and captions what it is made of lacks."""
        return self.source.lacks

    @property
    def left_out(self) -> list[int]:
        """How many images its members left out."""
        return self.source.left_out

    @property
    def recipe(self) -> str | None:
        """The recipe of what it is made of, if it has one."""
        return self.source.recipe

    @property
    def text(self) -> str | None:
        """The text encoder of what it is made of, if it has one."""
        return self.source.text

    @property
    def seed(self) -> int | None:
        """The seed of what it is made of, if it has one."""
        return self.source.seed

    @property
    def files(self) -> list[str]:
        """The plain files behind it."""
        return self.source.files

    @property
    def fused_by(self) -> dict[str, Any]:
        return self.source.fused_by

    @property
    def training_data(self) -> str:
        return self.source.training_data

    @property
    def letters(self) -> str:
        return self.source.letters

    @property
    def is_named(self) -> bool:
        return self.source.is_named

    @property
    def first(self) -> str:
        return self.source.first


class Rescored(OfAnother):
    """The facts of a system whose scores were corrected."""

    kind: Literal["rescored"] = "rescored"

    system: str  # The system whose scores were corrected
    rescorer: str
    bank: str  # The split of the correction's bank
    options: dict[str, Any]

    @property
    def features(self) -> dict[str, str]:
        """The features of what it is made of."""
        return self.source.features

    @property
    def untrained(self) -> list[str]:
        """The networks that were not trained, of what it is made of."""
        return self.source.untrained

    @property
    def members(self) -> list[Member]:
        """The members of what it is made of."""
        return self.source.members

    @property
    def protocol(self) -> Folds | None:
        """The folds that what it is made of was ranked in, if it was."""
        return self.source.protocol

    @property
    def step(self) -> dict[str, Any]:
        """The correction, its bank and its options."""
        return {"name": self.rescorer, "bank": self.bank, **self.options}

    def made_again(self, name: str) -> tuple[str, str]:
        """The command that corrects the scores again."""
        command = f"rescore {self.system} --by {self.rescorer}"
        if self.options.get("bank") == "test":
            command += " --bank test"
        return "made", command


class Scorer(Facts):
    """What a scorer of pairs says of itself, whatever that is beside this."""

    model_config = ConfigDict(extra="allow", frozen=True)

    kind: str
    name: str
    place: str  # The name, or where its files are
    made_from: str  # A digest of all that its scores rest on
    series: str = ""  # What all seeds of it are called; "" for its name
    steps: list[dict[str, Any]] = Field(default_factory=list)  # A stored system's
    options: dict[str, Any] = Field(default_factory=dict)
    checkpoint: str | None = None  # A head's
    trained_on: str | None = None  # None for the data set of the queries

    @property
    def is_system(self) -> bool:
        """Whether it is a stored system."""
        return self.kind == "system"

    @property
    def asked(self) -> str:
        """The scorer as `rerank --with` names it."""
        if self.is_system:
            return self.place
        return f"{self.kind}:{self.place}"


class Reranked(OfAnother):
    """The facts of a reranked system; `source` is its retriever."""

    kind: Literal["reranked"] = "reranked"

    named: bool  # Whether a user chose its name
    retriever: str  # The system that orders all but the candidates
    scorer: Scorer
    # A digest of what each of the two is on any split
    roles: list[str]
    k: int | Literal["all"]  # How many candidates are ordered; the store may hold more
    combine: str  # How the two scores of a candidate become one
    weight: float  # The retriever's share
    logits: bool  # Whether the scorer's scores are logits
    protocol: Folds  # The protocol within whose folds candidates were sought
    # The retriever's and the scorer's
    features: dict[str, str]
    untrained: list[str]
    members: list[Member]
    distractors: list[str] = Field(default_factory=list)  # The data sets of the distractors
    # How k and the weight were chosen on val; {} if they were given.
    tuned: dict[str, Any] = Field(default_factory=dict)

    @property
    def step(self) -> dict[str, Any]:
        """The scorer, k and the combination, and whether the scorer has seen the queries."""
        by = self.scorer.series or self.scorer.name
        step: dict[str, Any] = {"name": "rerank", "with": by, "k": self.k}
        if self.combine != "scorer":
            step[self.combine] = self.weight
        if any(done.get("bank") == "test" for done in self.scorer.steps):
            step["bank"] = "test"
        return step

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name, or that of its retriever."""
        return self.named or self.source.is_named

    def made_again(self, name: str) -> tuple[str, str]:
        """The command that reranks the retriever again."""
        command = f"rerank --retriever {self.retriever} --with {self.scorer.asked} --name {name}"
        return "reranked with scores", command


_OF_ANY_KIND: TypeAdapter[Made] = TypeAdapter(
    Annotated[
        Unknown | OfFile | OfHead | OfEncoder | OfGiven | Ensemble | Rescored | Reranked,
        Field(discriminator="kind"),
    ]
)


def read(facts: Mapping[str, Any] | Made) -> Made:
    """Read recorded facts of any kind; a ValueError if they are none."""
    return _OF_ANY_KIND.validate_python(facts)


def papers_ensemble(name: str, recipe: str | None, text: str | None, seed: int | None) -> str:
    """The command that makes an ensemble of the heads of features, as in the papers."""
    return f"ensemble {name} --recipe {recipe} --text {text} --seed {seed}"


def no_vectors(name: str, command: str, verb: str, heads: Sequence[str]) -> InputError:
    """The refusal of a system that a command makes of others' scores. verb: what to do with its
    heads.
    """
    members = ", ".join(dict.fromkeys(heads))
    advice = f"; {verb} its members: {members}" if members else ""
    return InputError(
        f"{name}: `pipeline {command}` makes it of other systems' scores, and it "
        f"has no vectors of its own{advice}"
    )


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
