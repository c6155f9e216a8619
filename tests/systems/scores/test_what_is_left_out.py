"""What was left out of a data set is said wherever numbers of it stand; nothing is written where
nothing is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import pandas as pd
import pytest

from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.requests import FuseRequest
from pipeline.judge.systems.scores import of_ensemble
from pipeline.judge.systems.scores.judged import Truth, facts
from pipeline.judge.systems.scores.made import Made, Unknown, lacking
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables.evaluated import to_text
from pipeline.judge.tables.markdown import to_markdown
from pipeline.run.report import rows

TABLE = pd.DataFrame(
    {
        "image_id": [1, 2],
        "file": ["a.jpg", "b.jpg"],
        "bytes": 1,
        "split": "test",
        "caption_id": [1, 2],
        "caption": ["a dog", "a cat"],
    }
)
LEFT_OUT = {"no caption": 2, "not decodable": 1}


def pool(made: Made) -> System:
    return System.of(
        "mine", np.eye(2), np.arange(2), np.array([1, 2]), np.array([1, 2]), made_from=made
    )


def test_a_record_has_counts_only_where_something_is_left_out() -> None:
    assert lacking({}) == {}
    assert facts(pool(invented_facts.of_head()), Truth()) == {}
    lacks = invented_facts.of_head(lacks=lacking(LEFT_OUT, 3))
    without_features = LEFT_OUT | {"images without features": 3}
    assert facts(pool(lacks), Truth()) == {"left_out": without_features}
    fused = invented_facts.ensemble("mine", left_out=[5, 7])
    corrected = invented_facts.rescored(fused)
    for made in (fused, corrected):
        assert facts(pool(made), Truth()) == {"left_out": {"images that a member lacks": 2}}


def test_an_ensemble_lacks_for_each_reason_what_the_member_with_most_lacks() -> None:
    members = [
        pool(invented_facts.of_head(name, lacks=lacks))
        for name, lacks in (
            ("a", {"no caption": 2, "not decodable": 1}),
            ("b", {"no caption": 3}),
            ("c", {"no caption": 1}),
        )
    ]
    request = FuseRequest(name="all", method="mean", weights=[0.5, 0.25, 0.25])
    made = of_ensemble.made_from(request, members)
    assert made.lacks == {"no caption": 3, "not decodable": 1}


def test_a_matrix_of_a_manifest_has_the_manifests_counts() -> None:
    manifest = Manifest(TABLE, "mine", Path(), left_out=LEFT_OUT)
    assert facts(pool(Unknown()), Truth(), manifest) == {"left_out": LEFT_OUT}
    assert facts(pool(Unknown()), Truth(), replace(manifest, left_out={})) == {}


@pytest.mark.parametrize("write", [to_text, lambda results: to_markdown(rows.table(results))])
def test_evaluate_says_it(write: Any) -> None:
    ways = {"R@1": 100.0, "R@5": 100.0, "R@10": 100.0, "MedR": 1.0, "MeanR": 1.0}
    numbers = {
        "images": 2,
        "captions": 2,
        "protocol": "all",
        "ties": "expected",
        "RSUM": 600.0,
        "i2t": ways,
        "t2i": ways,
        "tied": {"i2t": 0, "t2i": 0},
    }
    assert "left out" not in write([("mine", numbers)])
    judged = {
        "source": "q",
        "pairs": {"i2t": 2, "t2i": 2},
        "graded": False,
        "left_out": {"not 4 columns": 1},
    }
    said = write([("mine", numbers | {"left_out": LEFT_OUT, "relevance": judged})])
    assert "left out of the data set or this pool: no caption: 2, not decodable: 1" in said
    assert "left out of the judgements: not 4 columns: 1" in said
