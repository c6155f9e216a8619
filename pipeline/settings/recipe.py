"""How heads are trained: recipes, and the size and length of a training."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from pipeline.settings.section import Count, Device, Name, Named, Section, Share, without_repeats


def language_tag(tag: str) -> str:
    """Write a language's tag in its standard form, so that a language has one name.

    Args:
        tag: Of BCP 47, or a code of ISO 639: DE, pt-br, deu.

    Returns:
        The shortest tag, in the usual letters: de, pt-BR, zh-Hant.

    Raises:
        ValueError: If it is no tag of the languages, scripts and regions that are registered.
    """
    import langcodes  # takes 30 ms, and few settings name a language

    try:
        if not langcodes.tag_is_valid(standard := langcodes.standardize_tag(tag)):
            raise ValueError
    except ValueError:
        raise ValueError(f"{tag[:40]!a} is no language; expected a tag of BCP 47 such as en, de or pt-BR") from None
    return standard


Languages = Annotated[list[Annotated[str, AfterValidator(language_tag)]], AfterValidator(without_repeats),
                      AfterValidator(sorted)]
"""Languages, each once, sorted: their order changes no head."""


class Pairs(Section):
    """How a head that scores pairs learns from right and wrong pairs: the task `ce`.

    Attributes:
        objective: A key of `pipeline.heads.cross.PAIR_OBJECTIVES`.
        negatives: Wrong pairs beside each right one: half the time other captions, half the time other images.
        hard: The share of them that is drawn from the query's nearest; the others are drawn from all.
        nearest: How many nearest these are.
        retriever: By which head they are nearest: a system's name; null for the head's own embeddings as they are
            before each epoch (ANCE).
        val_images: How many images of val, with one caption each, are scored in all pairs to select the best epoch.
    """

    objective: Literal["cross_entropy", "listwise"] = "cross_entropy"
    negatives: Count = 1
    hard: Annotated[float, Field(ge=0, le=1)] = 0.0
    nearest: Count = 50
    retriever: Name | None = None
    val_images: Annotated[int, Field(ge=2)] = 256


class Ance(Section):
    """How embeddings learn from near negatives: the task `ance`, T^ANCE of Geigle et al.

    Attributes:
        batch: Right pairs of a step, the first of the batch.
        negatives: Near wrong images of each caption, and near wrong captions of each image, drawn from the
            `pairs.nearest` nearest. Their mean counts, not the hardest.
        margin: α of the triplet loss.
    """

    batch: Count = 16
    negatives: Count = 7
    margin: Annotated[float, Field(ge=0)] = 0.1


class Noise(Section):
    """Noisy correspondences: training captions that are paired with other images than their own.

    Attributes:
        share: Of the training captions, which exchange their images at random.
        index: The .npy file that says which image each has, see `pipeline.training.sampling.indexed`; null for a random
            exchange.
        seed: Of the random exchange. Recipes and training seeds that are compared share it.
    """

    share: Share
    index: str | None = None
    seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _draws_or_reads(self) -> Noise:
        if self.index is not None and self.seed:
            raise ValueError("a seed does nothing with an index, which is read and not drawn; leave out one of the two")
        return self


class Recipe(Section):
    """A training recipe: poolings, objective, optimizer, augmentation and languages.

    languages: Those of the captions that are trained on and by which the best epoch is selected; [] for all.
    sampling: Whether an epoch takes every caption once, or equally many of each language.
    architecture: The head, a key of `pipeline.heads.HEADS`, and its options.
    tasks: What a round trains, a step of each in turn: `emb`, embeddings by `objective`; `ce`, scores of pairs by
        `pairs`; `ance`, embeddings by near negatives. A task may be named twice: another step of it, with other wrong
        pairs of the same right ones.
    start: The recipe whose head, of the same feature, text encoder and seed, gives the first weights.
    decay: Whether the learning rate falls once, at `decay_epoch`, or linearly to 0.
    epsilon: Of Adam's denominator.
    noise: Of the training pairs; null for none.
    dropout: Share of the components of word vectors and of projected items that is left out in training.
    decayed: Which weights the weight decay moves: all, or those of two dimensions alone (no bias, no normalisation).
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
    languages: Languages = Field(default_factory=list)
    sampling: Literal["uniform", "balanced"] = "uniform"
    architecture: Named = Named(name="two_tower")
    tasks: Annotated[list[Literal["emb", "ce", "ance"]], Field(min_length=1)] = Field(default=["emb"])
    pairs: Pairs = Pairs()
    ance: Ance = Ance()
    start: Name | None = None
    decay: Literal["step", "linear"] = "step"
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    decayed: Literal["all", "matrices"] = "all"
    noise: Noise | None = None
    dropout: Share = 0.0

    @field_validator("tasks")
    @classmethod
    def _ance_goes_with_emb(cls, tasks: list[str]) -> list[str]:
        if "ance" in tasks and "emb" not in tasks:
            raise ValueError("ance trains embeddings from near negatives, and goes with emb")
        return tasks

    @field_validator("backbone_multipliers")
    @classmethod
    def _has_other(cls, multipliers: dict[str, float]) -> dict[str, float]:
        if "other" not in multipliers:
            raise ValueError("expected a multiplier for `other` networks")
        return multipliers


class Training(Section):
    """The size of a head and the length of its training.

    steps: All steps of the training, divided among the epochs; null for epochs that take every caption once.
    images: How many of the training images are used; null for all. Smaller subsets lie within larger ones.
    subset_seed: Which images these are.
    word_vectors: A file as GloVe's with the words' first vectors, for the BiGRU; null for drawn ones.
    """

    dimension: Count
    word_dimension: Count
    batch_size: Annotated[int, Field(ge=2)]
    epochs: Count
    decay_epoch: Count
    minimum_count: Count
    vocabulary: str | None
    bert: str
    precision: Literal["fp32", "bf16", "fp16"]
    device: Device
    pieces: Count
    processes: Count
    steps: Count | None = None
    images: Count | None = None
    subset_seed: Annotated[int, Field(ge=0)] = 0
    word_vectors: str | None = None

    @model_validator(mode="after")
    def _divides(self) -> Training:
        if self.steps is not None and self.steps % self.epochs:
            raise ValueError(f"steps must be a multiple of the {self.epochs} epochs, got {self.steps}")
        return self
