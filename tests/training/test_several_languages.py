"""Training on captions in several languages: which are taken, how often, and what is recorded of
that.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe
from pipeline.make import training
from pipeline.make.features.store import FeatureStore
from pipeline.make.text.bigru import BiGRUText
from pipeline.make.text.vocabulary import Vocabulary
from pipeline.make.training import course, sampling
from pipeline.make.training.batches import Drawing, TrainingBatches

RECORDED = [
    "image_pooling",
    "text_pooling",
    "objective",
    "optimizer",
    "weight_decay",
    "learning_rate",
    "warmup_epoch",
    "text_multiplier",
    "finetune",
    "frozen_epochs",
    "backbone_multipliers",
    "gradient_clip",
    "drop_items",
    "drop_tokens",
    "same_image_negatives",
]
"""What a recipe held before there were languages."""


@pytest.fixture(scope="module")
def bilingual(scenes: Manifest) -> Manifest:
    """The scenes' captions, an image's last one in another language: each of its words begins with
    an x.
    """
    table = scenes.table.copy()
    last = ~table["image_id"].duplicated(keep="last")
    table["language"] = np.where(last, "fr", "en")
    table.loc[last, "caption"] = [
        " ".join(f"x{word}" for word in caption.split()) for caption in table["caption"][last]
    ]
    return Manifest(table, "sample", scenes.images_folder)


@pytest.fixture
def several(job: training.TrainingJob, bilingual: Manifest) -> training.TrainingJob:
    """Of two epochs, of which the better one on val is selected."""
    shorter = job.training.model_copy(update={"epochs": 2})
    return replace(job, manifest=bilingual, training=shorter)


def changed(job: training.TrainingJob, **changes: object) -> training.TrainingJob:
    return replace(job, recipe=job.recipe.model_copy(update=changes))


def recorded(folder: Path) -> dict[str, object]:
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    recipe: dict[str, object] = record["request"]["recipe"]
    return recipe


def test_a_recipe_without_languages_is_recorded_as_before_there_were_any(
    job: training.TrainingJob, trained_head: Path
) -> None:
    assert sorted(recorded(trained_head)) == sorted(RECORDED)
    again = Recipe.model_validate(recorded(trained_head))
    assert again == job.recipe
    assert (again.languages, again.sampling) == ([], "uniform")


def test_uniform_sampling_takes_every_caption_once_in_the_order_that_it_always_had(
    scenes: Manifest, bilingual: Manifest
) -> None:
    for manifest in (scenes, bilingual):
        split = manifest.split("train")
        found = sampling.order(split, "uniform", np.random.default_rng((0, 3)))
        np.testing.assert_array_equal(
            found, np.random.default_rng((0, 3)).permutation(len(split.captions))
        )


def test_balanced_sampling_takes_as_many_captions_of_each_language(bilingual: Manifest) -> None:
    split = bilingual.split("train")
    assert split.languages is not None
    assert Counter(split.languages.tolist()) == {"en": 64, "fr": 16}
    order = sampling.order(split, "balanced", np.random.default_rng(0))
    assert Counter(split.languages[order].tolist()) == {"en": 40, "fr": 40}
    times = Counter(order.tolist())
    assert {times[row] for row in np.flatnonzero(split.languages == "fr").tolist()} == {2, 3}
    assert {times[row] for row in np.flatnonzero(split.languages == "en").tolist()} == {0, 1}
    odd = split.only(
        np.arange(16) < 1
    )  # five captions: three of each language are the fewest that make an epoch
    assert odd.languages is not None
    assert Counter(
        odd.languages[sampling.order(odd, "balanced", np.random.default_rng(0))].tolist()
    ) == {"en": 3, "fr": 3}
    other = sampling.order(split, "balanced", np.random.default_rng(1))
    assert set(order.tolist()) != set(other.tolist())  # other English captions in the next epoch


def test_balanced_batches_fill_an_epoch(bilingual: Manifest, store: FeatureStore) -> None:
    split = bilingual.split("train")
    text = BiGRUText(Vocabulary.of(split.captions))
    source = TrainingBatches(store, split, text, Drawing(16, 0, order="balanced"), 0.2, 0.2)
    assert [len(batch.images) for batch in source.epoch(0)] == [16] * len(source)
    assert len(source) == 5


def test_captions_of_one_image_are_no_negatives_in_whatever_language(
    bilingual: Manifest, store: FeatureStore
) -> None:
    split = bilingual.split("train").only(np.arange(16) < 2)  # two images, ten captions
    text = BiGRUText(Vocabulary.of(split.captions))
    batch = next(iter(TrainingBatches(store, split, text, Drawing(10, 0), 0, 0).epoch(0)))
    assert batch.images.ids is not None
    assert sorted(batch.images.ids.tolist()) == sorted(split.image_ids.tolist() * 5)


def rsum_on_val(job: training.TrainingJob, language: str) -> float:
    val = job.manifest.split("val").in_languages([language])
    assert isinstance(job.source, FeatureStore)
    head = training.Head.open(job.folder)
    images, captions = head.embed(job.source, val, 8)
    return evaluate(retrieval.Embeddings(images, captions), val.caption_image).rsum


def test_a_head_of_one_language_knows_its_words_and_is_selected_by_its_captions_alone(
    several: training.TrainingJob,
) -> None:
    english = changed(several, languages=["en"])
    state = training.train(english)
    assert state.history[state.best - 1]["RSUM"] == pytest.approx(rsum_on_val(english, "en"))
    assert recorded(english.folder)["languages"] == ["en"]
    words = json.loads((english.folder / "text" / "vocabulary.json").read_text(encoding="utf-8"))
    listed = json.dumps(words)
    assert '"xa"' not in listed
    assert '"a"' in listed
    head, words = (
        training.HeadArtefact.open(english.folder),
        BiGRUText.load(english.folder / "text"),
    )
    assert head.outdated(english.request, english.made_from(words)) is None
    difference = "request", "recipe.languages was ['en'], is nothing"
    assert head.outdated(several.request, several.made_from(words)) == difference


def test_val_is_measured_by_language_and_the_mean_selects(several: training.TrainingJob) -> None:
    state = training.train(changed(several, sampling="balanced"))
    sums = [rsum_on_val(several, language) for language in ("en", "fr")]
    assert state.history[state.best - 1]["RSUM"] == pytest.approx(np.mean(sums))


def test_what_is_measured_on_val_is_the_mean_over_languages(
    bilingual: Manifest, rng: np.random.Generator
) -> None:
    val = bilingual.split("val")
    assert val.languages is not None
    scores = rng.normal(size=(len(val.image_ids), len(val.captions))).astype(np.float32)
    each = [
        evaluate(scores[:, val.languages == name], val.caption_image[val.languages == name]).rsum
        for name in ("en", "fr")
    ]
    assert each[0] != each[1]
    assert course.of_scores(scores, val)["RSUM"] == pytest.approx(np.mean(each))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"languages": ["de"]},
            "split train has no captions in the language 'de'; there are: en, fr",
        ),
        (
            {"languages": ["en"], "sampling": "balanced"},
            "several languages, there are: en; set the recipe's sampling",
        ),
    ],
)
def test_what_cannot_be_sampled_is_refused(
    several: training.TrainingJob, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        training.train(changed(several, **changes))


def test_a_manifest_without_languages_has_none_to_choose(job: training.TrainingJob) -> None:
    with pytest.raises(InputError, match="its manifest has no column language"):
        training.train(changed(job, languages=["en"]))
    with pytest.raises(InputError, match="none that the manifest names"):
        training.train(changed(job, sampling="balanced"))
    assert not Path(job.folder).exists()
