"""Cross-encoders as scorers of pairs: the network's own scores in any order, refusals in one
line.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_bert import tiny_bert

from pipeline.foundation import settings
from pipeline.foundation.compute import half
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems import reranking
from pipeline.judge.systems.requests import RerankRequest
from pipeline.judge.systems.reranking.base import PairSource
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.heads.cross import CrossEncoder
from pipeline.make.heads.sides import Side
from pipeline.make.text.tokens import encode
from pipeline.make.training import scoring
from pipeline.make.training.pair_scorers import CrossScorer
from pipeline.make.training.source import stored

SETTINGS = settings.load(
    Path(__file__).parents[2] / "params.yaml",
    ("training.sample.batch_size=16", "training.sample.epochs=1", "training.sample.decay_epoch=1"),
)


@pytest.fixture(scope="module")
def project(
    scenes: Manifest, store: FeatureStore, tmp_path_factory: pytest.TempPathFactory
) -> PairSource:
    """The scenes with a head that scores pairs, `pairs`, and one that embeds, `vectors`."""
    paths = Paths(tmp_path_factory.mktemp("project"))
    scenes.save(paths.manifest("sample"))
    shutil.copytree(store.path, paths.features("sample", "region"))
    bert = tiny_bert(paths.root / "bert")
    for recipe, name in (("ce", "pairs"), ("emb", "vectors")):
        named = SETTINGS.recipe(recipe)
        source = stored(paths.features("sample", "region"), scenes, named)
        training.train(
            training.TrainingJob(
                scenes,
                source,
                "region",
                "bert",
                recipe,
                named,
                SETTINGS.training_of("sample").model_copy(update={"bert": str(bert)}),
                0,
                paths.head("sample", name),
            )
        )
    return PairSource(paths, "sample", "sample", "sample")


@pytest.fixture
def pairs(scenes: Manifest, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return (
        rng.choice(scenes.images["image_id"].to_numpy(), 400),
        rng.choice(scenes.table["caption_id"].to_numpy(), 400),
    )


@pytest.fixture(autouse=True)
def _float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(half, "fastest", lambda device: "fp32")


def test_a_heads_name_finds_its_scorer(project: PairSource) -> None:
    assert reranking.resolve("pairs", project) == ("cross", "pairs")
    scorer = reranking.build("cross", "pairs", project)
    assert scorer.gives_logits
    said = scorer.made_from
    assert {
        "kind",
        "name",
        "checkpoint",
        "store",
        "content",
        "images",
        "captions",
        "precision",
    } <= set(said)
    assert str(project.paths.root) not in str(said)
    made_by = scorer.versions  # type: ignore[attr-defined]
    request = RerankRequest(
        name="new",
        scorer=("cross", "pairs"),
        protocol=("all", 1),
        k=2,
        combine="scorer",
        weight=0,
        made_by=made_by,
    )
    assert request.versions().keys() >= {"training", "heads/cross", "scorers/cross", "reranking"}
    with pytest.raises(InputError, match="vectors: was not trained to score pairs"):
        reranking.build("cross", "vectors", project)


def test_a_cosine_is_no_logit(project: PairSource, pairs: tuple[np.ndarray, np.ndarray]) -> None:
    scorer = reranking.build("cross", "pairs", project)
    assert isinstance(scorer, CrossScorer)
    assert isinstance(scorer.head.model, CrossEncoder)
    scorer.head.model.pair_score = "cosine"
    assert not scorer.gives_logits
    scores = scorer.score(*pairs)
    assert np.abs(scores).max() <= 1 + 1e-6
    assert scores.std() > 0


def test_scores_are_the_networks_own_one_by_one_and_in_any_order(
    project: PairSource,
    scenes: Manifest,
    pairs: tuple[np.ndarray, np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scoring, "BLOCK", 7)
    scorer = CrossScorer("pairs", project)
    reported: list[int] = []
    found = scorer.score(*pairs, reported.append)
    assert found.dtype == np.float32
    assert reported == sorted(reported)
    assert reported[-1] == 400
    again = np.random.default_rng(1).permutation(400)
    np.testing.assert_allclose(
        scorer.score(pairs[0][again], pairs[1][again]), found[again], atol=1e-5
    )
    model, opened = scorer.head.model, scorer
    assert isinstance(model, CrossEncoder)
    for row in range(0, 400, 50):
        image = np.flatnonzero(scenes.images["image_id"] == pairs[0][row])
        caption = scenes.table.loc[scenes.table["caption_id"] == pairs[1][row], "caption"].item()
        tokens = torch.tensor(encode(opened.head.text, [caption]))
        items, counts = opened.store.read(image)
        first = torch.zeros(1, dtype=torch.int64)
        with torch.inference_mode():
            logits = model(
                Side(tokens, torch.tensor([tokens.shape[1]])), Side.of(items, counts), first, first
            )[0]
        assert float(logits[1] - logits[0]) == pytest.approx(found[row], abs=1e-5)


def test_half_precision_is_said_and_stays_near(
    project: PairSource, pairs: tuple[np.ndarray, np.ndarray]
) -> None:
    full, short = CrossScorer("pairs", project), CrossScorer("pairs", project)
    short.precision = "bf16"
    assert short.made_from["precision"] == "bf16"
    np.testing.assert_allclose(short.score(*pairs), full.score(*pairs), atol=0.05)


def test_another_data_set_is_scored_with_like_features(
    project: PairSource, scenes: Manifest, store: FeatureStore, pairs: tuple[np.ndarray, np.ndarray]
) -> None:
    Manifest(scenes.table, "other", scenes.images_folder).save(project.paths.manifest("other"))
    shutil.copytree(store.path, project.paths.features("other", "region"))
    expected = CrossScorer("pairs", project).score(*pairs)
    other = CrossScorer("pairs", replace(project, images="other", captions="other"))
    np.testing.assert_allclose(other.score(*pairs), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("image", "caption", "said"),
    [
        (10**6, None, "the manifest of sample has no image 1000000"),
        (None, -1, "the manifest of sample has no caption -1"),
    ],
)
def test_unknown_ids_are_refused(
    project: PairSource,
    pairs: tuple[np.ndarray, np.ndarray],
    image: int | None,
    caption: int | None,
    said: str,
) -> None:
    scorer, (images, captions) = CrossScorer("pairs", project), pairs
    images[3], captions[3] = (
        images[3] if image is None else image,
        captions[3] if caption is None else caption,
    )
    with pytest.raises(InputError, match=said):
        scorer.score(images, captions)


@pytest.fixture
def failed(project: PairSource, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def fail(row: int) -> None:
        done: Any = FeatureStore.done.fget  # type: ignore[attr-defined]
        monkeypatch.setattr(
            FeatureStore, "done", property(lambda self: done(self) & (self.ids != row))
        )

    return fail


def test_an_image_without_features_is_refused(
    project: PairSource, pairs: tuple[np.ndarray, np.ndarray], failed: Callable[[int], None]
) -> None:
    scorer = CrossScorer("pairs", project)
    failed(int(pairs[0][0]))
    with pytest.raises(InputError, match=f"image {pairs[0][0]} failed in extraction"):
        scorer.score(*pairs)
