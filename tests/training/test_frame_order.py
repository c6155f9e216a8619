"""A pooling that reads frames one after the other learns which way a shot moves; a mean cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from new_stores import prepare

from pipeline.foundation import manifest, settings
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.sample import render_shots
from pipeline.foundation.manifest.sample.shots import MOVEMENTS, choose
from pipeline.make import training
from pipeline.make.features.store import FeatureStore, Shard, StoreLayout, write_shard
from pipeline.make.heads.sides import Side

FRAMES = 6
CHANGES = [
    f"training.sample_video.{change}"
    for change in (
        "dimension=32",
        "word_dimension=16",
        "batch_size=24",
        "epochs=1",
        "decay_epoch=1",
        "minimum_count=1",
        "steps=60",
    )
]
CHANGES += [
    f"recipes.{recipe}.{change}"
    for recipe in ("vse_pp-video", "vse_pp-video_seq2seq")  # few clips and steps
    for change in ("learning_rate=0.002", "dropout=0", "objective.all_negatives_epochs=1")
]
PARAMS = Path(__file__).parents[2] / "params.yaml"


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Manifest, FeatureStore]:
    """Rendered shots; a frame's features are the window that is seen in it, so that order alone
    tells which way.
    """
    folder = render_shots(
        tmp_path_factory.mktemp("shots") / "sample_video", clips=36, size=32
    ).parent
    table = manifest.build(
        "sample_video", folder / "videos", folder / "captions.csv", manifest.Reading(kind="video")
    )
    ids = table.images["image_id"].to_numpy()
    path, layout = (
        folder / "frame.zarr",
        StoreLayout(len(ids), FRAMES, 4, shard_rows=len(ids), kind="clips"),
    )
    made = {"engine": "windows", "recipe": "windows", "trained": True, "ids": table.images_digest}
    [number] = prepare(path, layout, made, ids, table.images["bytes"].to_numpy())
    shard = Shard.empty(layout, number)
    for row, image in enumerate(ids.tolist()):
        movement = MOVEMENTS[choose(0, image)]
        seen = np.array([movement.at(time) for time in np.linspace(0, 1, FRAMES)], np.float32)
        shard.fill(row, seen, (32, 32), {}, int(table.images["bytes"].iloc[row]))
    write_shard(path, layout, shard, digest(made))
    return table, FeatureStore(path).require(table)


def right_ways(head: training.Head, table: Manifest, store: FeatureStore, shuffled: bool) -> float:
    """How often a shot is nearer to a caption of its movement than to the same of the opposite
    movement.
    """
    part, rng = table.split("train"), np.random.default_rng(0)
    items, counts = store.read(part.store_rows)
    if shuffled:
        items = np.stack([rng.permutation(clip) for clip in items])
    with torch.inference_mode():
        clips = head.model.embed_images(
            Side(torch.from_numpy(items).float(), torch.from_numpy(counts))
        ).numpy()
    captions_in_order = []
    captions_reversed = []
    of_clip = []
    for caption, clip in zip(part.captions, part.caption_image.tolist(), strict=True):
        movement = MOVEMENTS[choose(0, int(part.image_ids[clip]))]
        for phrase, other in zip(
            movement.phrases, MOVEMENTS[movement.opposite].phrases, strict=True
        ):
            if phrase in caption:
                captions_in_order.append(caption)
                captions_reversed.append(caption.replace(phrase, other))
                of_clip.append(clip)
    assert len(captions_in_order) == 2 * len(part.image_ids)
    in_order = head.embed_captions(captions_in_order, 64)
    nearer = in_order - head.embed_captions(captions_reversed, 64)
    return float(((clips[of_clip] * nearer).sum(axis=1) > 0).mean())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "reads_order"), [("vse_pp-video_seq2seq", True), ("vse_pp-video", False)]
)
def test_the_order_of_frames(
    recipe: str, reads_order: bool, shots: tuple[Manifest, FeatureStore], tmp_path: Path
) -> None:
    table, store = shots
    chosen = settings.load(
        PARAMS, CHANGES if reads_order else [*CHANGES, "training.sample_video.steps=2"]
    )
    training.train(
        training.TrainingJob(
            table,
            store,
            "frame",
            "bigru",
            recipe,
            chosen.recipe(recipe),
            chosen.training_of("sample_video"),
            0,
            tmp_path / "head",
        )
    )
    head = training.Head.open(tmp_path / "head")
    in_order, shuffled = (right_ways(head, table, store, way) for way in (False, True))
    if reads_order:
        assert in_order > shuffled + 0.2
    else:
        assert in_order == pytest.approx(shuffled, abs=1e-9)
