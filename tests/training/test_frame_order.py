"""A pooling that reads frames one after the other learns which way a shot moves; a mean cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pipeline import extraction, manifest, settings, training
from pipeline.extractors import Runtime
from pipeline.manifest import Manifest
from pipeline.sample import render_shots
from pipeline.sample.movement import MOVEMENTS, choose
from pipeline.store import FeatureStore

CHANGES = [f"training.sample_video.{change}" for change in (
    "dimension=64", "word_dimension=32", "batch_size=48", "epochs=1", "decay_epoch=1", "minimum_count=1")]
CHANGES += [f"recipes.{recipe}.{change}" for recipe in ("vse_pp-video", "vse_pp-video_seq2seq")
            for change in ("learning_rate=0.0003", "dropout=0")]  # few clips and steps
PARAMS = Path(__file__).parents[2] / "params.yaml"
ENGINE = {"network": "tf_efficientnet_lite0", "weights": "efficientnet-lite0", "image_size": 64, "frames": 6}


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, FeatureStore]:
    folder = render_shots(tmp_path_factory.mktemp("shots") / "sample_video", clips=72, size=64).parent
    table = manifest.build("sample_video", folder / "videos", folder / "captions.csv", kind="video")
    engine = extraction.EngineSpec.of("frame", ENGINE, Runtime())
    extraction.extract(extraction.ExtractionJob(table, table.images_folder, folder / "frame.zarr", engine, 16, 72))
    return table, FeatureStore(folder / "frame.zarr").require(table)


def right_ways(head: training.Head, table: Manifest, store: FeatureStore, shuffled: bool) -> float:
    """How often a shot is nearer to a caption of its movement than to the same of the opposite movement."""
    part, rng = table.split("train"), np.random.default_rng(0)
    items, counts = store.read(part.store_rows)
    if shuffled:
        items = np.stack([rng.permutation(clip) for clip in items])
    with torch.inference_mode():
        clips = head.model.embed_images(torch.from_numpy(items).float(), torch.from_numpy(counts)).numpy()
    found = []
    for caption, clip in zip(part.captions, part.caption_image.tolist(), strict=True):
        movement = MOVEMENTS[choose(0, int(part.image_ids[clip]))]
        for phrase, other in zip(movement.phrases, MOVEMENTS[movement.opposite].phrases, strict=True):
            if phrase in caption:
                both = training.embed_captions(head.model, [caption, caption.replace(phrase, other)], head.text, 2)
                found.append(clips[clip] @ both[0] > clips[clip] @ both[1])
    assert len(found) == 2 * len(part.image_ids)
    return float(np.mean(found))


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "steps", "reads_order"), [
    ("vse_pp-video_seq2seq", 800, True), ("vse_pp-video", 200, False)])
def test_the_order_of_frames(recipe: str, steps: int, reads_order: bool, shots: tuple[Manifest, FeatureStore],
                             tmp_path: Path) -> None:
    table, store = shots
    chosen = settings.load(PARAMS, [*CHANGES, f"training.sample_video.steps={steps}"])
    training.train(training.TrainingJob(table, store, "frame", "bigru", recipe, chosen.recipe(recipe),
                                        chosen.training_of("sample_video"), 0, tmp_path / "head"))
    head = training.load_head(tmp_path / "head", table, store)
    in_order, shuffled = (right_ways(head, table, store, way) for way in (False, True))
    if reads_order:
        assert in_order > shuffled + 0.1
    else:
        assert in_order == pytest.approx(shuffled, abs=1e-9)
