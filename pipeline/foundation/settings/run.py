"""The section `run`: what `dvc repro` makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, model_validator

from pipeline.foundation.parts.section import Section
from pipeline.foundation.settings.features import FEATURES, of_ensemble
from pipeline.foundation.settings.parts import (
    EncoderName,
    Named,
    ProtocolName,
    ScorerName,
    TextName,
    check_options,
)
from pipeline.foundation.settings.section import Axis, Name, without_repeats

if TYPE_CHECKING:
    Feature = str
else:
    Feature = Literal[tuple(FEATURES)]


class Rescore(Named):
    """A step after the ensembles: similarities that a rescorer computes from another system's."""

    KIND = "rescorers"

    def applied_to(self, system: str) -> str:
        """The rescored system's name, such as R+nnn; R+nnn-test if its bank is the ranked queries
        themselves.
        """
        return f"{system}+{self.name}{'-test' if self.options.get('bank') == 'test' else ''}"


class Rerank(Section):
    """A step after the ensembles: candidates of a retriever, reordered by a scorer of pairs.

    name: Ends the name of the new system: RETRIEVER+NAME.
    retriever: A feature or an ensemble of the run.
    scorer: The key `with`: another feature or ensemble of the run, or a name that `pipeline rerank
        --with` takes.
    k: How many candidates of each query are reordered.
    options: The options of a scorer that is named KIND:NAME, if its kind has any.
    combine: How a candidate's two scores become one.
    weight: λ, the retriever's share, for add and norm_add.
    protocol: The protocol within whose folds candidates are retrieved; by default the data set's
        own, if it has one.
    """

    name: Name
    retriever: str
    scorer: ScorerName = Field(alias="with")
    options: dict[str, Any] = Field(default_factory=dict)
    k: Annotated[int, Field(ge=1)] | Literal["all"] = 20
    combine: Literal["scorer", "add", "norm_add"] = "scorer"
    weight: Annotated[float, Field(ge=0, le=1)] | None = None
    protocol: ProtocolName | None = None

    @model_validator(mode="after")
    def _takes_options(self) -> Rerank:
        kind, colon, _ = self.scorer.partition(":")
        if colon:
            check_options("scorers", kind, self.options)
        elif self.options:
            raise ValueError(
                f"options are those of a kind of scorer, KIND:NAME, and {self.scorer} is a system's name"
            )
        return self

    @model_validator(mode="after")
    def _has_a_weight_where_one_counts(self) -> Rerank:
        if (self.weight is None) != (self.combine == "scorer"):
            raise ValueError(
                "combine add or norm_add needs a weight, and combine scorer takes none"
            )
        return self

    def applied_to(self, retriever: str) -> str:
        """The reranked system's name."""
        return f"{retriever}+{self.name}"


class Encoder(Section):
    """A pretrained dual encoder that is measured beside the run's heads, as it comes or trained on.

    name: What it is called in results.
    model: KIND:FOLDER or KIND:NAME, as `pipeline embed --system` takes it.
    finetune: The section of `finetuning` by which it is trained on before it is measured; null for
        as it comes.
    prompt: The text that it reads, with {} for the caption; own for that of its fine-tuning, else
        the caption alone.
    preprocessing: The model's own, by Pillow or by torchvision; or images squashed to its size
        without a crop.
    precision: The precision in which it computes.
    interpolation: By which images are resized.
    token_limit: How many tokens of a caption it reads at most, if fewer than it can.
    trained_on: What it was trained on; by default what its card in manifests/weights.yaml says.
    """

    name: Name
    model: EncoderName
    finetune: Name | None = None
    prompt: str = "own"
    preprocessing: Literal["own", "squash", "torchvision"] = "own"
    precision: Literal["fp32", "bf16", "fp16"] = "fp32"
    interpolation: Literal["own", "bilinear", "bicubic"] = "own"
    token_limit: Annotated[int, Field(ge=3)] | None = None
    trained_on: str | None = None


Step = TypeVar("Step", Encoder, Rescore)


def _make_different_systems(made: list[Step]) -> list[Step]:
    without_repeats(
        [step.name if isinstance(step, Encoder) else step.applied_to("") for step in made]
    )
    return made


def _are_of_the_run(steps: list[Rerank], checked: ValidationInfo) -> list[Rerank]:
    without_repeats([step.applied_to("") for step in (*checked.data.get("rescorers", ()), *steps)])
    known = [*checked.data.get("features", ()), *checked.data.get("ensembles", ())]
    for step in steps:
        if step.retriever not in known:
            raise ValueError(
                f"{step.retriever!r} is no feature or ensemble of the run; expected {', '.join(known)}"
            )
    return steps


def _are_of_features(names: list[str]) -> list[str]:
    for name in names:
        if not of_ensemble(name):
            known = ", ".join(f"{feature.letter} ({name})" for name, feature in FEATURES.items())
            raise ValueError(f"{name!r} is no ensemble; expected letters of {known}, in this order")
    return without_repeats(names)


def _are_no_recipes_of_the_run(names: list[str], checked: ValidationInfo) -> list[str]:
    for name in names:
        if name in checked.data.get("recipes", ()):
            raise ValueError(f"{name!r} is also in run.recipes; keep one of them")
    return without_repeats(names)


class Run(Section):
    """The data set, heads and systems that `dvc repro` makes.

    Every recipe is trained on every feature with every text encoder and seed.

    encoders: Pretrained dual encoders that are measured too, or trained on by the first seed and
        then measured.
    rescorers: Each makes one more system from every head and ensemble, except from ablations.
    rerank: Each makes one more system from its retriever, for every recipe, text encoder and seed.
    ablations: Recipes that are trained on the first feature with the first text encoder only.
    """

    dataset: Name
    features: Axis[Feature]
    ensembles: Annotated[list[str], AfterValidator(_are_of_features)]
    texts: Axis[TextName]
    recipes: Axis[Name]
    seeds: Axis[Annotated[int, Field(ge=0, lt=2**32)]]
    ablations: Annotated[list[Name], AfterValidator(_are_no_recipes_of_the_run)]
    encoders: Annotated[list[Encoder], AfterValidator(_make_different_systems)] = Field(
        default_factory=list
    )
    rescorers: Annotated[list[Rescore], AfterValidator(_make_different_systems)] = Field(
        default_factory=list
    )
    rerank: Annotated[list[Rerank], AfterValidator(_are_of_the_run)] = Field(default_factory=list)

    @property
    def left_out(self) -> dict[str, list[str]]:
        """The ensembles that cannot be made, each with its features that the run leaves out."""
        lacking = {
            name: [each for each in of_ensemble(name) if each not in self.features]
            for name in self.ensembles
        }
        return {name: features for name, features in lacking.items() if features}
