"""A small head to train on the scenes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline import settings, training
from pipeline.features.store import FeatureStore
from pipeline.manifest import Manifest

SMALL = tuple(f"training.sample.{change}" for change in (
    "dimension=16", "word_dimension=8", "batch_size=16", "epochs=3", "decay_epoch=2", "minimum_count=1"))
SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml", SMALL)


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.TrainingJob:
    return training.TrainingJob(scenes, store, "region", "bigru", "vse2ad", SETTINGS.recipe("vse2ad"),
                        SETTINGS.training_of("sample"), 0, tmp_path / "head")
