"""How heads and dual encoders are trained: recipes, also varied on the command line, and the length
of a training.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.parts.section import Section
from pipeline.foundation.settings.parts import (
    ArchitectureSettings,
    IndexName,
    ObjectiveSettings,
    PoolingSettings,
    TokenizerName,
    TuningSettings,
    check_options,
)
from pipeline.foundation.settings.section import Count, Device, Name, Share, without_repeats


def language_tag(tag: str) -> str:
    """Write a tag of BCP 47 or ISO 639 (DE, pt-br, deu) in its shortest form (de, pt-BR);
    ValueError if unknown.
    """
    if tag == "en":  # which most settings name
        return tag
    import langcodes  # takes 50 ms

    try:
        standard = langcodes.standardize_tag(tag)
        if not langcodes.tag_is_valid(standard):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{tag[:40]!a} is no language; expected a tag of BCP 47 such as en, de or pt-BR"
        ) from None
    return standard


# Objectives that read similarities of any scale, and so take a dual encoder's own.
SCALED = ("infonce", "sigmoid")
# Languages, each once, sorted, because their order changes no head.
Languages = Annotated[
    list[Annotated[str, AfterValidator(language_tag)]],
    AfterValidator(without_repeats),
    AfterValidator(sorted),
]


class Pairs(Section):
    """How a head that scores pairs learns from right and wrong pairs: the task `ce`."""

    # A key of `pipeline.make.heads.cross.PAIR_OBJECTIVES`.
    objective: Literal["cross_entropy", "listwise"] = "cross_entropy"
    # Wrong pairs beside each right one: half the time other captions, half the time other images.
    negatives: Count = 1
    # The share of negatives drawn from the query's nearest candidates; the others are drawn from
    # all.
    hard: Annotated[float, Field(ge=0, le=1)] = 0.0
    nearest: Count = 50  # How many nearest candidates they are drawn from
    # The head whose embeddings say what is nearest, a system's name; null for the trained head's
    # own, computed before each epoch (ANCE).
    retriever: Name | None = None
    # What finds the nearest candidates, a key of `INDEXES` of `pipeline.foundation.evaluation`.
    index: IndexName = "exact"
    # How many images of val, with one caption each, are scored in all pairs to select the best
    # epoch.
    val_images: Annotated[int, Field(ge=2)] = 256


class Ance(Section):
    """How embeddings learn from near negatives: the task `ance`, T^ANCE of Geigle et al."""

    batch: Count = 16  # Right pairs of a step, the first of the batch
    # Near wrong images of each caption, and near wrong captions of each image, drawn from the
    # `pairs.nearest` nearest. Their mean counts, not the hardest.
    negatives: Count = 7
    margin: Annotated[float, Field(ge=0)] = 0.1  # α of the triplet loss


class Noise(Section):
    """Noisy correspondences: training captions that are paired with other images than their own."""

    share: Share  # The share of training captions that exchange their images
    # The .npy file with each caption's image, see `pipeline.make.training.sampling.indexed`; null
    # for a random exchange.
    index: str | None = None
    # The seed of the random exchange, the same for recipes and training seeds that are compared.
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _draws_or_reads(self) -> Self:
        if self.index is not None and self.seed:
            raise ValueError(
                "an index says which captions are noisy, so no seed draws them; leave out one of the two"
            )
        return self


def _ance_goes_with_emb(tasks: list[str]) -> list[str]:
    if "ance" in tasks and "emb" not in tasks:
        raise ValueError(
            "the task ance trains embeddings, so it needs the task emb; add emb to tasks"
        )
    return tasks


def _has_other(multipliers: dict[str, float]) -> dict[str, float]:
    if "other" not in multipliers:
        raise ValueError("expected a multiplier for `other` networks")
    return multipliers


Tasks = Annotated[
    list[Literal["emb", "ce", "ance"]], Field(min_length=1), AfterValidator(_ance_goes_with_emb)
]


class Learning(Section):
    """How weights are learned from pairs: objective, optimizer and languages.

    languages: Languages of the captions that training and the selection of the best epoch use; []
        for all.
    sampling: Whether an epoch takes every caption once, or equally many of each language.
    decay: Whether the learning rate falls once, at `decay_epoch`, or linearly to 0.
    epsilon: Adam's ε, in the denominator.
    decayed: Which weights have weight decay: all, or only those of two or more dimensions (no bias,
        no normalisation).
    """

    objective: ObjectiveSettings
    optimizer: Literal["adam", "adamw"]
    weight_decay: Annotated[float, Field(ge=0)]
    learning_rate: Annotated[float, Field(gt=0)]
    warmup_epoch: Annotated[int, Field(ge=0)] | None
    gradient_clip: Annotated[float, Field(gt=0)]
    same_image_negatives: bool
    languages: Languages = Field(default_factory=list)
    sampling: Literal["uniform", "balanced"] = "uniform"
    decay: Literal["step", "linear"] = "step"
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    decayed: Literal["all", "matrices"] = "all"

    def multiplier(self, part: str, network: str) -> float:
        """The factor of the learning rate of a pretrained part of a head, "text" or "backbone", by
        its network.
        """
        return 1.0


class Recipe(Learning):
    """A training recipe of heads: poolings, augmentation, and how they learn.

    text_multiplier: The learning rate of a pretrained text encoder, in multiples of the others'; 0
        freezes it.
    architecture: The head, a key of `pipeline.make.heads.HEADS`, and its options.
    tasks: What is trained, in rounds of one step each: `emb`, embeddings by `objective`; `ce`,
        scores of pairs by `pairs`; `ance`, embeddings by near negatives. A task that is named twice
        has two steps, with other wrong pairs for the same right ones.
    start: The recipe whose head, of the same feature, text encoder and seed, gives the initial
        weights.
    noise: Noise in the training pairs; null for none.
    dropout: The dropout rate of word vectors and of projected items in training.
    """

    image_pooling: PoolingSettings
    text_pooling: PoolingSettings
    text_multiplier: Annotated[float, Field(ge=0)]
    finetune: bool
    frozen_epochs: Annotated[int, Field(ge=0)]
    backbone_multipliers: Annotated[
        dict[str, Annotated[float, Field(gt=0)]], AfterValidator(_has_other)
    ]
    drop_items: Share
    drop_tokens: Share
    architecture: ArchitectureSettings = ArchitectureSettings(name="two_tower")
    tasks: Tasks = Field(default=["emb"])
    pairs: Pairs = Pairs()
    ance: Ance = Ance()
    start: Name | None = None
    noise: Noise | None = None
    dropout: Share = 0.0

    def multiplier(self, part: str, network: str) -> float:
        """The factor of a pretrained part's learning rate, see `Learning.multiplier`."""
        known = self.backbone_multipliers
        of_network = next((value for key, value in known.items() if key in network), known["other"])
        return self.text_multiplier if part == "text" else of_network


