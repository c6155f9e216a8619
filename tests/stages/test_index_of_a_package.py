"""An index that another package adds finds neighbours for searches, hard negatives and
reranking.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forged
import numpy as np
import pytest
import zarr

from pipeline.foundation import settings
from pipeline.foundation.evaluation.retrieval.similarity import as_similarity
from pipeline.foundation.evaluation.retrieval.top import INDEXES, top_of_index
from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.recipe import Pairs
from pipeline.judge.systems.scores.system import System
from pipeline.make.training import pairs
from pipeline.make.training.request import TrainRequest

pytestmark = pytest.mark.slow

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
HEAD = "vse2ad-region-bigru-s0"
SORTED = '''"""An index that sorts all products."""

import numpy as np

from pipeline.foundation.evaluation.retrieval.top import Top

ASKED = []


class Sorted:
    def __init__(self, vectors):
        self.vectors = np.asarray(vectors, np.float64)

    def top(self, queries, k):
        ASKED.append((len(queries), k))
        products = np.einsum("qd,nd->qn", queries.astype(np.float64), self.vectors)
        places = np.argsort(-products, axis=1, kind="stable")[:, :k]
        return Top(places, np.take_along_axis(products, places, 1))
'''


@pytest.fixture
def asked(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[tuple[int, int]]]:
    """A package with the index `sorted`: how many queries asked it for how many vectors."""
    site = tmp_path_factory.mktemp("site")
    about = site / "vse_sorted-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vse-sorted\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[vse_pipeline.indexes]\nsorted = vse_sorted:Sorted\n", encoding="utf-8"
    )
    (site / "vse_sorted.py").write_text(SORTED, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    plugins.all_offers.cache_clear()
    INDEXES.find("sorted")
    yield sys.modules["vse_sorted"].ASKED
    del sys.modules["vse_sorted"]
    plugins.all_offers.cache_clear()


def test_a_search(pipeline: Any, project: Path, asked: list[tuple[int, int]]) -> None:
    code, by_package, err = pipeline("search", "a red house", "--top", "4", "--index", "sorted")
    assert code == 0, err
    assert asked == [(1, 4)]
    assert pipeline("search", "a red house", "--top", "4")[1] == by_package
    assert "there are: exact, sorted" in pipeline("search", "a red house", "--index", "none")[2]


def test_hard_negatives(asked: list[tuple[int, int]], rng: np.random.Generator) -> None:
    image = np.repeat(np.arange(9), 3)
    images, captions = (rng.standard_normal((size, 8)).astype(np.float32) for size in (9, 27))
    found, ours = (
        pairs.nearest(images, captions, image, 4, index) for index in ("sorted", "exact")
    )
    assert asked == [(9, 7), (27, 5)]
    np.testing.assert_array_equal(found.captions, ours.captions)
    np.testing.assert_array_equal(found.images, ours.images)


def test_heads_record_whose_index_found_their_negatives(asked: list[tuple[int, int]]) -> None:
    recipe, how = SETTINGS.recipe("vse2ad"), SETTINGS.training_of("sample")
    assert (
        "vse_sorted" not in TrainRequest.of("vse2ad", "region", "bigru", 0, recipe, how).versions()
    )
    by_package = recipe.model_copy(update={"pairs": Pairs(index="sorted")})
    assert TrainRequest.of("vse2ad", "region", "bigru", 0, by_package, how).versions()["vse_sorted"]


def test_candidates_for_reranking(
    pipeline: Any, project: Path, asked: list[tuple[int, int]]
) -> None:
    own = Path("similarities/sample", f"{HEAD}.zarr")
    forged.copied(own, own.with_name("twin.zarr"))
    rerank = ("rerank", "--retriever", HEAD, "--with", "system:twin", "--k", "3")
    for name, index in (("by-index", "sorted"), ("by-exact", "exact")):
        code, _, err = pipeline(*rerank, "--name", name, "--index", index)
        assert code == 0, err
    images, captions = System.open(own).shape
    assert asked == [(images, 3), (captions, 3)]
    by_index, by_exact = (
        zarr.open_group(own.with_name(f"{name}.zarr"), mode="r")
        for name in ("by-index", "by-exact")
    )
    for array in ("i2t_candidates", "t2i_candidates", "i2t_retrieved"):
        np.testing.assert_array_equal(by_index[array][:], by_exact[array][:])
    recorded = json.loads(
        (own.with_name("by-index.zarr") / "record.json").read_text(encoding="utf-8")
    )
    assert recorded["request"]["index"] == "sorted"
    assert "vse_sorted" in recorded["versions"]


def test_an_ensemble_has_no_vectors_for_an_index() -> None:
    scores = as_similarity(np.eye(3, dtype=np.float32))
    with pytest.raises(InputError, match="the index exact needs vectors"):
        top_of_index("exact", scores, "i2t", 1)  # type: ignore[arg-type]
