"""A small head to train on the scenes."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import tree

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


def job_in(
    folder: Path, scenes: Manifest, store: FeatureStore, epochs: int
) -> training.TrainingJob:
    sizes = SETTINGS.training_of("sample").model_copy(
        update={"epochs": epochs, "decay_epoch": min(epochs, 2)}
    )
    return training.TrainingJob(
        scenes, store, "region", "bigru", "vse2ad", SETTINGS.recipe("vse2ad"), sizes, 0, folder
    )


@pytest.fixture(scope="session")
def trained_head(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A head after one epoch. Change a copy of it."""
    folder = tmp_path_factory.mktemp("trained") / "head"
    training.train(job_in(folder, scenes, store, 1))
    return folder


@pytest.fixture
def job(scenes: Manifest, store: FeatureStore, tmp_path: Path) -> training.TrainingJob:
    return job_in(tmp_path / "head", scenes, store, 3)


@pytest.fixture(scope="session")
def whole(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """The files of the head that `job` makes, trained in one go."""
    folder = tmp_path_factory.mktemp("whole") / "head"
    training.train(job_in(folder, scenes, store, 3))
    return tree(folder)
