"""Names of features say every setting that makes another feature, and stores keep the name that
they were made with.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import forged
import pytest

from pipeline.make.features import extraction
from pipeline.make.features.extraction.request import feature_name
from pipeline.make.features.extractors import ENGINES
from pipeline.make.features.extractors.options import EngineOptions
from pipeline.make.features.store import FeatureStore

pytestmark = pytest.mark.slow

USUAL = {
    "butd-36": "butd-36-proposals",
    "butd-10-100": "butd-10-100-proposals",
    "grid": "grid16-resnet152.tv_in1k",
    "patch": "patch-vit_base_patch16_224.orig_in21k_ft_in1k",
    "grid-feats-x101": "grid-feats-x101",
    "grid-feats-x152": "grid-feats-x152",
}


def named(engine: str, precision: str = "fp32", **options: Any) -> str:
    chosen: Any = ENGINES.options(engine, options)
    return feature_name(chosen.reported_as, chosen.weights, precision, "0" * 64)


@pytest.mark.parametrize("engine", USUAL)
def test_usual_settings_add_nothing(engine: str) -> None:
    assert named(engine) == USUAL[engine]


@pytest.mark.specification
@pytest.mark.parametrize(
    ("engine", "change", "precision", "ending"),
    [
        ("butd-36", {"proposals": 45}, "fp32", "-rpn45"),
        ("butd-36", {"weights": "butd-36-milvlg"}, "fp32", "-butd-36-milvlg"),
        ("grid", {"image_size": 256}, "fp32", "-256px"),
        ("grid", {}, "bf16", "-bf16"),
        ("patch", {"image_size": 384}, "fp32", "-384px"),
        ("grid", {"weights": "untrained"}, "fp32", "-untrained"),
        ("patch", {"weights": "my.safetensors"}, "fp32", "-weights00000000"),
        ("grid-feats-x101", {"short_side": 448}, "fp32", "-448px-1000px"),
        ("butd-36", {"proposals": 45, "weights": "untrained"}, "fp16", "-rpn45-untrained-fp16"),
    ],
)
def test_other_settings_are_in_the_name(
    engine: str, change: dict[str, Any], precision: str, ending: str
) -> None:
    assert named(engine, precision, **change) == USUAL[engine] + ending


def test_sides_are_named() -> None:
    small = {"short_side": 200, "long_side": 333}
    assert named("butd-36", **small) == "butd-36-proposals-200px-333px"
    assert named("butd-given", boxes="boxes.npz", **small) == "butd-given-200px-333px"


def test_options_must_name_their_features() -> None:
    class Nameless(EngineOptions):
        """Options that do not say what their features are called."""

    with pytest.raises(TypeError, match=r"abstract .*reported_as"):
        Nameless()


def test_a_store_keeps_the_name_that_it_was_made_with(job: extraction.ExtractionJob) -> None:
    """Stores from before names said so much stay valid."""
    extraction.extract(job)
    name = FeatureStore(job.store).fingerprint["recipe"]
    forged.artefact(
        job.store, lambda record: record["request"].update(recipe="as it was called then")
    )
    assert extraction.extract(job).extracted == 0
    ids = job.manifest.images["image_id"].to_numpy()
    less = replace(
        job.manifest,
        source=job.manifest.table[job.manifest.table["image_id"] != ids[0]].reset_index(drop=True),
    )
    assert extraction.extract(replace(job, manifest=less)).extracted == 0
    assert name != "as it was called then"
    assert FeatureStore(job.store).fingerprint["recipe"] == "as it was called then"
