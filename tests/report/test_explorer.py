"""The explorer's data where a query's place among the queries is not its row: an image without
captions.
"""

from __future__ import annotations

import invented_facts
import numpy as np
from PIL import Image

from pipeline.foundation.evaluation.retrieval import Relevance
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.settings import Report
from pipeline.judge.systems.scores.made import Made, Unknown
from pipeline.judge.systems.scores.system import System
from pipeline.run.report.examples import Gallery
from pipeline.run.report.page.explorer import gather


def gone(row: int) -> Image.Image:
    raise ImageError("gone")


def test_every_right_image_of_a_caption_is_known_with_its_language() -> None:
    """The first caption is right for two images, the second for another than its own, the third for
    none.
    """
    scores = np.array([[1, 0, 9], [9, 2, 0], [8, 1, 0]], np.float32)
    right = Relevance.of_pairs(
        np.array([0, 2, 2]), np.array([0, 0, 1]), (3, 3), owner=np.array([0, 1, 2])
    )
    pool = System.of(
        "a",
        scores,
        np.array([0, 1, 2]),
        relevance=right,
        languages=np.array(["en", "de", "en"]),
    )
    gallery = Gallery(pool, list("xyz"), ["0", "1", "2"], gone)
    found = gather({"a": gallery}, ("a", "a"), Report(queries=9, top=1, thumbnail=16))
    assert (found["judged"], found["languages"], found["queries"]["t2i"]["languages"]) == (
        True,
        ["de", "en"],
        [1, 0],
    )
    assert found["queries"]["t2i"]["right"] == [[0, 2], [2]]
    assert found["queries"]["t2i"]["ranks"] == [[2, 2]]  # of the third image, behind the second
    assert found["queries"]["i2t"] == {"ids": [0, 2], "ranks": [[2, 1]], "files": [0, 2]}
    shown = [[found["images"][place]["file"] for place in query["right"]] for query in found["t2i"]]
    assert shown == [["2", "0"], ["2"]]
    assert [query["own"] for query in found["t2i"]] == [[8], [1]]
    assert [caption["language"] for caption in found["captions"]] == [1, 0, 1]


def test_places_are_counted_among_the_queries_that_ask() -> None:
    """The first image asks nothing; the third caption is of no image here."""
    scores = np.array([[0, 0, 0, 0, 0], [9, 8, 0, 1, 2], [0, 3, 1, 7, 5]], np.float32)
    pool = System.of(
        "a",
        scores,
        np.array([1, 1, -1, 2, 2]),
        np.array([70, 80, 90]),
        np.arange(500, 505),
    )
    gallery = Gallery(pool, list("vwxyz"), ["0", "1", "2"], gone)
    found = gather({"a": gallery}, ("a", "a"), Report(queries=9, top=2, thumbnail=16))
    asked = found["queries"]
    assert (asked["t2i"]["ids"], asked["i2t"]["ids"]) == ([500, 501, 503, 504], [80, 90])
    called = {
        "t2i": asked["t2i"]["texts"],
        "i2t": [found["files"][row] for row in asked["i2t"]["files"]],
    }
    assert called == {"t2i": list("vwyz"), "i2t": ["1", "2"]}
    assert asked["t2i"]["right"] == [[1], [1], [2], [2]]
    for way, texts in (
        ("t2i", [caption["text"] for caption in found["captions"]]),
        ("i2t", [image["file"] for image in found["images"]]),
    ):
        for query in found[way]:
            assert called[way][query["number"]] == texts[query["query"]]
    assert [query["own"] for query in found["t2i"]] == [[9], [8], [7], [5]]


def test_of_chosen_queries_the_place_among_all_is_said() -> None:
    scores = np.random.default_rng(0).random((12, 24)).astype(np.float32)
    texts = [f"text {number}" for number in range(24)]
    pool = System.of("a", scores, np.repeat(np.arange(12), 2))
    gallery = Gallery(pool, texts, [str(row) for row in range(12)], gone)
    found = gather({"a": gallery}, ("a", "a"), Report(queries=3, top=2, thumbnail=16))
    for way, shown, every in (
        ("t2i", [caption["text"] for caption in found["captions"]], texts),
        ("i2t", [image["file"] for image in found["images"]], found["files"]),
    ):
        asked = found[way]
        assert len(asked) < len(every)
        assert [query["number"] for query in asked] != list(range(len(asked)))
        for query in asked:
            assert every[query["number"]] == shown[query["query"]]


def test_a_reranked_system_names_its_retriever_and_others_none() -> None:
    def gallery(name: str, retriever: str | None = None) -> Gallery:
        made: Made = Unknown()
        if retriever:
            made = invented_facts.reranked(made, retriever=retriever)
        pool = System.of(name, np.eye(2, dtype=np.float32), np.arange(2), made_from=made)
        return Gallery(pool, list("vw"), ["0", "1"], gone)

    reranked, elsewhere = gallery("a+rr", "a"), gallery("b+rr", "b")
    shown = {"c": gallery("c"), "a": gallery("a"), "a+rr": reranked, "b+rr": elsewhere}
    found = gather(shown, ("a", "a+rr"), Report(queries=9, top=2, thumbnail=16))
    assert [system["before"] for system in found["systems"]] == [None, None, 1, None]
