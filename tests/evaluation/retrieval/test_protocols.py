"""The benchmark protocols: their sizes, the five captions, the folds."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import (
    PROTOCOLS,
    Embeddings,
    Protocol,
    Relevance,
    consecutive_captions,
)
from pipeline.foundation.evaluation.retrieval.relevance import Positives
from pipeline.foundation.parts.errors import InputError


def embeddings(images: int, captions: int, seed: int = 0) -> Embeddings:
    generator = np.random.default_rng(seed)
    sides = (
        generator.standard_normal((count, 4)).astype(np.float32) for count in (images, captions)
    )
    return Embeddings(*sides)


def test_the_names_that_results_carry() -> None:
    assert list(PROTOCOLS) == [
        "all",
        "flickr30k_1k",
        "coco_5k",
        "coco_1k_5fold",
        "multi30k_2016",
        "msrvtt_full",
        "msrvtt_1ka",
        "vatex_1500",
    ]
    metrics = evaluate(embeddings(1000, 5000), consecutive_captions((1000, 5000)), "flickr30k_1k")
    assert metrics.as_dict()["protocol"] == "flickr30k_1k"
    with pytest.raises(InputError, match="unknown protocol 'coco'"):
        evaluate(np.eye(2), [0, 1], "coco")


@pytest.mark.specification
@pytest.mark.parametrize(
    ("name", "images"), [("flickr30k_1k", 1014), ("coco_5k", 1000), ("coco_1k_5fold", 4999)]
)
def test_sizes_are_asserted(name: str, images: int) -> None:
    with pytest.raises(
        InputError, match=rf"protocol {name} is defined for \d+ images, received {images}"
    ):
        evaluate(embeddings(images, images * 5), consecutive_captions((images, images * 5)), name)


@pytest.mark.specification
def test_protocols_are_those_of_the_papers() -> None:
    """Images, captions of each, folds, and whether equal captions are one query."""
    for name, rules in {
        "all": (None, None, 1, False),
        "flickr30k_1k": (1000, 5, 1, False),
        "coco_5k": (5000, 5, 1, False),
        "coco_1k_5fold": (5000, 5, 5, False),
        "multi30k_2016": (1000, 12, 1, False),
        "msrvtt_full": (2990, None, 1, True),
        "msrvtt_1ka": (1000, 1, 1, False),
        "vatex_1500": (1500, None, 1, True),
    }.items():
        found = PROTOCOLS[name]
        assert (found.images, found.captions_per_image, found.folds, found.same_text) == rules, name
        assert found.unpaired == ("candidates" if name == "all" else "refused"), name
    multi30k = PROTOCOLS["multi30k_2016"]
    for language, captions in {"en": 5, "de": 5, "fr": 1, "cs": 1}.items():
        of_language = multi30k.of_language(language)
        assert of_language.captions_per_image == captions
        assert of_language.of_language("any") == of_language
    with pytest.raises(InputError, match="is of en, de, fr, cs, received captions in ja"):
        multi30k.of_language("ja")


def test_an_image_that_lost_its_caption_to_an_equal_one_stays_a_candidate() -> None:
    owner = np.array([0, 0])
    merged = Protocol("merged", same_text=True, unpaired="refused")
    ((images, captions),) = merged.parts(owner, 2)
    assert (images.tolist(), captions.tolist()) == ([0, 1], [0, 1])
    with pytest.raises(InputError, match="1 of 2 images have none"):
        Protocol("plain", unpaired="refused").parts(owner, 2)
    for rules in (merged, Protocol("plain", unpaired="refused")):
        with pytest.raises(InputError, match="1 of 3 captions belong to none"):
            rules.parts(np.array([0, 1, -1]), 2)


def test_a_matrix_is_called_transposed_where_it_would_fit_on_its_side() -> None:
    for shape, said in (
        ((50, 10), "the matrix is transposed"),
        ((51, 10), "say how many captions each image has"),
        ((10, 49), "say how many captions each image has"),
        ((50, 1), "say how many captions each image has"),
    ):
        with pytest.raises(InputError, match=said):
            consecutive_captions(shape)


@pytest.mark.specification
def test_every_image_needs_five_captions() -> None:
    owner = consecutive_captions((1000, 5000)).copy()
    owner[777 * 5] = 3
    with pytest.raises(InputError, match="image row 777 has 4"):
        evaluate(embeddings(1000, 5000), owner, "flickr30k_1k")


def test_a_sixth_caption_is_left_out_and_counted() -> None:
    generator = np.random.default_rng(0)
    owner = np.concatenate([consecutive_captions((1000, 5000)), generator.integers(0, 1000, 60)])
    owner = owner[np.concatenate([generator.permutation(5000), np.arange(5000, 5060)])]
    source = embeddings(1000, 5060)
    metrics = evaluate(source, owner, "flickr30k_1k")
    first_five = evaluate(Embeddings(source.images, source.captions[:5000]), owner[:5000])
    assert (metrics.captions, metrics.captions_unused) == (5000, 60)
    assert metrics.numbers == first_five.numbers
    assert evaluate(source, owner, "all").captions == 5060


@pytest.mark.slow
@pytest.mark.specification
def test_five_folds_are_averaged_and_kept() -> None:
    source, owner = embeddings(5000, 25000), consecutive_captions((5000, 25000))
    reported: list[int] = []
    metrics = evaluate(source, owner, "coco_1k_5fold", progress=reported.append)
    assert (metrics.images, metrics.captions, reported[-1]) == (5000, 25000, 5000)
    assert metrics.queries["t2i"] == 25000
    folds = [
        evaluate(
            Embeddings(source.images[at : at + 1000], source.captions[5 * at : 5 * at + 5000]),
            owner[:5000],
        )
        for at in range(0, 5000, 1000)
    ]
    for fold, alone in zip(metrics.as_dict()["folds"], folds, strict=True):
        assert {**fold, "protocol": "all"} == alone.as_dict()
    assert metrics.rsum == pytest.approx(np.mean([fold.rsum for fold in folds]))
    assert metrics["i2t", "MedR"] == pytest.approx(np.mean([fold["i2t", "MedR"] for fold in folds]))


def test_captions_left_out_and_ties_are_counted_in_all_folds() -> None:
    metrics = evaluate(
        np.zeros((4, 24)), np.arange(24) // 6, Protocol("halves", captions_per_image=5, folds=2)
    )
    assert (metrics.captions, metrics.captions_unused) == (20, 4)
    assert (
        (metrics.tied["i2t"], metrics.tied["t2i"])
        == (metrics.queries["i2t"], metrics.queries["t2i"])
        == (4, 20)
    )


@pytest.mark.specification
def test_folds_follow_the_map_not_the_position_of_captions() -> None:
    generator = np.random.default_rng(0)
    scores, owner = (
        generator.random((40, 120)).astype(np.float32),
        generator.permutation(np.arange(120) % 40),
    )
    metrics = evaluate(scores, owner, Protocol("quarters", folds=4))
    for fold, numbers in enumerate(metrics.folds):
        columns = np.flatnonzero(owner // 10 == fold)
        alone = evaluate(scores[10 * fold : 10 * fold + 10, columns], owner[columns] - 10 * fold)
        assert numbers.numbers == alone.numbers
    with pytest.raises(InputError, match="40 images cannot be cut into 7 folds"):
        evaluate(scores, owner, Protocol("sevenths", folds=7))
    with pytest.raises(InputError, match="1 image cannot be cut into 7 folds"):
        evaluate(scores[:1, :1], owner[:1] * 0, Protocol("sevenths", folds=7))


def test_captions_of_no_image_are_candidates_in_every_fold() -> None:
    owner = np.array([3, -1, 0, 2, -1, 1])
    first, second = Protocol("halves", folds=2).parts(owner, 4)
    assert (first[0].tolist(), first[1].tolist()) == ([0, 1], [1, 2, 4, 5])
    assert (second[0].tolist(), second[1].tolist()) == ([2, 3], [0, 1, 3, 4])


def test_a_fold_without_queries_of_a_direction_is_refused() -> None:
    """Images without captions, and judgements of some images alone, may leave a fold with none."""
    rows = np.arange(8) // 2
    columns = np.arange(8)
    first_half = columns < 4
    of_captions = Positives.of_pairs(columns, rows, 8)
    of_some_images = Positives.of_pairs(rows[first_half], columns[first_half], 4)
    of_some_captions = Positives.of_pairs(columns[first_half], rows[first_half], 8)
    of_images = Positives.of_pairs(rows, columns, 4)
    owner = np.where(first_half, rows, -1)
    for truth, folds, said in (
        (owner, 2, "no image has a right caption in fold 2 of 2"),
        (owner, 4, "no image has a right caption in fold 3 of 4"),
        (
            Relevance.of_directions(of_some_images, of_captions, rows),
            2,
            "no image has a right caption in fold 2 of 2",
        ),
        (
            Relevance.of_directions(of_images, of_some_captions, rows),
            4,
            "no caption has a right image in fold 3 of 4",
        ),
    ):
        with pytest.raises(InputError, match=said):
            evaluate(np.ones((4, 8)), truth, Protocol("parts", folds=folds))
        assert evaluate(np.ones((4, 8)), truth).directions == ["i2t", "t2i"]
    of_second = Relevance.of_pairs(np.arange(4), 2 * np.arange(4) + 1, (4, 8), owner=rows)
    with pytest.raises(InputError, match="no image has a right caption among the captions that"):
        evaluate(np.ones((4, 8)), of_second, Protocol("first", captions_per_image=1))


def test_consecutive_captions() -> None:
    assert consecutive_captions((2, 6), 3).tolist() == [0, 0, 0, 1, 1, 1]
    with pytest.raises(InputError, match="make 10 columns, received 9"):
        consecutive_captions((2, 9))
