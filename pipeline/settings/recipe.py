"""How heads are trained: recipes, and the size and length of a training."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from pipeline.settings.section import Count, Named, Section, Share, without_repeats

LANGUAGE_TAG = r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$"


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
    languages: list[Annotated[str, StringConstraints(pattern=LANGUAGE_TAG)]] = Field(default_factory=list)
    sampling: Literal["uniform", "balanced"] = "uniform"

    @field_validator("languages")
    @classmethod
    def _have_one_order(cls, names: list[str]) -> list[str]:
        return sorted(without_repeats(names))  # the order says nothing: a head is the same head

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
