"""Rescored similarities on disk, what is recorded of them, and how they are computed again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline import rescoring
from pipeline.retrieval import Similarity, as_similarity
from pipeline.scores import contents
from pipeline.scores.similarity_store import SimilarityStore

SOURCE = "rescored"
"""The key of `made_from` that holds the system whose scores were rescored, and that store's seal."""


def made_from(source: SimilarityStore, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Compose the record of a rescored system: its source's, with one more step.

    Args:
        source: The scores that are rescored.
        name: A key of `RESCORERS`.
        options: The rescorer's options, as they are given.

    Returns:
        `made_from` of the new store. Tables name its steps.
    """
    kept = {key: value for key, value in source.made_from.items() if key != contents.KEY}
    return kept | {"steps": [*kept.get("steps", []), {"name": name, **options}],
                   SOURCE: {"system": source.path.stem, "seal": source.seal}}


def compute(source: SimilarityStore, made: Mapping[str, Any]) -> Similarity:
    """Rescore a system by the last recorded step.

    Args:
        source: The scores that are rescored.
        made: `made_from` of the rescored system.

    Returns:
        The new similarities.

    Raises:
        InputError: For an unknown step, or for an ensemble without one matrix.
    """
    step = dict(made["steps"][-1])
    scores = as_similarity(source.similarity)
    return rescoring.build(step.pop("name"), **step).rescore(scores)  # type: ignore[arg-type]
