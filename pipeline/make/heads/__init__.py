"""Heads: from items and tokens to embeddings, or to scores of pairs. A new one is a file here and a
line in `HEADS`.

base.py        the interface of heads, and the base class of late interaction
two_tower.py   images and captions encoded separately: projections, poolings, unit vectors
cross.py       word pieces and items in one BERT encoder
late.py        words and items compared one by one
projection.py  items to the joint space
pooling/       from a set of vectors to one
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.settings import Recipe, Training
    from pipeline.make.heads.base import Backbone, CaptionReading, HeadNetwork
    from pipeline.make.text import Text

lazy.imports(__name__)

HEADS: lazy.LookupTable[type[HeadNetwork]] = lazy.LookupTable(
    {
        "two_tower": "pipeline.make.heads.two_tower:TwoTower",
        "cross": "pipeline.make.heads.cross:CrossEncoder",
        "late": "pipeline.make.heads.late:LateInteraction",
    },
    "heads",
    "architecture",
    base="pipeline.make.heads.base:HeadNetwork",
)


def build(
    recipe: Recipe,
    feature: str,
    width: int,
    text: Text,
    training: Training,
    backbone: Backbone | None = None,
) -> HeadNetwork:
    """Build a recipe's head, with new or pretrained weights.

    Args:
        recipe: The recipe; its `architecture` is a key of `HEADS` with options.
        feature: A name in `pipeline.foundation.settings.features.FEATURES`.
        width: D of the items.
        text: Its encoder reads the captions.
        training: The sizes.
        backbone: The network that makes the features, if it is trained with the head.

    Raises:
        InputError: For an unknown architecture or option, or one that cannot be built from these
            parts.
    """
    return HEADS.build(
        recipe.architecture.name,
        feature,
        width,
        text,
        recipe,
        training,
        backbone,
        **recipe.architecture.options,
    )


def reads_boxes(recipe: Recipe) -> bool:
    """Whether a recipe's head reads the items' boxes, see `BoxedStore`."""
    architecture = recipe.architecture
    options = HEADS.options(architecture.name, architecture.options)
    return getattr(options, "boxes", False)


def compares_parts(recipe: Recipe) -> bool:
    """Whether a recipe's head is late interaction (`Interaction`), which scores pairs and has no
    embeddings.
    """
    from pipeline.make.heads.base import Interaction

    name = recipe.architecture.name
    return name in HEADS and issubclass(HEADS[name], Interaction)


def scorer(recipe: Recipe) -> str | None:
    """The key of `reranking.SCORERS` of what scores pairs by a recipe's head; None for a head that
    only embeds.
    """
    if "ce" in recipe.tasks or compares_parts(recipe):
        return recipe.architecture.name
    return None


def embeds(recipe: Recipe) -> bool:
    """Whether a recipe's head gives images and captions a vector each: neither late interaction nor
    pairs alone.
    """
    return "emb" in recipe.tasks and not compares_parts(recipe)


def caption_reading(recipe: Recipe) -> CaptionReading | None:
    """The reading of a further input of captions by a recipe's head; None if it reads none."""
    if not compares_parts(recipe):
        return None
    head: Any = HEADS[recipe.architecture.name]
    return head.caption_reading  # type: ignore[no-any-return]
