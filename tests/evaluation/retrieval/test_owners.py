"""Captions that belong to no image: their owner −1 is an index nowhere, and protocols keep or
refuse them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Relevance, protocol
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE, of_owners, renumbered
from pipeline.foundation.evaluation.retrieval.protocols import Protocol
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.system import System

ROOT = Path(__file__).parents[3]
# Names of arrays of owners, and files in which an owner is the query that a candidate belongs to.
OWNERS = {"caption_image", "owner", "owners"}
OF_QUERIES = {
    "pipeline/foundation/evaluation/metrics/kinds.py",
    "pipeline/foundation/evaluation/retrieval/placements.py",
    "pipeline/judge/explain/measuring.py",
}


def name_of(node: ast.expr) -> str:
    return (
        node.id
        if isinstance(node, ast.Name)
        else node.attr
        if isinstance(node, ast.Attribute)
        else ""
    )


def indexed_by_owners(code: str) -> Iterator[int]:
    """The lines in which an array is indexed by owners, or by some of them."""
    if not any(name in code for name in OWNERS):
        return
    for node in ast.walk(ast.parse(code)):
        index = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(index, ast.Subscript):
            index = index.value
        if isinstance(node, ast.Subscript) and index is not None and name_of(index) in OWNERS:
            yield node.lineno


@pytest.mark.slow
def test_owners_are_an_index_in_one_file_alone() -> None:
    """What is looked up by owners goes through `of_owners`, for −1 means the last row to numpy."""
    found = {
        (str(file.relative_to(ROOT)), line)
        for folder in ("pipeline", "stages")
        for file in (ROOT / folder).rglob("*.py")
        for line in indexed_by_owners(file.read_text(encoding="utf-8"))
    }
    assert {file for file, _ in found} - OF_QUERIES == {
        "pipeline/foundation/evaluation/retrieval/owners.py"
    }, found


@pytest.mark.parametrize(
    "code",
    [
        "ids[owner]",
        "ids[pool.caption_image]",
        "ids[pool.caption_image[columns]]",
        "self.place[self.owner[captions]]",
    ],
)
def test_such_an_index_is_recognised(code: str) -> None:
    assert list(indexed_by_owners(code)) == [1]


def test_what_captions_images_have(rng: np.random.Generator) -> None:
    owner = np.array([2, NO_IMAGE, 0])
    assert of_owners(np.array([5, 6, 7]), owner).tolist() == [7, -1, 5]
    assert of_owners(np.array([False, True, False]), owner, missing=True).tolist() == [
        False,
        True,
        False,
    ]
    assert of_owners(np.eye(3), owner[None], 0.5).tolist() == [[[0, 0, 1], [0.5] * 3, [1, 0, 0]]]
    assert renumbered(owner, np.array([0, 1]), 3).tolist() == [NO_IMAGE, NO_IMAGE, 0]


def test_captions_of_no_image_are_of_no_image_in_every_view() -> None:
    collection = Collection(np.array([70, 80]), np.array([1, 2, 3]), np.array([1, NO_IMAGE, 0]))
    assert collection.image_of_caption() == {1: 80, 2: NO_IMAGE, 3: 70}
    scores = np.arange(6, dtype=np.float32).reshape(2, 3)
    system = System.of(
        "a", scores, collection.caption_image, collection.image_ids, collection.caption_ids
    )
    assert system.only(np.array([1]), np.array([0, 1, 2])).caption_image.tolist() == [
        0,
        NO_IMAGE,
        NO_IMAGE,
    ]


@pytest.mark.specification
@pytest.mark.parametrize("folds", [1, 2])
def test_a_better_caption_of_no_image_is_ranked_above_the_right_one(folds: int) -> None:
    """Two images with a caption each, and for each a caption of no image that is more similar."""
    owner = np.array([0, NO_IMAGE, 1, NO_IMAGE])
    scores = np.array([[2, 3, 0, 0], [0, 0, 2, 3]], np.float32)
    measured = evaluate(scores, owner, Protocol("mine", folds=folds))
    assert measured.captions_unused == 0
    assert measured["i2t", "R@1"] == 0
    assert measured["t2i", "R@1"] == 100
    assert measured.queries["t2i"] == 2
    alone = evaluate(scores[:, [0, 2]], owner[[0, 2]], Protocol("mine", folds=folds))
    assert alone["i2t", "R@1"] == 100


def test_the_first_captions_of_each_image_are_ranked_among_those_of_no_image() -> None:
    owner = np.array([0, 0, NO_IMAGE, 1, NO_IMAGE, 1])
    ((_, columns),) = Protocol("mine", captions_per_image=1).parts(owner, 2)
    assert columns.tolist() == [0, 2, 3, 4]


def test_protocols_of_papers_refuse_them() -> None:
    owner = np.append(np.repeat(np.arange(1000), 5), NO_IMAGE)
    with pytest.raises(
        InputError, match="flickr30k_1k ranks captions of its images alone, and 1 of 5001 captions"
    ):
        protocol("flickr30k_1k").parts(owner, 1000)


def test_an_image_without_a_caption_is_a_candidate_or_refused() -> None:
    owner, scores = (
        np.array([0, 0, 2, 2]),
        np.array([[1, 1, 0, 0], [2, 0, 0, 2], [0, 0, 1, 1]], np.float32),
    )
    measured = evaluate(scores, owner, Protocol("mine", captions_per_image=2))
    assert (measured.queries["i2t"], measured.queries["t2i"]) == (2, 4)
    assert (measured["i2t", "R@1"], measured["t2i", "R@1"]) == (100, 50)
    with pytest.raises(
        InputError, match="mine ranks images that have captions, and 1 of 3 images have none"
    ):
        Protocol("mine", unpaired="refused").parts(owner, 3)
    Protocol("mine", unpaired="refused", same_text=True).parts(owner, 3)


def test_parts_of_a_relevance_have_no_owner_of_another_image() -> None:
    relevance = Relevance.of_owner(np.array([1, NO_IMAGE, 0]), 2).select(
        np.array([0]), np.array([0, 1, 2])
    )
    assert relevance.owner.tolist() == [NO_IMAGE, NO_IMAGE, 0]
