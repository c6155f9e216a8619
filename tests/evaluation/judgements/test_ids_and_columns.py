"""What ids and columns of files of judgements and runs mean, by how they are written."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.foundation.evaluation.judgements import appearance
from pipeline.foundation.evaluation.judgements.coco_pairs import positives_of
from pipeline.foundation.evaluation.judgements.columns import QRELS, RUN, is_distance, recognised
from pipeline.foundation.evaluation.judgements.names import (
    CAPTION,
    EITHER,
    IMAGE,
    UNKNOWN,
    Names,
    by_digest,
    by_sides,
)
from pipeline.foundation.evaluation.retrieval.collection import Collection
from pipeline.foundation.parts.errors import InputError

COLLECTION = Collection(np.array([30, 10]), np.array([7, 5, 6, 8]), np.array([0, 1, 1, 0]))


def test_without_a_manifest_the_ending_of_a_file_says_what_an_id_is() -> None:
    for text, side in {
        "a.jpg": IMAGE,
        "folder/clip 7.MP4": IMAGE,
        "a.jpg#0": CAPTION,
        "video7": EITHER,
        "a.txt#0": EITHER,
    }.items():
        number, found = by_digest(text)
        assert found == side, text
        assert UNKNOWN < number < -1, text
        assert by_digest(text)[0] == number
    assert by_digest("") == (UNKNOWN, EITHER)


def test_who_asks_follows_from_the_sides_that_are_written() -> None:
    """Of two plain numbers the query is a caption and the document an image; of one it is what the
    other is not.
    """
    for query, document, image_asks, is_wrong in (
        (EITHER, EITHER, False, False),
        (EITHER, CAPTION, True, False),
        (EITHER, IMAGE, False, False),
        (IMAGE, EITHER, True, False),
        (CAPTION, EITHER, False, False),
        (IMAGE, CAPTION, True, False),
        (CAPTION, IMAGE, False, False),
        (IMAGE, IMAGE, True, True),
        (CAPTION, CAPTION, True, True),
    ):
        sides = [
            (np.array([number]), np.array([side])) for number, side in ((1, query), (2, document))
        ]
        image, caption, asks, wrong = by_sides(*sides)
        assert wrong.tolist() == [is_wrong], (query, document)
        if not is_wrong:
            assert asks.tolist() == [image_asks], (query, document)
            assert (image[0], caption[0]) == ((1, 2) if image_asks else (2, 1)), (query, document)


def test_captions_of_files_are_numbered_from_0_in_the_order_of_the_pool() -> None:
    names = Names(COLLECTION, lambda: ["x/b.jpg", "x/a.jpg"])
    for text, expected in {
        "a.jpg": (10, IMAGE),
        "x/b.jpg": (30, IMAGE),
        "b.jpg#0": (7, CAPTION),
        "b.jpg#1": (8, CAPTION),
        "a.jpg#1": (6, CAPTION),
        "a.jpg#2": (UNKNOWN, CAPTION),
        "c.jpg#0": (UNKNOWN, EITHER),
        "caption:5": (5, CAPTION),
        "12": (12, EITHER),
    }.items():
        assert names.sided(text) == expected, text


def test_ids_of_a_column_are_those_of_its_texts_one_by_one() -> None:
    for texts in (
        ["12", "7"],
        ["image:12", "caption_7", "5"],
        ["image:12", "image:-5"],
        ["image12", "caption-7", "captions 5"],
    ):
        names = Names(COLLECTION)
        found, sides = names.of(np.array(texts, object))
        each = [names.sided(text) for text in texts]
        assert [*zip(found.tolist(), sides.tolist(), strict=True)] == each, texts
    assert Names(COLLECTION).sided("image:12") == (12, IMAGE)
    assert Names(COLLECTION).sided("image:-5")[0] == UNKNOWN


def test_columns_are_known_in_any_spelling() -> None:
    for name, is_one in {
        "Distance": True,
        '"DIST"': True,
        "dists ": True,
        "score": False,
        "similarity": False,
    }.items():
        assert is_distance(name) is is_one, name
    for line, kind, separator, names in (
        ("5 0 10 1", QRELS, " ", ["query", "iteration", "document", "grade"]),
        ("5 0\t10\t1", QRELS, " ", ["query", "iteration", "document", "grade"]),
        ("a b\t0\tc d\t1", QRELS, "\t", ["query", "iteration", "document", "grade"]),
        ("5 10 0.3", RUN, " ", ["query", "document", "score"]),
        ("Query-ID,corpus id,Score", QRELS, ",", ["query", "document", "grade"]),
        ("q_id;DOC-ID;notes;sim", RUN, ";", ["query", "document", "column 2", "score"]),
    ):
        found = recognised(line, "f", kind)
        assert (found.separator, found.names) == (separator, names), line
        assert found.header == line[-1].isalpha(), line
    with pytest.raises(InputError, match="several columns for the score: score, sim; leave one"):
        recognised("query,document,score,sim", "f", RUN)


def test_columns_of_pairs_are_told_from_a_matrix() -> None:
    """A query has several rows, its ranks begin again, and one column alone holds scores."""
    count = 12
    query = [str(row // 3) for row in range(count)]
    document = [f"d{row}" for row in range(count)]
    other = [f"q{row}" for row in range(count)]
    score = [str(row + 0.5) for row in range(count)]
    for first, are_pairs in ((0, True), (1, True), (2, False)):
        ranks = [str(row % 3 + first) for row in range(count)]
        found = appearance.columns([*zip(query, document, ranks, strict=True)])
        assert (found[2].kind == "ranks") == are_pairs
        assert appearance.are_pairs(found, count) == are_pairs
    for cells, are_pairs in (
        ((query, document, score), True),
        ((score, document, query), True),
        ((query, document, score, score), False),
        ((other, document, score), False),
        ((score, score, score), False),
        ((query, document), False),
        ((query, document, query), False),
    ):
        found = appearance.columns([*zip(*cells, strict=True)])
        assert appearance.are_pairs(found, count) == are_pairs, appearance.described(found)
        assert not appearance.are_pairs(found, 9)


def test_a_pair_that_is_listed_twice_is_one() -> None:
    listed = positives_of({10: [6, 5, 6], 30: [7]}, COLLECTION, "image", "f")
    assert listed.candidate.tolist() == [0, 1, 2]
    assert listed.start.tolist() == [0, 1, 3]


def test_an_id_that_the_pool_lacks_is_named_with_its_row() -> None:
    rows = np.array([4, 7, 9])
    assert COLLECTION.require("caption", np.array([5, 7, 8]), "f", rows).tolist() == [1, 0, 3]
    with pytest.raises(InputError, match=r"lacks 2 of 3 image ids, such as 11 in row 7$"):
        COLLECTION.require("image", np.array([30, 11, 12]), "f", rows)
