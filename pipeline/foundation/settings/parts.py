"""Parts by name in the settings. Their names and options are checked when the settings are read."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.parts.section import first_fault
from pipeline.foundation.settings.kinds import TABLES


def known(kind: str, name: str) -> None:
    """Check that a part has a name, one of those of `TABLES[kind]`."""
    with refusing(InputError, str, ValueError):
        TABLES[kind].module(name)


def check_options(kind: str, name: str, options: Mapping[str, Any]) -> None:
    """Check that a part has a name, and takes some options."""
    try:
        TABLES[kind].options(name, options)
    except InputError as error:
        raise PydanticCustomError("part", "{why}", {"why": str(error)}) from None


def _named(kind: str) -> Callable[[str], str]:
    """Check that a name is a part's."""

    def checked(name: str) -> str:
        known(kind, name)
        return name

    return checked


def _kind_of_encoder(model: str) -> str:
    known("dual_encoders", model.partition(":")[0])
    return model


def _kind_of_scorer(scorer: str) -> str:
    if ":" in scorer:  # else the name of a head or system
        known("scorers", scorer.partition(":")[0])
    return scorer


# The names of parts; KIND:NAME of a dual encoder; KIND:NAME, or the name, of a scorer of pairs.
TextName = Annotated[str, AfterValidator(_named("texts"))]
TokenizerName = Annotated[str, AfterValidator(_named("tokenizers"))]
IndexName = Annotated[str, AfterValidator(_named("indexes"))]
ProtocolName = Annotated[str, AfterValidator(_named("protocols"))]
EncoderName = Annotated[str, AfterValidator(_kind_of_encoder)]
ScorerName = Annotated[str, AfterValidator(_kind_of_scorer)]


def reads_captions(engine: str) -> bool:
    """Whether an engine's options, which are known without importing it, say that it reads
    captions.
    """
    return getattr(TABLES["extractors"].declared(engine), "READS", "images") == "captions"


class WithOptions(BaseModel):
    """A part by name and its options, which are all keys that are not declared; or its name
    alone.
    """

    model_config = ConfigDict(extra="allow", frozen=True)
    KIND: ClassVar[str]  # a key of `TABLES`
    KEY: ClassVar[str] = "name"  # the key of its name

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Choose a part on the command line; what settings would refuse is an InputError."""
        with refusing(ValidationError, first_fault):
            return cls(**given)

    @property
    def part(self) -> str:
        """Its name."""
        return str(getattr(self, self.KEY))

    @property
    def options(self) -> dict[str, Any]:
        """The options of the part."""
        return dict(self.model_extra or {})

    @property
    def completed(self) -> Any:
        """The section of the part's options, with defaults for those that are not chosen."""
        return TABLES[self.KIND].options(self.part, self.options)

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return {cls.KEY: given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _takes_them(self) -> Self:
        check_options(self.KIND, self.part, self.options)
        return self


class Named(WithOptions):
    """A part whose key in the settings is `name`."""

    name: str


class PoolingSettings(Named):
    """A pooling."""

    KIND = "poolings"


class ObjectiveSettings(Named):
    """An objective."""

    KIND = "objectives"

    @property
    def parts(self) -> list[str]:
        """Its name, and that of the objective that it wraps."""
        wrapped = getattr(self.completed, "objective", None)
        if isinstance(wrapped, ObjectiveSettings):
            return [self.part, *wrapped.parts]
        return [self.part]


class TuningSettings(Named):
    """Which weights of a dual encoder are trained."""

    KIND = "tunings"


class ArchitectureSettings(Named):
    """The architecture of a head."""

    KIND = "heads"


class EngineSettings(WithOptions):
    """The engine that makes a feature."""

    KIND = "extractors"
    KEY = "engine"
    engine: str

    @property
    def reads_captions(self) -> bool:
        """Whether it reads captions, not images."""
        return reads_captions(self.engine)
