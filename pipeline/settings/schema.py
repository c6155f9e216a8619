"""The schema of `params.yaml`. Every section is checked, unknown keys are refused."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from pipeline.errors import InputError, unknown
from pipeline.features import FEATURES, of_ensemble

if TYPE_CHECKING:
    Feature = str
else:
    Feature = Literal[tuple(FEATURES)]


def _known_text(name: str) -> str:
    from pipeline.text import TEXTS  # a room above this one: text encoders take settings

    if name not in TEXTS:
        raise ValueError(f"expected one of {', '.join(TEXTS)}")
    return name


Text = Annotated[str, AfterValidator(_known_text)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*$")]
Item = TypeVar("Item")
Count = Annotated[int, Field(ge=1)]
DEFAULT_PRESET = "light"
LANGUAGE_TAG = r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"
LATER = ("languages", "sampling")
"""Keys of recipes that are recorded only where they are not as by default."""
Share = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """A section of the settings. Unknown keys are refused, and values must have exactly the declared type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    ALWAYS_RECORDED: ClassVar[frozenset[str]] = frozenset({"network", "weights"})
    """Settings that are recorded also where they have their default: those that name a network, and those of the first
    release, whose stores stay valid that way."""

    def recorded(self, exclude: Collection[str] = ()) -> dict[str, Any]:
        """Collect what is recorded of the settings beside what they made, and compared with later settings.

        A setting at its default is left out. A setting that is added later, with a default, therefore leaves the
        records as they were, and what was made before it stays valid. The default itself must not change.

        Args:
            exclude: Settings on which what is made does not depend.

        Returns:
            JSON values by name.
        """
        defaults = {name: field.get_default(call_default_factory=True)
                    for name, field in type(self).model_fields.items() if not field.is_required()}
        at_default = {name for name, default in defaults.items() if getattr(self, name) == default}
        return self.model_dump(exclude=(at_default - self.ALWAYS_RECORDED) | set(exclude))


class Named(BaseModel):
    """A pooling, an objective or a rescorer by name. The other keys are its options and checked where it is built."""

    model_config = ConfigDict(extra="allow", frozen=True)
    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The options of that part."""
        return dict(self.model_extra or {})


def _without_repeats(names: list[Item]) -> list[Item]:
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        raise ValueError(f"{twice[0]!r} is named twice")
    return names


Axis = Annotated[list[Item], Field(min_length=1), AfterValidator(_without_repeats)]
"""One or more values, each named once."""


class Run(Section):
    """What `dvc repro` runs: every recipe on every feature with every text encoder and seed, and their ensembles.

    rescorers: Each makes one more system of every head and ensemble, except of ablations.
    ablations: Recipes that are trained on the first feature with the first text encoder only.
    """

    dataset: Name
    features: Axis[Feature]
    ensembles: Annotated[list[str], AfterValidator(_without_repeats)]
    texts: Axis[Text]
    recipes: Axis[Name]
    seeds: Axis[Annotated[int, Field(ge=0, lt=2**32)]]
    ablations: Annotated[list[Name], AfterValidator(_without_repeats)]
    rescorers: list[Named] = []

    @field_validator("rescorers")
    @classmethod
    def _have_names_of_their_own(cls, steps: list[Named]) -> list[Named]:
        names = [step.name for step in steps]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} twice: both would make the same systems")
        return steps

    @field_validator("ensembles")
    @classmethod
    def _are_of_features(cls, names: list[str]) -> list[str]:
        for name in names:
            if not of_ensemble(name):
                known = ", ".join(f"{feature.letter} ({name})" for name, feature in FEATURES.items())
                raise ValueError(f"{name!r} is no ensemble; expected letters of {known}, in this order")
        return names

    @field_validator("ablations")
    @classmethod
    def _are_no_recipes_of_the_run(cls, names: list[str], others: ValidationInfo) -> list[str]:
        for name in names:
            if name in others.data.get("recipes", ()):
                raise ValueError(f"{name!r} stands in run.recipes already; name it in one of the two")
        return names

    @property
    def left_out(self) -> dict[str, list[str]]:
        """The ensembles that cannot be made, each with its features that the run leaves out."""
        lacking = {name: [each for each in of_ensemble(name) if each not in self.features] for name in self.ensembles}
        return {name: features for name, features in lacking.items() if features}


class Sample(Section):
    """The size and seed of the built-in corpus."""

    images: Annotated[int, Field(ge=12)]
    size: Annotated[int, Field(ge=32)]
    seed: Annotated[int, Field(ge=0)]


class EngineSettings(BaseModel):
    """The engine that makes a feature. The other keys are the engine's own and checked by it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    engine: str

    @property
    def options(self) -> dict[str, Any]:
        """The engine's own settings."""
        return dict(self.model_extra or {})


