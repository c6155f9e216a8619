"""What a head is asked to be, composed without loading its network, its words or torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, PlainSerializer

from pipeline.foundation import artefacts
from pipeline.foundation.artefacts import Request, Versions
from pipeline.foundation.evaluation.retrieval.top import INDEXES
from pipeline.foundation.files import weights
from pipeline.foundation.files.remembered import sha256_of_unchanged
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.lazy import LookupTable
from pipeline.foundation.settings import Recipe, Training
from pipeline.make.features.extractors import ENGINES
from pipeline.make.heads import HEADS, embeds, objectives, pooling, scorer
from pipeline.make.text import TEXTS, TOKENIZERS

# Settings that are no part of a request: where a head is trained, which changes only rounding; and
# the sources of its words, which `words` has by their digests.
LEFT_OUT: dict[str, Any] = {
    "device": "cpu",
    "pieces": 1,
    "processes": 1,
    "bert": "",
    "vocabulary": None,
    "minimum_count": 1,
    "word_vectors": None,
    "tokenizer": None,
}


def _completed(value: Any) -> Any:
    if isinstance(value, dict):
        return LEFT_OUT | value
    return value


class HeadRequest(Request):
    """What all heads are asked to be.

    recipe: an index of noisy pairs is named by its SHA-256. training: the sizes, without
        `LEFT_OUT`. words: what a vocabulary is made from, files by their SHA-256; {} for a
        pretrained text encoder, which is an artefact that the head is made from. engine: the one
        whose network is trained with the head, a key of `ENGINES`; None for stored features.
    """

    kind: ClassVar[str] = "head"
    name: str
    feature: str
    text: str
    seed: int
    recipe: Annotated[Recipe, PlainSerializer(lambda recipe: recipe.recorded())]
    training: Annotated[
        Training,
        BeforeValidator(_completed),
        PlainSerializer(lambda training: training.recorded(exclude=LEFT_OUT)),
    ]
    words: dict[str, str | int]
    engine: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        feature: str,
        text: str,
        seed: int,
        recipe: Recipe,
        training: Training,
        **more: Any,
    ) -> Self:
        """Compose a request from the fields; a file that the settings name, and that is missing, is
        refused.
        """
        noise = recipe.noise
        if noise and noise.index is not None:
            index = _digest(noise.index, "the recipe's noise names it as its index")
            by_digest = noise.model_copy(update={"index": index})
            recipe = recipe.model_copy(update={"noise": by_digest})
        words = {}
        if text == "bigru":
            words = _words(training)
        options = {}
        if text in training.texts:
            options[text], _ = weights.by_digest(training.texts[text])
        captions = None
        if text == "features":
            captions = training.captions
        training = training.model_copy(update={"texts": options, "captions": captions})
        return cls(
            name=name,
            feature=feature,
            text=text,
            seed=seed,
            recipe=recipe,
            training=training,
            words=words,
            **more,
        )

    def recorded(self) -> dict[str, Any]:
        """The request as JSON values, without an engine where there is none."""
        recorded = self.model_dump(mode="json")
        if self.engine is None:
            del recorded["engine"]
        return recorded

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the recipe and of its training, as JSON."""
        recorded = self.recorded()
        return {**recorded["recipe"], **recorded["training"]}

    @property
    def scorer(self) -> str | None:
        """The key of `reranking.SCORERS` of what scores pairs by the head; None for a head that
        only embeds.
        """
        return scorer(self.recipe)

    @property
    def embeds(self) -> bool:
        """Whether the head gives images and captions a vector each, and does not only score
        pairs.
        """
        return embeds(self.recipe)

    def versions(self) -> Versions:
        """Collect the versions of the loop, its tasks and parts, and of an engine that is trained
        with it.
        """
        tokenizer = str(self.words.get("tokenizer", ""))
        recipe = self.recipe
        loop = ["training", *(f"training/{task}" for task in recipe.tasks)]
        of_user: list[tuple[LookupTable[Any], str]] = []
        if tokenizer and not TOKENIZERS.is_built_in(tokenizer):
            of_user.append((TOKENIZERS, tokenizer))
        if not INDEXES.is_built_in(recipe.pairs.index):
            of_user.append((INDEXES, recipe.pairs.index))
        if self.engine is not None:
            loop.append("images")
            of_user.append((ENGINES, self.engine))
        return artefacts.versions(
            *loop,
            (TEXTS, self.text),
            (HEADS, recipe.architecture.name),
            *((objectives.OBJECTIVES, name) for name in recipe.objective.parts),
            (pooling.POOLINGS, recipe.image_pooling.name),
            (pooling.POOLINGS, recipe.text_pooling.name),
            *of_user,
        )


class TrainRequest(HeadRequest):
    """A head to train."""


class ConvertRequest(HeadRequest):
    """A head to make from published weights. checkpoint: their SHA-256."""

    checkpoint: str


def parsed(request: Mapping[str, Any]) -> TrainRequest | ConvertRequest:
    """Read a request from the JSON of a record; anything else is a ValueError."""
    if "checkpoint" in request:
        return ConvertRequest.model_validate(dict(request))
    return TrainRequest.model_validate(dict(request))


def _words(training: Training) -> dict[str, str | int]:
    words: dict[str, str | int] = {}
    if training.vocabulary is None:
        words["minimum_count"] = training.minimum_count
    else:
        words["vocabulary"] = _digest(training.vocabulary, "training.NAME.vocabulary names it")
    if training.word_vectors is not None:
        words["word_vectors"] = _digest(
            training.word_vectors, "training.NAME.word_vectors names it"
        )
    if training.tokenizer is not None:
        words["tokenizer"] = training.tokenizer
    return words


def _digest(file: str, named_by: str) -> str:
    if not Path(file).is_file():
        raise InputError(f"{file}: no such file; {named_by}")
    return sha256_of_unchanged(Path(file))


def check_parts(recipe: Recipe, dimension: int) -> None:
    """Check that a recipe's poolings and objective can be built, and that the objective has the
    vectors it needs; dimension: of the joint space.

    Raises:
        InputError: For a name or an option that is not known, or a value that is refused.
    """
    import torch

    with torch.device("meta"):  # takes no memory and draws nothing
        for side in (recipe.image_pooling, recipe.text_pooling):
            pooling.of(side, dimension)
    objective = objectives.build(recipe.objective.name, **recipe.objective.options)
    if not embeds(recipe):
        objective.require(None)
