"""Batches: every caption once an epoch with its own image, the same ones for the same seed, epoch
and step.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from pipeline.foundation.manifest import Manifest
from pipeline.make.features.store import FeatureStore
from pipeline.make.features.store.dropping import drop
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.tokens import encode
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training.batches import Drawing, TrainingBatches


def batches(scenes: Manifest, store: FeatureStore, seed: int = 0) -> TrainingBatches:
    split = scenes.split("train")
    text = BiGRUText(Vocabulary.of(split.captions))
    return TrainingBatches(store, split, text, Drawing(16, seed), 0.2, 0.2)


@pytest.mark.specification
def test_an_epoch_shows_every_caption_once_with_its_own_image(
    scenes: Manifest, store: FeatureStore
) -> None:
    source = batches(scenes, store)
    source.drop_items = source.drop_tokens = 0
    seen: Counter[tuple[int, ...]] = Counter()
    expected: Counter[tuple[int, ...]] = Counter()
    split = scenes.split("train")
    for caption, image in zip(split.captions, split.image_ids[split.caption_image], strict=True):
        expected[int(image), *encode(source.text, [caption])[0]] += 1
    for batch in list(source.epoch(0)):  # none is overwritten by a later one
        sides = batch.captions.values, batch.captions.counts, batch.images.ids, batch.images.values
        for tokens, length, image, items in zip(*sides, strict=True):
            seen[int(image), *tokens[:length].tolist()] += 1
            row = int(split.store_rows[split.image_ids.tolist().index(int(image))])
            assert torch.equal(items, torch.from_numpy(store.read(np.array([row]))[0][0]))
    assert seen == expected
    assert sum(seen.values()) == 80


@pytest.mark.specification
def test_batches_depend_on_seed_epoch_and_step_alone(scenes: Manifest, store: FeatureStore) -> None:
    def all_of(seed: int, epoch: int) -> list[torch.Tensor | None]:
        return [batch.captions.ids for batch in batches(scenes, store, seed).epoch(epoch)]

    one = all_of(0, 1)
    assert all(torch.equal(a, b) for a, b in zip(one, all_of(0, 1), strict=True))
    for other in (all_of(0, 2), all_of(1, 1)):
        assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_what_is_left_out_of_a_batch_depends_on_seed_epoch_and_step(
    scenes: Manifest, store: FeatureStore
) -> None:
    """Of the same captions, so that it is not their order that differs."""

    def counts(seed: int, epoch: int, step: int) -> list[int]:
        batch = batches(scenes, store, seed).batch(epoch, step, np.arange(16))
        return [*batch.images.counts.tolist(), *batch.captions.counts.tolist()]

    found = [counts(*key) for key in ((0, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))]
    assert counts(0, 0, 0) == found[0]
    assert len(set(map(tuple, found))) == 4


def test_what_the_reading_thread_raises_is_raised(
    scenes: Manifest, store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = batches(scenes, store)
    monkeypatch.setattr(store, "read", lambda rows, out: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(source.epoch(0))


def test_dropped_items_leave_the_others_in_order() -> None:
    items = np.arange(2 * 50).reshape(2, 50, 1).astype(np.float16) + 1
    items[1, 30:] = 0
    chosen = np.random.default_rng(0).random((2, 50)) < 0.2
    out, counts = drop(items, np.array([50, 30]), chosen)
    for row, (kept, count) in enumerate(zip(out[..., 0], counts, strict=True)):
        assert (np.diff(kept[:count]) > 0).all()
        assert set(kept[:count]) <= set(items[row, :, 0])
        assert (kept[count:] == 0).all()
    assert 30 < counts[0] < 50
    assert out.shape[1] == counts.max()
    assert drop(items, np.array([50, 30]), np.zeros((2, 50), bool))[1].tolist() == [50, 30]
    first, counts = drop(items, np.array([50, 30]), np.ones((2, 50), bool))
    assert counts.tolist() == [1, 1]
    assert first.tolist() == items[:, :1].tolist()


def test_each_caption_is_beside_its_own_image(scenes: Manifest, store: FeatureStore) -> None:
    batch, split = next(iter(batches(scenes, store).epoch(0))), scenes.split("train")
    assert batch.images.ids is not None
    assert batch.captions.ids is not None
    owner = dict(
        zip(split.caption_ids.tolist(), split.image_ids[split.caption_image].tolist(), strict=True)
    )
    assert [owner[caption] for caption in batch.captions.ids.tolist()] == batch.images.ids.tolist()
    assert len(batch.images.ids.unique()) < 16  # 16 captions: some image comes twice


def test_the_first_item_stays_where_it_is_to_be_kept(scenes: Manifest, store: FeatureStore) -> None:
    source = batches(scenes, store)
    source.drop_items = 0.95
    source.keep_first = True
    split = scenes.split("train")
    images = np.arange(len(split.image_ids))
    side = source.images(images, np.random.default_rng(0))
    stored, counts = store.read(split.store_rows)
    assert torch.equal(side.values[:, 0], torch.from_numpy(stored[:, 0]))
    assert int(side.counts.max()) < counts.min()
