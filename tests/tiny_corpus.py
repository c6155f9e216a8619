"""A rendered corpus, its manifest, and stores made from it in seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation import manifest
from pipeline.foundation.manifest import Manifest, sample
from pipeline.make.features import extraction
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.store import FeatureStore

TINY_CNN = {"network": "test_efficientnet", "weights": "untrained", "image_size": 64}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 rendered scenes: 16 train, 4 val, 4 test."""
    return sample.render(
        tmp_path_factory.mktemp("corpus") / "sample", images=24, size=64, seed=0
    ).parent


@pytest.fixture(scope="session")
def scenes(corpus: Path) -> Manifest:
    return manifest.build("sample", corpus / "images", corpus / "dataset_sample.json")


@pytest.fixture
def job(scenes: Manifest, tmp_path: Path) -> extraction.ExtractionJob:
    """Grid features of the scenes by a tiny untrained network, five images a shard."""
    engine = extraction.EngineSpec("grid", {**TINY_CNN, "grid": 2}, Runtime())
    return extraction.ExtractionJob(
        scenes, scenes.images_folder, tmp_path / "grid.zarr", engine, batch_size=4, shard_images=5
    )


@pytest.fixture(scope="session")
def store(scenes: Manifest, tmp_path_factory: pytest.TempPathFactory) -> FeatureStore:
    """The same features, extracted once for all tests that only read them."""
    path = tmp_path_factory.mktemp("store") / "region.zarr"
    engine = extraction.EngineSpec("pyramid", {**TINY_CNN, "image_size": 128}, Runtime())
    job = extraction.ExtractionJob(
        scenes, scenes.images_folder, path, engine, batch_size=8, shard_images=10
    )
    extraction.extract(job)
    return FeatureStore(path)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
