"""Stores of scores and vectors, written in a moment, and changed as by somebody who knows how."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.foundation.artefacts import Reference, making, record as records
from pipeline.foundation.evaluation.retrieval import Collection, Similarity
from pipeline.judge.systems.requests import EmbedRequest, FuseRequest, ScoreRequest
from pipeline.judge.systems.scores import layout, made as of_systems
from pipeline.judge.systems.scores.made import Made

MACHINE = {"processor": "invented"}


def save(
    path: Path,
    matrices: Sequence[Similarity],
    image_ids: np.ndarray,
    caption_ids: np.ndarray,
    caption_image: np.ndarray,
    facts: Made | Mapping[str, Any],
    fusion: Mapping[str, Any] | None = None,
    made_from: Mapping[str, Reference] | None = None,
    **more: Any,
) -> None:
    """Write a store of scores; `made_from` are the members of an ensemble, or a head."""
    made = _made(facts)
    request = (
        FuseRequest(name=path.stem, method="mean", weights=[1.0])
        if "member.0" in (made_from or {})
        else ScoreRequest(name=path.stem, split=str(made.split))
    )
    with _anew(path) as place, making(place, request, made_from or {}, MACHINE) as draft:
        assert draft is not None
        layout.write(
            draft,
            matrices,
            Collection(image_ids, caption_ids, caption_image),
            made,
            None if fusion is None else layout.Matrices.model_validate(fusion),
            **more,
        )


@contextmanager
def writing_vectors(
    path: Path, splits: Sequence[Any], dimension: int, facts: Made | Mapping[str, Any]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Write a store of vectors, which the block fills."""
    with _anew(path) as place, making(place, EmbedRequest(splits=[]), {}, MACHINE) as draft:
        assert draft is not None
        with layout.writing_vectors(draft, splits, dimension, _made(facts)) as arrays:
            yield arrays


def _made(facts: Made | Mapping[str, Any]) -> Made:
    return of_systems.read(facts)


@contextmanager
def _anew(path: Path) -> Iterator[Path]:
    """Where to make an artefact anew that may be up to date, and is read meanwhile."""
    if not (path / records.FILE).exists():
        yield path
        return
    successor = path.with_name(f"{path.name}.anew")
    yield successor
    shutil.rmtree(path)
    successor.rename(path)


def sealed_anew(
    store: Path, change: Callable[[dict[str, Any]], object] = lambda facts: None
) -> None:
    """Write new digests of a store's arrays, and change its facts."""
    record = records.load(store)
    facts = dict(record.facts)
    change(facts)
    records.save(store, record.changed(facts=facts, contents=records.contents(store)))


def changed(store: Path, **fields: Any) -> None:
    """Write other fields of a record, with a seal that fits."""
    records.save(store, records.load(store).changed(**fields))
