"""Names of features say every setting that makes another feature, and stores keep the name that they were made with."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import forged
import pytest

from pipeline.features import extraction
from pipeline.features.extraction.request import feature_name
from pipeline.features.store import FeatureStore
from pipeline.files.digest import digest

BUTD = {"weights": "butd-36", "short_side": 600, "long_side": 1000, "proposals": 300}
CNN = {"network": "resnet152.tv_in1k", "weights": "resnet152-in1k", "image_size": 512}
VIT = {"network": "vit_base_patch16_224.orig_in21k_ft_in1k", "weights": "vit-base-patch16-224", "image_size": 224}
USUAL = [("butd-36", "butd-36-proposals", BUTD), ("grid", "grid16-resnet152.tv_in1k", CNN),
         ("patch", f"patch-{VIT['network']}", VIT)]


@pytest.mark.parametrize(("engine", "name", "settings"), USUAL)
def test_usual_settings_add_nothing(engine: str, name: str, settings: dict[str, Any]) -> None:
    assert feature_name(engine, name, settings, "fp32", "0" * 64) == name


@pytest.mark.parametrize(("which", "change", "precision", "ending"), [
    (0, {"proposals": 45}, "fp32", "-rpn45"), (0, {"weights": "butd-36-milvlg"}, "fp32", "-butd-36-milvlg"),
    (1, {"image_size": 256}, "fp32", "-256px"), (1, {}, "bf16", "-bf16"), (2, {"image_size": 384}, "fp32", "-384px"),
    (1, {"weights": "untrained"}, "fp32", "-untrained"), (2, {"weights": "my.safetensors"}, "fp32", "-weights00000000"),
    (0, {"proposals": 45, "weights": "untrained"}, "fp16", "-rpn45-untrained-fp16")])
def test_other_settings_are_in_the_name(which: int, change: dict[str, Any], precision: str, ending: str) -> None:
    engine, name, settings = USUAL[which]
    assert feature_name(engine, name, {**settings, **change}, precision, "0" * 64) == name + ending


def test_sides_that_the_engine_names_are_named_once() -> None:
    small = {**BUTD, "short_side": 200, "long_side": 333}
    name = "butd-36-proposals-200px-333px"
    assert feature_name("butd-36", name, small, "fp32", "") == name
    assert feature_name("butd-given", "butd-given", small, "fp32", "") == "butd-given-200px-333px"


def test_a_store_keeps_the_name_that_it_was_made_with(job: extraction.ExtractionJob) -> None:
    """Stores from before names said so much stay valid."""
    extraction.extract(job)
    name = FeatureStore(job.store).fingerprint["recipe"]
    for file in (job.store / "zarr.json", job.store / "header.json"):
        tree = json.loads(file.read_text())
        told = tree["attributes"]
        told["fingerprint"]["recipe"] = "as it was called then"
        told["fingerprint_digest"] = digest([told["fingerprint"], told["layout"]])
        file.write_text(json.dumps(tree))
    forged.recorded(job.store)
    assert extraction.extract(job).extracted == 0
    ids = job.manifest.images["image_id"].to_numpy()
    less = replace(job.manifest, source=job.manifest.table[job.manifest.table["image_id"] != ids[0]].reset_index(
        drop=True))
    assert extraction.extract(replace(job, manifest=less)).extracted == 0
    assert name != "as it was called then"
    assert FeatureStore(job.store).fingerprint["recipe"] == "as it was called then"