class Length(Section):
    """The length of a training, and where it runs.

    steps: The number of steps of all epochs together; null for epochs that take every caption once.
    images: How many of the training images are used; null for all. Larger subsets contain smaller
        ones.
    subset_seed: The seed by which these images are chosen.
    """

    batch_size: Annotated[int, Field(ge=2)]
    epochs: Count
    decay_epoch: Count
    precision: Literal["fp32", "bf16", "fp16"]
    device: Device
    pieces: Count
    processes: Count
    steps: Count | None = None
    images: Count | None = None
    subset_seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.steps is not None and self.steps % self.epochs:
            raise ValueError(
                f"steps must be a multiple of the {self.epochs} epochs, got {self.steps}"
            )
        return self


class FineTuning(Learning, Length):
    """How a dual encoder is trained on.

    weights: Which weights are trained, a key of `pipeline.make.dual_encoders.tuning.TUNINGS`,
        and its options.
    logit_scale: Whether similarities are multiplied by the model's own scale (and its bias is
        added) before the objective sees them, and whether these two are trained.
    batch_norm: Whether a network with BatchNorm in what is trained is refused, or its statistics
        stay as they are.
    """

    weights: TuningSettings
    logit_scale: Literal["unused", "fixed", "trained"] = "unused"
    batch_norm: Literal["refuse", "fixed"] = "refuse"

    @model_validator(mode="after")
    def _has_one_scale(self) -> Self:
        if self.logit_scale == "unused":
            return self
        if self.objective.name not in SCALED or self.objective.options.get("temperature") != 1.0:
            raise ValueError(
                f"logit_scale {self.logit_scale} is the model's temperature: it needs an objective of "
                f"{' or '.join(SCALED)} with temperature: 1.0; for any other set logit_scale: unused"
            )
        return self