class Compute(Section):
    """How the CPU multiplies float32 matrices, see `pipeline.compute.products`."""

    products: Literal["auto", "default"] = "auto"


class Extract(Section):
    """How features are extracted and stored."""

    device: str
    backend: Literal["auto", "torch", "openvino"]
    precision: Literal["fp32", "bf16", "fp16"]
    batch_size: Count
    workers: Count
    on_error: Literal["fail", "skip"]
    shard_images: Count
    compressor: Literal["none", "zstd"]
    dtype: Literal["float16", "float32"]


class Recipe(Section):
    """A training recipe: poolings, objective, optimizer, augmentation and languages.

    languages: Those of the captions that are trained on and by which the best epoch is selected; [] for all.
    sampling: Whether an epoch takes every caption once, or equally many of each language.
    """

    image_pooling: Named
    text_pooling: Named
    objective: Named
    optimizer: Literal["adam", "adamw"]
    weight_decay: Annotated[float, Field(ge=0)]
    learning_rate: Annotated[float, Field(gt=0)]
    warmup_epoch: Annotated[int, Field(ge=0)] | None
    text_multiplier: Annotated[float, Field(gt=0)]
    finetune: bool
    frozen_epochs: Annotated[int, Field(ge=0)]
    backbone_multipliers: dict[str, Annotated[float, Field(gt=0)]]
    gradient_clip: Annotated[float, Field(gt=0)]
    drop_items: Share
    drop_tokens: Share
    same_image_negatives: bool
    languages: list[Annotated[str, StringConstraints(pattern=LANGUAGE_TAG)]] = []
    sampling: Literal["uniform", "balanced"] = "uniform"

    @model_serializer(mode="wrap")
    def _as_recorded(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what came later, where it is as it was before: so heads of then are still this recipe's."""
        fields = type(self).model_fields
        return {name: value for name, value in write(self).items()
                if name not in LATER or value != fields[name].default}

    @field_validator("languages")
    @classmethod
    def _have_one_order(cls, names: list[str]) -> list[str]:
        if len(set(names)) < len(names):
            raise ValueError("a language is named twice")
        return sorted(names)  # the order says nothing: a head is the same head

    @field_validator("backbone_multipliers")
    @classmethod
    def _has_other(cls, multipliers: dict[str, float]) -> dict[str, float]:
        if "other" not in multipliers:
            raise ValueError("expected a multiplier for `other` networks")
        return multipliers


class Training(Section):
    """The size of a head and the length of its training."""

    dimension: Count
    word_dimension: Count
    batch_size: Annotated[int, Field(ge=2)]
    epochs: Count
    decay_epoch: Count
    minimum_count: Count
    vocabulary: str | None
    bert: str
    precision: Literal["fp32", "bf16", "fp16"]
    device: str
    pieces: Count
    processes: Count


class Score(Section):
    """The split that is scored."""

    split: Literal["val", "test"]
    batch_size: Count


class Evaluate(Section):
    """Which metrics are measured, how confidence intervals are drawn, and how much memory ranking may use."""

    metrics: list[str] = []
    cxc: str | None = None
    resamples: Count
    seed: Annotated[int, Field(ge=0)]
    block_megabytes: Annotated[float, Field(gt=0)]

    @field_validator("metrics")
    @classmethod
    def _known(cls, names: list[str]) -> list[str]:
        from pipeline.metrics import parse_all

        try:
            return [str(metric) for metric in parse_all(names)]
        except InputError as error:
            raise ValueError(str(error)) from None


class Synthetic(Section):
    """How GPO's generators are trained on known pooling patterns, and the set sizes on which they are tested."""

    dimension: Count
    sets: Count
    seen: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]
    tested: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]
    steps: Count
    learning_rate: Annotated[float, Field(gt=0)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]

    @model_validator(mode="after")
    def _ordered(self) -> Synthetic:
        (least, most), (first, last) = self.tested, self.seen
        if not least < first <= last < most:
            raise ValueError(f"sizes seen must lie within those tested, with some on either side, got {self.seen} and "
                             f"{self.tested}")
        return self


