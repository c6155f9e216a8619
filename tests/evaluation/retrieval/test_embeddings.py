"""Similarities of embeddings that are never multiplied whole."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from sorting import noisy_pairs

from pipeline.foundation.evaluation.metrics import STATISTICS, evaluate
from pipeline.foundation.evaluation.retrieval import Embeddings, rank
from pipeline.foundation.parts.errors import InputError


@pytest.mark.specification
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("megabytes", [64, 0.05])
def test_agrees_with_the_whole_product(kind: type, megabytes: float) -> None:
    images, captions = (side.astype(kind) for side in noisy_pairs(150, 5, 1.5, seed=0))
    owner = np.repeat(np.arange(150), 5)
    blocks = evaluate(Embeddings(images, captions), owner, block_megabytes=megabytes)
    whole = evaluate(images.astype(np.float64) @ captions.astype(np.float64).T, owner)
    assert blocks.as_dict() == whole.as_dict()


@pytest.mark.specification
def test_a_collapsed_model_scores_exactly_at_chance() -> None:
    generator = np.random.default_rng(0)
    images = np.repeat(generator.standard_normal((1, 97)).astype(np.float32), 40, 0)
    captions = np.repeat(generator.standard_normal((1, 97)).astype(np.float32), 40, 0)
    for megabytes in (64, 1e-4):
        metrics = evaluate(Embeddings(images, captions), np.arange(40), block_megabytes=megabytes)
        assert [metrics[name] for name in STATISTICS[:-1]] == [2.5, 12.5, 25.0] * 2


def test_equal_embeddings_tie_whatever_block_they_are_in() -> None:
    generator = np.random.default_rng(1)
    images = generator.standard_normal((600, 333)).astype(np.float32)
    copies = generator.permutation(300)
    images[300:] = images[copies]
    captions = images + generator.standard_normal(images.shape).astype(np.float32) / 100
    captions[300:] = captions[copies]
    for megabytes in (64, 0.01):
        ranks = rank(Embeddings(images, captions), np.arange(600), block_megabytes=megabytes)
        for queries in (ranks.i2t, ranks.t2i):
            assert (queries.greater == 0).all()
            assert (queries.equal == 1).all()


def _vectors(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Float64 vectors [N, D] whose values have few significant bits, or that differ in few
    values.
    """
    normal = rng.standard_normal((600, 64))
    signed_zeros = np.where(rng.random((300, 3)) < 0.5, -0.0, 0.0) + np.eye(3)[np.arange(300) % 3]
    return {
        "of -1 and 1": np.sign(normal),
        "of -1 and 1, divided by their length": np.sign(normal[:, :49]) / 7,
        "of 0 and 1": (normal > 0) * 1.0,
        "of 0 and 1, many equal": (normal[:, :8] > 0) * 1.0,
        "one-hot": np.eye(600),
        "one-hot, one of ten": np.eye(10)[rng.integers(0, 10, 600)],
        "counts": rng.poisson(0.02, (600, 200)).astype(np.float64),
        "int8": np.round(normal * 40).clip(-127, 127),
        "of float16": np.round(normal, 1).astype(np.float16).astype(np.float64),
        "powers of two": 2.0 ** rng.integers(-1000, 1000, (600, 2)),
        "subnormal numbers": rng.integers(0, 3, (600, 4)) * 5e-324,
        "-0.0 and 0.0": signed_zeros,
        "one value a row": rng.integers(0, 9, (600, 1)).astype(np.float64),
        "equal in most values": np.where(np.arange(200) == 7, np.arange(600)[:, None] // 2, 1.0),
        "every second row and column": np.sign(normal)[::2, ::-2],
        "as columns of a transposed array": np.asfortranarray(np.sign(normal)),
        "big-endian": np.sign(normal).astype(">f8"),
    }


@pytest.mark.slow
def test_equal_vectors_are_those_whose_values_are_equal() -> None:
    """Whatever the values are; numpy sorts whole rows, and of each row finds the first equal."""
    for name, vectors in _vectors(np.random.default_rng(0)).items():
        first, group = np.unique(
            vectors.astype(np.float64) + 0.0, axis=0, return_index=True, return_inverse=True
        )[1:]
        found = Embeddings(vectors, vectors).equal
        np.testing.assert_array_equal(found.captions, first[group.reshape(-1)], name)


@pytest.mark.slow
def test_codes_rank_as_the_matrix_of_their_products() -> None:
    """Products of whole numbers are exact, in any type and block."""
    rng = np.random.default_rng(0)
    images = rng.random((200, 64)) < 0.5
    captions = np.repeat(images, 5, 0) ^ (rng.random((1000, 64)) < 0.25)
    owner = np.repeat(np.arange(200), 5)
    for low, high in ((-1, 1), (0, 1), (0, 8)):
        sides = [np.where(each, high, low) for each in (images, captions)]
        whole = evaluate(sides[0] @ sides[1].T, owner).as_dict()
        for kind in (np.float16, np.float32, np.float64):
            vectors = Embeddings(*(each.astype(kind) for each in sides))
            assert evaluate(vectors, owner, block_megabytes=0.1).as_dict() == whole, (low, kind)


@pytest.mark.slow
def test_rounding_never_lets_a_positive_beat_itself() -> None:
    """With one image there is no wrong one: every caption's rank is 1, whatever the products round
    to.
    """
    captions = np.random.default_rng(2).standard_normal((4000, 1023)).astype(np.float32)
    metrics = evaluate(Embeddings(captions[:1], captions), np.zeros(4000, int), block_megabytes=0.1)
    assert metrics["t2i", "MeanR"] == 1
    assert (metrics.tied["t2i"], metrics.tied["i2t"]) == (0, 0)


def test_files_and_tensors_are_taken_as_they_are(tmp_path: Path) -> None:
    images, captions = noisy_pairs(20, 2, 0.5, seed=3)
    np.save(tmp_path / "images.npy", images.astype(np.float16))
    np.save(tmp_path / "captions.npy", captions)
    owner = np.repeat(np.arange(20), 2)
    from_files = evaluate(Embeddings(tmp_path / "images.npy", tmp_path / "captions.npy"), owner)
    half = torch.from_numpy(images).half()
    assert (
        from_files.as_dict()
        == evaluate(Embeddings(half, torch.from_numpy(captions)), owner).as_dict()
    )
    assert from_files["i2t", "R@1"] > 50


@pytest.mark.specification
@pytest.mark.parametrize("side", ["image", "caption"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_refuses_what_is_not_finite_with_its_place(side: str, value: float) -> None:
    sides = dict(zip(("image", "caption"), noisy_pairs(30, 1, 0.1, seed=4), strict=True))
    sides[side][17, 5] = value
    with pytest.raises(InputError, match=f"{side} embeddings: row 17, dimension 5 is {value}"):
        evaluate(Embeddings(sides["image"], sides["caption"]), np.arange(30), block_megabytes=1e-4)


def test_refuses_products_that_overflow() -> None:
    with pytest.raises(InputError, match=r"row 0 .image., column 0 .caption. is inf"):
        evaluate(
            Embeddings(np.full((1, 2), 1e30, np.float32), np.full((1, 2), 1e30, np.float32)), [0]
        )


def test_refuses_sides_that_do_not_fit(tmp_path: Path) -> None:
    said = (
        "vectors of images have 3 numbers, those of captions 4: give both from one model; "
        "received images [2, 3] and captions [5, 4]"
    )
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        Embeddings(np.zeros((2, 3)), np.zeros((5, 4)))
    with pytest.raises(InputError, match="received int64"):
        Embeddings(np.zeros((2, 3), int), np.zeros((2, 3)))
    with pytest.raises(InputError, match="cannot read"):
        Embeddings(tmp_path / "none.npy", np.zeros((2, 3)))
