"""The facts of what is made of other systems' scores: ensembles, corrected and reranked systems."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, SerializeAsAny, TypeAdapter

from pipeline.foundation.evaluation.retrieval import PROTOCOLS
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import system_name
from pipeline.judge.systems.scores.made.base import Folds, Made, Unknown
from pipeline.judge.systems.scores.made.facts import Facts, Member
from pipeline.judge.systems.scores.made.of_one import OfEncoder, OfFile, OfGiven, OfHead


class MadeOfOthers(Made, ABC):
    """The facts of scores that are made of other systems' scores."""

    @abstractmethod
    def made_again(self, name: str) -> tuple[str, str]:
        """Say how a system of that name was made from others, and by which command.

        Returns:
            How, in words, and the command that makes it again.
        """

    @property
    def where(self) -> str:
        """The options by which that command makes it for the same data set and split."""
        options = f" --dataset {self.dataset}"
        if self.split != "test":
            options += f" -S score.split={self.split}"
        return options

    def refuse_vectors(self, name: str, verb: str) -> None:
        """Refuse it where vectors are needed, with an `InputError`, see `Made.refuse_vectors`."""
        _, command = self.made_again(name)
        raise no_vectors(name, command, verb, self.heads)


class Fusion(Facts):
    """How an ensemble's members are fused."""

    method: str
    weights: list[float]  # One for each member, which add up to 1
    members: list[str]
    # Those whose heads are averaged, as in the papers; [] where a user chose the members.
    features: list[str] = Field(default_factory=list)
    # How the weights were chosen on val; {} if they were given.
    tuned: dict[str, Any] = Field(default_factory=dict)


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
        """Name the command that fuses its members again, see `MadeOfOthers.made_again`."""
        if not self.is_own:
            return "an ensemble", papers_ensemble(self.name, self.recipe, self.text, self.seed)
        command = f"ensemble {self.name}"
        for member in self.fusion.members:
            command += f" --member {member}"
        if len(set(self.fusion.weights)) > 1:
            for weight in self.fusion.weights:
                command += f" --weight {weight}"
        if self.fusion.method != "mean":
            command += f" --fusion {self.fusion.method}"
        if self.left_out:
            command += " --keep-common"
        return "an ensemble", command


class OfAnother(MadeOfOthers):
    """The facts of one system's scores after a correction or a reranking."""

    # The facts of that system, which say all that its own kind does not
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


class Rescored(OfAnother):
    """The facts of a system whose scores were corrected."""

    kind: Literal["rescored"] = "rescored"

    system: str  # The system whose scores were corrected
    rescorer: str
    bank: str  # The split of the correction's bank
    options: dict[str, Any]

    @property
    def step(self) -> dict[str, Any]:
        """The correction, its bank and its options."""
        return {"name": self.rescorer, "bank": self.bank, **self.options}

    def made_again(self, name: str) -> tuple[str, str]:
        """Name the command that corrects the scores again, see `MadeOfOthers.made_again`."""
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
    pools: list[str] = Field(default_factory=list)  # Their stores, as seen from the root
    # How k and the weight were chosen on val; {} if they were given.
    tuned: dict[str, Any] = Field(default_factory=dict)
    index: str | None = None  # What found candidates by vectors; None for the retriever's scores

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
        """Name the command that reranks the retriever again, see `MadeOfOthers.made_again`."""
        how = "reranked with scores"
        by_default = f"{self.retriever}+rerank"
        if not self.named and name != by_default:  # an entry of the settings' run.rerank
            return how, "rerank --if-changed redo"
        command = f"rerank --retriever {self.retriever} --with {self.scorer.asked}"
        command += "".join(f" --{option}" for option in self._options())
        if name != by_default or self.named:
            command += f" --name {name}"
        return how, f"{command} --if-changed redo"

    def _options(self) -> Iterator[str]:
        """The options of `pipeline rerank` that its scores depend on."""
        if "on" in self.tuned:
            yield f"tuned-on similarities/{self.dataset}/val/{self.tuned['on']}.zarr"
        elif self.tuned:
            yield f"k {self.tuned['largest']}"
            yield f"combine {self.combine}"
            yield "tune"
        else:
            yield f"k {self.k}"
            if self.combine != "scorer":
                yield f"combine {self.combine}"
                yield f"weight {self.weight}"
        if self.distractors:
            for store in self.pools:
                yield f"distractors {store}"
        elif self.protocol.name in PROTOCOLS:
            yield f"protocol {self.protocol.name}"
        else:
            yield f"folds {self.protocol.folds}"
        if self.training_data != self.dataset:
            yield f"trained-on {self.training_data}"
        if self.index is not None:
            yield f"index {self.index}"


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
    """The command that makes an ensemble of heads as in the papers, by its name and the recipe,
    text encoder and seed of the heads.
    """
    return f"ensemble {name} --recipe {recipe} --text {text} --seed {seed}"


def no_vectors(name: str, command: str, verb: str, heads: Sequence[str]) -> InputError:
    """The refusal of a system that a command makes of others' scores.

    Args:
        name: The system's.
        command: The command, without `pipeline`.
        verb: What to do with its members instead.
        heads: Its members.
    """
    members = ", ".join(dict.fromkeys(heads))
    advice = f"; {verb} its members: {members}" if members else ""
    return InputError(
        f"{name}: `pipeline {command}` makes it of other systems' scores, and it "
        f"has no vectors of its own{advice}"
    )