class Throughput(Section):
    """What is timed, for the papers' #OIPs and the time of a query."""

    device: str
    batch_size: Count
    items: Count
    tokens: Count
    pools: Annotated[list[Count], Field(min_length=2)]
    pairs: Count
    repeats: Count
    seconds: Annotated[float, Field(ge=0)]


class Typesetting(Section):
    """The paper that tables and figures go into. In cm: a column, both with the space between, the height."""

    column_width: Annotated[float, Field(ge=4, le=30)] = 7.7
    text_width: Annotated[float, Field(ge=4, le=60)] = 16.0
    text_height: Annotated[float, Field(ge=4, le=80)] = 22.5
    text_font: Literal["times", "computer modern"] = "times"
    table_style: Literal["booktabs", "plain"] = "booktabs"
    table_rows: Literal["all", "published", "measured"] = "all"
    table_metrics: list[str] = []
    figure_font: Literal["sans", "serif"] = "sans"

    @model_validator(mode="after")
    def _check(self) -> Typesetting:
        if self.column_width > self.text_width:
            raise ValueError(f"column_width {self.column_width} is wider than text_width {self.text_width}")
        return self


class Report(Section):
    """The size of the explorer in results/report.html."""

    queries: Count
    top: Count
    thumbnail: Annotated[int, Field(ge=16, le=512)]


class Settings(Section):
    """All settings."""

    run: Run
    sample: Sample
    compute: Compute = Compute()
    presets: dict[Name, Name]
    features: dict[Name, dict[Feature, EngineSettings]]
    extract: Extract
    recipes: dict[Name, Recipe]
    training: dict[Name, Training]
    score: Score
    evaluate: Evaluate
    synthetic: Synthetic
    throughput: Throughput
    tables: list[str]
    figures: list[str]
    typesetting: Typesetting = Typesetting()
    report: Report

    def recipe(self, name: str) -> Recipe:
        """Look up a recipe.

        Args:
            name: Its name.

        Returns:
            The recipe.

        Raises:
            InputError: For an unknown name.
        """
        return _named(self.recipes, name, "recipe")

    def preset_of(self, dataset: str) -> str:
        """Look up the preset of a data set.

        Args:
            dataset: Its name.

        Returns:
            The preset's name.
        """
        return self.presets.get(dataset, DEFAULT_PRESET)

    def training_of(self, dataset: str) -> Training:
        """Look up how heads of a data set are trained: its own section, or that of its preset.

        Args:
            dataset: Its name.

        Returns:
            The section.

        Raises:
            InputError: If there is neither.
        """
        name = dataset if dataset in self.training else self.preset_of(dataset)
        return _named(self.training, name, "section of training")

    def engine_of(self, dataset: str, feature: str) -> EngineSettings:
        """Look up the engine that makes a feature of a data set, by its preset.

        Args:
            dataset: Its name.
            feature: The feature's name.

        Returns:
            The engine's settings.

        Raises:
            InputError: If the preset has no engine for the feature.
        """
        preset = self.preset_of(dataset)
        return _named(_named(self.features, preset, "preset"), feature, f"feature of the preset {preset}:")


def _named(section: dict[Any, Any], name: str, kind: str) -> Any:
    if name not in section:
        raise unknown(kind, name, section)
    return section[name]


def first_fault(error: ValidationError) -> str:
    """Summarise the first of pydantic's findings.

    Args:
        error: pydantic's error.

    Returns:
        One line: where, what is wrong, and the value received.
    """
    fault = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in fault["loc"]) or "top level"
    if fault["type"] == "extra_forbidden":
        return f"{place}: unknown key"
    if fault["type"] == "missing":
        return f"{place}: missing"
    return f"{place}: {fault['msg']}, got {fault['input']!r}"
