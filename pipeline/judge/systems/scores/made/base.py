"""What is asked of the facts of any system."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import ConfigDict, SerializerFunctionWrapHandler, model_serializer

from pipeline.foundation.files.digest import digest
from pipeline.foundation.settings.features import letters
from pipeline.judge.systems.scores.made.facts import Facts, Member

if TYPE_CHECKING:
    from builtins import property as fact
else:

    class fact:
        """A property that a kind of system may have as a field.

        pydantic takes whatever a class has by the name of a field for the field's default. A class
        has no `fact`, only systems have, and a field's value comes before it.
        """

        def __init__(self, answer: Callable[["Made"], Any]) -> None:
            self.answer = answer
            self.__doc__ = answer.__doc__

        def __get__(self, made: "Made | None", kind: type["Made"]) -> Any:
            if made is None:
                raise AttributeError(f"{kind.__name__} has no {self.answer.__name__} by itself")
            return self.answer(made)


class Folds(Facts):
    """A protocol by its name and the number of its folds."""

    name: str
    folds: int = 1


class Made(Facts):
    """What is known of a system: the base of the classes for each kind of system.

    A kind says what it knows, as fields, which are recorded, or as properties. What it does not say
    is what its source says: the system that it is made of, or for the first scores `UNKNOWN`.
    """

    model_config = ConfigDict(ignored_types=(fact,))

    kind: str  # The kind as records write it

    @model_serializer(mode="wrap")
    def _with_kind(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The facts with the kind, which is a default."""
        return {"kind": self.kind, **write(self)}

    @fact
    def source(self) -> "Made":
        """What says the facts that its own kind does not say."""
        return UNKNOWN

    @fact
    def dataset(self) -> str:
        """The data set of its images and captions; "" if nothing is known."""
        return self.source.dataset

    @fact
    def split(self) -> str | None:
        """The split, or several joined by +; None if it is unknown."""
        return self.source.split

    @fact
    def manifest(self) -> str | None:
        """Digest of the manifest; None if it is unknown."""
        return self.source.manifest

    @fact
    def languages(self) -> list[str]:
        """The captions' languages, if they are several."""
        return self.source.languages

    @fact
    def lacks(self) -> dict[str, int]:
        """What was left out of its data set and split: reason -> number of captions, or of images
        without features.
        """
        return self.source.lacks

    @fact
    def left_out(self) -> list[int]:
        """The images that not all members of an ensemble have."""
        return self.source.left_out

    @fact
    def recipe(self) -> str | None:
        """The recipe of its heads, or the name of a dual encoder or given system; None if its
        members differ in it.
        """
        return self.source.recipe

    @fact
    def text(self) -> str | None:
        """The text encoder; None if its members differ in it."""
        return self.source.text

    @fact
    def seed(self) -> int | None:
        """The seed; None if its members differ in it."""
        return self.source.seed

    @fact
    def trained_on(self) -> str:
        """The data set that its heads were trained on; "" if it has none."""
        return self.source.trained_on

    @fact
    def features(self) -> dict[str, str]:
        """Feature -> the name under which its engine's features are reported."""
        return self.source.features

    @fact
    def untrained(self) -> list[str]:
        """The features that an untrained network made."""
        return self.source.untrained

    @fact
    def members(self) -> list[Member]:
        """The heads, dual encoders and given scores behind it."""
        return self.source.members

    @fact
    def files(self) -> list[str]:
        """Digests of the files of plain matrices behind it."""
        return self.source.files

    @fact
    def protocol(self) -> Folds | None:
        """The only protocol that it can be measured by; None for any."""
        return self.source.protocol

    @property
    def fused_by(self) -> dict[str, Any]:
        """The method and the weights of an ensemble's fusion; {} for other systems."""
        return self.source.fused_by

    @property
    def first(self) -> str:
        """What its facts call the head, dual encoder, given system or ensemble that it is made of,
        without its seed; "" if it has no name.
        """
        return self.source.first

    @property
    def is_named(self) -> bool:
        """Whether a user chose its name, or that of what it is made of."""
        return self.source.is_named

    @property
    def lineage(self) -> "list[Made]":
        """What its first scores were made by, the corrections and rerankings of these, and
        itself.
        """
        return [self]

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The corrections and rerankings of its scores, in their order, as tables name them."""
        return []

    @property
    def renewal(self) -> str:
        """What makes it anew, for messages."""
        return "score it again"

    def refuse_vectors(self, name: str, verb: str) -> None:
        """Refuse a system made of others' scores where vectors are needed.

        Args:
            name: The system's.
            verb: What to do with its members instead.
        """

    @property
    def origin(self) -> "Made":
        """What made its first scores, before any correction or reranking."""
        return self.lineage[0]

    @property
    def training_data(self) -> str:
        """The data set that its heads were trained on, else its own."""
        return self.trained_on or self.dataset

    @property
    def letters(self) -> str:
        """The letters of its features, by which tables name them; of a reranked system those of its
        retriever.
        """
        return letters(tuple(self.origin.features))

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

    @property
    def competes(self) -> bool:
        """Whether its numbers may be bold: not those of a dual encoder, which was trained on other
        data than others, nor of scores that depend on the other test queries.
        """
        if self.has_seen_queries:
            return False
        if self.letters or any(member.given for member in self.members):
            return True
        return not any(member.encoder for member in self.members)


class Unknown(Made):
    """Scores of which nothing is known."""

    kind: Literal["unknown"] = "unknown"

    dataset: ClassVar[str] = ""
    split: ClassVar[str | None] = None
    manifest: ClassVar[str | None] = None
    languages: ClassVar[list[str]] = []
    lacks: ClassVar[dict[str, int]] = {}
    left_out: ClassVar[list[int]] = []
    recipe: ClassVar[str | None] = None
    text: ClassVar[str | None] = None
    seed: ClassVar[int | None] = None
    trained_on: ClassVar[str] = ""
    features: ClassVar[dict[str, str]] = {}
    untrained: ClassVar[list[str]] = []
    members: ClassVar[list[Member]] = []
    files: ClassVar[list[str]] = []
    protocol: ClassVar[Folds | None] = None
    fused_by: ClassVar[dict[str, Any]] = {}
    first: ClassVar[str] = ""
    is_named: ClassVar[bool] = True


UNKNOWN = Unknown()
