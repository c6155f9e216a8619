"""The explorer's data where a query's place among the queries is not its row: an image without captions."""

from __future__ import annotations

import numpy as np
from PIL import Image

from pipeline.files.images import ImageError
from pipeline.report.examples import Gallery
from pipeline.report.page.explorer import gather
from pipeline.retrieval import as_similarity
from pipeline.settings import Report


def gone(row: int) -> Image.Image:
    raise ImageError("gone")


def test_places_are_counted_among_the_queries_that_ask() -> None:
    """The first image asks nothing; the third caption is of no image here."""
    scores = np.array([[0, 0, 0, 0, 0], [9, 8, 0, 1, 2], [0, 3, 1, 7, 5]], np.float32)
    gallery = Gallery("a", as_similarity(scores), np.array([1, 1, -1, 2, 2]), list("vwxyz"), ["0", "1", "2"], gone,
                      {"members": []}, np.array([70, 80, 90]), np.arange(500, 505))
    found = gather({"a": gallery}, ("a", "a"), Report(queries=9, top=2, thumbnail=16))
    asked = found["queries"]
    assert (asked["t2i"]["ids"], asked["i2t"]["ids"]) == ([500, 501, 503, 504], [80, 90])
    assert (asked["t2i"]["texts"], asked["i2t"]["texts"]) == (list("vwyz"), ["1", "2"])
    assert asked["t2i"]["images"] == [0, 0, 1, 1]
    for way, texts in (("t2i", [caption["text"] for caption in found["captions"]]),
                       ("i2t", [image["file"] for image in found["images"]])):
        for query in found[way]:
            assert asked[way]["texts"][query["number"]] == texts[query["query"]]
    assert [query["own"] for query in found["t2i"]] == [[9], [8], [7], [5]]


def test_a_reranked_system_names_its_retriever_and_others_none() -> None:
    def gallery(name: str, made_from: dict[str, object]) -> Gallery:
        scores = as_similarity(np.eye(2, dtype=np.float32))
        return Gallery(name, scores, np.arange(2), list("vw"), ["0", "1"], gone, {"members": [], **made_from})

    reranked = gallery("a+rr", {"reranked": {"retriever": {"system": "a"}}})
    elsewhere = gallery("b+rr", {"reranked": {"retriever": {"system": "b"}}})
    shown = {"c": gallery("c", {}), "a": gallery("a", {}), "a+rr": reranked, "b+rr": elsewhere}
    found = gather(shown, ("a", "a+rr"), Report(queries=9, top=2, thumbnail=16))
    assert [system["before"] for system in found["systems"]] == [None, None, 1, None]
