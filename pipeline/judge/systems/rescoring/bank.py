"""A bank: queries that show a correction which candidates are hubs, and their similarities to the
candidates.

The bank of the split train holds the captions and images that the heads were trained on. The bank
of the split test holds the queries that are ranked.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import Scores, Side, Similarity
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.fusion.combining import WeightedSum
from pipeline.judge.systems.rescoring.options import BankSplit
from pipeline.judge.systems.scores.made import Ensemble
from pipeline.judge.systems.scores.system import System


class Bank(NamedTuple):
    """Similarities of a bank's queries."""

    captions: Similarity  # [I, B], the images that are ranked, and the bank's captions
    images: Similarity  # [B', C], the bank's images, and the captions that are ranked
    # Computes [I, B'], the images that are ranked, and the bank's images. Raises InputError where
    # there are no embeddings.
    image_images: Callable[[], Similarity]
    # Likewise [B, C], the bank's captions, and the captions that are ranked.
    caption_captions: Callable[[], Similarity]


def _products(
    one: Sequence[np.ndarray], other: Sequence[np.ndarray], weights: Sequence[float]
) -> Similarity:
    """The weighted sum of the inner products of heads' vectors."""
    products = []
    for vectors, other_vectors in zip(one, other, strict=True):
        products.append(retrieval.Embeddings(vectors, other_vectors, double=True))
    return WeightedSum(products, weights)


def of_test(scores: Similarity, heads: Callable[[], tuple[list[System], list[float]]]) -> Bank:
    """Make the bank of the queries that are ranked."""

    def within(side: Side) -> Similarity:
        stores, weights = heads()
        vectors = [store.vectors(side) for store in stores]
        return _products(vectors, vectors, weights)

    return Bank(scores, scores, lambda: within("image"), lambda: within("caption"))


def of_train(
    train: Split, test: list[System], embedded: list[System], weights: list[float]
) -> Bank:
    """Make the bank of the split train."""
    for mine, theirs in zip(test, embedded, strict=True):
        if mine.checkpoints != theirs.checkpoints:
            raise InputError(
                f"{theirs.path}: was embedded by another head than {mine.path}; embed again"
            )
    whole = " of the split train; embed it whole"
    images = [store.vectors("image") for store in test]
    captions = [store.vectors("caption") for store in test]
    bank_images = [store.vectors_of("image", train.image_ids, whole) for store in embedded]
    bank_captions = [store.vectors_of("caption", train.caption_ids, whole) for store in embedded]
    to_bank_captions = _products(images, bank_captions, weights)
    to_bank_images = _products(bank_images, captions, weights)
    return Bank(
        to_bank_captions,
        to_bank_images,
        lambda: _products(images, bank_images, weights),
        lambda: _products(bank_captions, captions, weights),
    )


def heads_of(system: System) -> tuple[list[str], list[float]]:
    """List the heads whose similarities a system averages."""
    made = system.made_from
    is_by_mean = made.fused_by.get("method", "mean") == "mean"
    if made.steps or not is_by_mean:
        raise InputError(
            f"{system.name}: a bank serves heads and ensembles of heads by mean; rescore one of these"
        )
    if isinstance(made, Ensemble):
        return made.fusion.members, made.fusion.weights
    return [system.name], [1.0]


class Rescorer(Protocol):
    """Makes new similarities from a system's. It is built from its options, and draws nothing at
    random.
    """

    # The split of the bank's queries: "train", or "test" for the queries that are ranked. With
    # "test" a query's ranks depend on the other test queries; tables mark such a system and never
    # print it in bold.
    bank: BankSplit

    def rescore(self, scores: Similarity, bank: Bank) -> Scores:
        """The new similarities of scores [I, C], read block by block; bank: the similarities of the
        bank's queries.
        """
