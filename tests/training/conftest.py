"""A small head to train on the scenes."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.foundation import settings
from pipeline.foundation.manifest import Manifest
from pipeline.make import training
from pipeline.make.features.store import FeatureStore

SMALL = tuple(
    f"training.sample.{change}"
    for change in (
        "dimension=16",
        "word_dimension=8",
        "batch_size=16",
        "epochs=3",
        "decay_epoch=2",
        "minimum_count=1",
    )
)
SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml", SMALL)


@pytest.fixture(scope="session")
def trained_head(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A head after one epoch. Change a copy of it."""
    sizes = SETTINGS.training_of("sample").model_copy(update={"epochs": 1, "decay_epoch": 1})
    folder = tmp_path_factory.mktemp("trained") / "head"
    training.train(
        training.TrainingJob(
            scenes, store, "region", "bigru", "vse2ad", SETTINGS.recipe("vse2ad"), sizes, 0, folder
        )
    )
    return folder


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.TrainingJob:
    return training.TrainingJob(
        scenes,
        store,
        "region",
        "bigru",
        "vse2ad",
        SETTINGS.recipe("vse2ad"),
        SETTINGS.training_of("sample"),
        0,
        tmp_path / "head",
    )