class Training(Length):
    """The size of a head and the length of its training.

    word_vectors: A file of GloVe's format with initial word vectors, for the BiGRU; null for random
        ones.
    tokenizer: What splits captions into the BiGRU's words, a key of `TOKENIZERS` of
        `pipeline/make/text`; null for words, or "unicode" where training captions have scripts
        without blanks or combining marks.
    captions: The feature of captions that the text encoder `features` reads, as its store is
        called.
    texts: The options of text encoders of other packages, by their names.
    """

    dimension: Count
    word_dimension: Count
    minimum_count: Count
    vocabulary: str | None
    bert: str
    word_vectors: str | None = None
    tokenizer: TokenizerName | None = None
    captions: str | None = None
    texts: dict[str, dict[str, Any]] = {}  # noqa: RUF012  # pydantic copies it

    @model_validator(mode="after")
    def _gives_texts_their_options(self) -> Self:
        for name, options in self.texts.items():
            check_options("texts", name, options)
        return self


@dataclass(frozen=True)
class Variation:
    """Replacements for parts of a recipe, by name and with default options; None keeps the recipe's
    own part.
    """

    pooling: str | None = (
        None  # the pooling of both sides, or of the side that is not given by itself
    )
    image_pooling: str | None = None  # the pooling of images
    text_pooling: str | None = None  # the pooling of captions
    objective: str | None = None  # the objective
    finetune: bool = False  # whether the features' network is trained too
    languages: tuple[str, ...] = ()  # the languages that are trained on
    noise: float = (
        0.0  # the share of training captions that exchange their images; 0 keeps the recipe's own
    )

    def __post_init__(self) -> None:
        if self.pooling and self.image_pooling and self.text_pooling:
            raise InputError(
                f"leave out --pooling {self.pooling}: --image-pooling and --text-pooling set both sides"
            )

    @property
    def _tags(self) -> list[str]:
        with refusing(ValueError, lambda error: f"--language: {error}"):
            return sorted({language_tag(name) for name in self.languages})

    @property
    def replaced(self) -> dict[str, Any]:
        """The recipe's keys that change, with their new values."""
        parts = {
            "image_pooling": (PoolingSettings, self.image_pooling or self.pooling),
            "text_pooling": (PoolingSettings, self.text_pooling or self.pooling),
            "objective": (ObjectiveSettings, self.objective),
        }
        replaced: dict[str, Any] = {}
        for key, (part, name) in parts.items():
            if name:
                replaced[key] = part.of(name=name)
        if self.finetune:
            replaced["finetune"] = True
        if self.languages:
            replaced["languages"] = self._tags
        if self.noise:
            replaced["noise"] = Noise(share=self.noise)
        return replaced

    def of(self, recipe: Recipe) -> Recipe:
        """The recipe with the replacements."""
        return recipe.model_copy(update=self.replaced)

    def name(self, base: str) -> str:
        """The name of the varied recipe, with the base: `vse2ad-gpo` if only the pooling of both
        sides changes.

        Else for example `vse2ad_image_gpo_triplet`. Languages come last, and noise after them:
        `vse2ad-noise20`.
        """
        if self.pooling and self == Variation(pooling=self.pooling):
            return f"{base}-{self.pooling}"
        finetuned = "finetuned" if self.finetune else None
        parts = (
            base,
            self.pooling,
            self.image_pooling and f"image_{self.image_pooling}",
            self.text_pooling and f"text_{self.text_pooling}",
            self.objective,
            finetuned,
        )
        words = ["_".join(part for part in parts if part), *self._tags]
        if self.noise:
            words.append(f"noise{100 * self.noise:g}".replace(".", "_"))
        return "-".join(words)


def named(
    recipe: Recipe,
    chosen: str | None,
    otherwise: str,
    shipped: Mapping[str, Recipe],
    taken: Iterable[str],
) -> str:
    """The name of a recipe: that of the shipped recipe with equal settings, else the chosen one,
    else `otherwise`.

    chosen: the user's choice; None if there is none. shipped: the settings' recipes. taken: names
        that are reserved for the shipped recipes.

    Raises:
        InputError: If a shipped recipe would get another name, or another recipe a reserved one:
            its head would be mistaken for that recipe's.
    """
    name = chosen or otherwise
    same = [other for other, settings in shipped.items() if settings == recipe]
    if same and chosen and chosen not in same:
        raise InputError(
            f"this is the settings' recipe {same[0]!r} and keeps that name; leave out --name "
            f"{chosen}; --out FOLDER keeps another head of it"
        )
    if same:
        return name if name in same else same[0]
    if name in taken:
        raise InputError(
            f"this recipe differs from the settings' {name!r}; give its head a name with --name"
        )
    return name
