"""The schema of the settings: the sections of single steps, then all sections with look-ups across
them.
"""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from pipeline.foundation.parts.errors import InputError, look_up
from pipeline.foundation.parts.section import Section
from pipeline.foundation.settings.features import FEATURES
from pipeline.foundation.settings.judging import (
    Evaluate,
    JudgeSettings,
    Manifest,
    Score,
    Typesetting,
)
from pipeline.foundation.settings.parts import EngineSettings
from pipeline.foundation.settings.recipe import FineTuning, Recipe, Training
from pipeline.foundation.settings.run import Run
from pipeline.foundation.settings.section import Count, Device, Name

DEFAULT_PRESET = "light"


class Sample(Section):
    """The size and seed of the built-in corpus."""

    images: Annotated[int, Field(ge=12)]
    size: Annotated[int, Field(ge=32)]
    seed: Annotated[int, Field(ge=0)]


class SampleVideo(Section):
    """The size and seed of the built-in corpus of clips."""

    clips: Annotated[int, Field(ge=12)] = 600
    size: Annotated[int, Field(ge=32, multiple_of=2)] = 160
    seed: Annotated[int, Field(ge=0)] = 0


class Extract(Section):
    """How features are extracted and stored. The number of a worker's threads changes no
    feature.
    """

    device: Device
    backend: Literal["auto", "torch", "openvino"]
    precision: Literal["fp32", "bf16", "fp16"]
    batch_size: Count
    workers: Count
    on_error: Literal["fail", "skip"]
    shard_images: Count
    compressor: Literal["none", "zstd"]
    dtype: Literal["float16", "float32"]
    decoders: Literal["auto"] | Count = "auto"
    writers: Literal["auto"] | Count = "auto"
    ahead: Count = 2


class Synthetic(Section):
    """How GPO's generators learn known pooling patterns. Sizes of sets are those seen in training,
    and those tested.
    """

    dimension: Count
    sets: Count
    seen: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]
    tested: Annotated[list[Annotated[int, Field(ge=2)]], Field(min_length=2, max_length=2)]
    steps: Count
    learning_rate: Annotated[float, Field(gt=0)]
    seed: Annotated[int, Field(ge=0, lt=2**32)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        smallest, largest = self.tested
        first_seen, last_seen = self.seen
        if not smallest < first_seen <= last_seen < largest:
            raise ValueError(
                f"sizes seen must be within those tested, with some on either side, got {self.seen} and "
                f"{self.tested}"
            )
        return self


class Throughput(Section):
    """What is timed, for the papers' #OIPs and the time of a query."""

    device: Device
    batch_size: Count
    items: Count
    tokens: Count
    pools: Annotated[list[Count], Field(min_length=2)]
    pairs: Count
    searched: Annotated[list[Count], Field(min_length=1)] = Field(
        default_factory=lambda: [50_000, 1_000_000]
    )
    reranked: Count = 20
    repeats: Count
    seconds: Annotated[float, Field(ge=0)]
    ALWAYS_RECORDED = frozenset({"searched", "reranked"})


class Report(Section):
    """The size of the explorer of the report."""

    queries: Count
    top: Count
    thumbnail: Annotated[int, Field(ge=16, le=512)]


def _are_features(engines: dict[str, EngineSettings]) -> dict[str, EngineSettings]:
    """Check that all but the features of `FEATURES` are of captions."""
    for name, engine in engines.items():
        if name not in FEATURES and not engine.reads_captions:
            raise ValueError(
                f"{name} is not a feature of images, which are {', '.join(FEATURES)}; another name is for "
                "an engine that reads captions"
            )
    return engines


class Settings(Section):
    """All settings."""

    run: Run
    sample: Sample
    sample_video: SampleVideo = SampleVideo()
    manifest: Manifest = Manifest()
    presets: dict[Name, Name] = Field(
        description="The preset of features and training of each data set."
    )
    features: dict[Name, Annotated[dict[Name, EngineSettings], AfterValidator(_are_features)]] = (
        Field(description="By preset and feature: the engine and its settings.")
    )
    extract: Extract
    recipes: dict[Name, Recipe] = Field(
        description="By name: poolings, objective, optimizer and augmentation."
    )
    training: dict[Name, Training] = Field(
        description="By data set or preset: size of heads, length of training."
    )
    finetuning: dict[Name, FineTuning] = Field(
        description="By name: what of a dual encoder is trained on, and how."
    )
    score: Score
    evaluate: Evaluate
    synthetic: Synthetic
    throughput: Throughput
    # None: those with a row of the run's systems
    tables: list[str] | None = Field(description="The tables that `pipeline tables` writes.")
    figures: list[str] = Field(description="The figures that `pipeline figures` draws.")
    typesetting: Typesetting = Typesetting()
    report: Report

    def recipe(self, name: str) -> Recipe:
        """The recipe of this name; InputError for an unknown name."""
        return look_up("recipe", name, self.recipes, "`pipeline settings recipes --names`")

    def tuning(self, name: str) -> FineTuning:
        """The section of finetuning of this name; InputError for an unknown name."""
        return look_up("section of finetuning", name, self.finetuning)

    def preset_of(self, dataset: str) -> str:
        """The name of the preset of a dataset."""
        return self.presets.get(dataset, DEFAULT_PRESET)

    def training_of(self, dataset: str) -> Training:
        """The settings by which heads of a dataset are trained: its own section, or that of its
        preset.

        Raises:
            InputError: If there is neither.
        """
        name = dataset if dataset in self.training else self.preset_of(dataset)
        return look_up("section of training", name, self.training)

    def captions_of(self, dataset: str) -> str:
        """The feature of a dataset's captions that the text encoder `features` reads; InputError if
        none is named.
        """
        name = self.training_of(dataset).captions
        if name is None:
            raise InputError(
                "text encoder features: name the feature of captions as training.NAME.captions"
            )
        return name

    def engine_of(self, dataset: str, feature: str) -> EngineSettings:
        """The settings of the engine that makes a feature of a dataset, by its preset.

        Raises:
            InputError: If the preset has no engine for the feature.
        """
        preset = self.preset_of(dataset)
        return look_up(
            f"feature of the preset {preset}:", feature, look_up("preset", preset, self.features)
        )


# What measures files of scores takes either.
AnySettings: TypeAlias = Settings | JudgeSettings
