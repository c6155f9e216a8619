"""Systems go by names that people say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import invented_facts
import pytest

from pipeline.foundation import settings
from pipeline.judge.systems.scores.made import Fusion
from pipeline.run.report import names


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        ("vse2ad", "VSE+2AD"),
        ("vse2ad_finetuned", "VSE+2AD, fine-tuned"),
        ("vse_infty-max_max", "VSE∞, max–max pooling"),
        ("vse_infty-mean_gpo", "VSE∞, mean–GPO pooling"),
        ("vse_infty-attention", "VSE∞, attention pooling"),
        ("vse_pp-kmax20", "VSE++, 20-max pooling"),
        ("vse2ad-noadopt", "VSE+2AD, hard triplet loss"),
        ("vse2ad-my_own", "vse2ad-my_own"),
        ("my_own", "my_own"),
        ("vse2ad-max_mean", "vse2ad-max_mean"),
        ("mine_finetuned", "mine_finetuned"),
        ("vse_infty-en-x", "vse_infty-en-x"),
    ],
)
def test_a_recipe_is_named_by_its_method_and_what_it_varies(recipe: str, name: str) -> None:
    assert names.method(recipe) == name


@pytest.mark.parametrize(
    ("recipe", "settings", "varies"),
    [
        ("vse_infty-de", {"languages": ["de"]}, True),
        ("vse_infty-de", {"languages": []}, False),
        ("vse_infty-noise20", {"noise": {"share": 0.2}}, True),
        ("vse_infty-noise20", {}, False),
        ("vse2ad-noadopt", {}, True),
        ("vse2ad", {}, False),
        ("mine", {"languages": ["de"]}, False),
    ],
)
def test_a_variation_of_training_is_what_its_settings_say(
    recipe: str, settings: dict[str, Any], varies: bool
) -> None:
    assert names.is_variant(recipe, settings) == varies


def test_every_shipped_variant_has_a_name_of_its_own() -> None:
    recipes = settings.load(Path(__file__).parents[2] / "params.yaml").recipes
    said = [names.method(recipe) for recipe in recipes]
    assert len(set(said)) == len(said)
    assert not [name for name in said if "_" in name]


def test_a_system_names_its_parts() -> None:
    member = {"head": "x", "feature": "region", "features": "butd-36"}
    head = invented_facts.of_head(recipe="vse_infty", seed=2, member=member)
    assert names.title(head) == "VSE∞, Region, BiGRU, seed 2"
    three = invented_facts.ensemble(
        "x-R-s7",
        recipe="vse_infty",
        seed=2,
        features={"patch": "vit", "region": "butd-36", "grid": "wsl"},
        fusion=Fusion(method="mean", weights=[1.0], members=["x"], features=["region"]),
    )
    assert names.title(three) == "VSE∞, Region+Grid+Patch, BiGRU, seed 2"
    rescored = invented_facts.rescored(head, "csls", k=10)
    assert names.title(rescored) == "VSE∞, Region, BiGRU, seed 2, csls (bank train, k 10)"


@pytest.mark.parametrize(
    ("encoder", "name"),
    [
        ({}, "mine, zero-shot"),
        ({"title": "CLIP ViT-B/32"}, "CLIP ViT-B/32, zero-shot"),
        ({"trained_on": "pairs of others"}, "mine, zero-shot"),
        ({"tuned_on": "flickr8k"}, "mine, fine-tuned on Flickr8k"),
        (
            {"tuned_on": "flickr8k", "usage": {"prompt": "a {}"}},
            "mine, fine-tuned on Flickr8k, prompt “a {}”",
        ),
    ],
)
def test_a_dual_encoder_that_was_trained_on_is_not_called_zero_shot(
    encoder: dict[str, Any], name: str
) -> None:
    assert names.dual_encoder("mine", encoder) == name


def test_a_network_in_lower_precision_is_not_the_papers() -> None:
    image = {"name": "butd-36", "engine": "butd-36", "weights": "butd-36"}
    assert names.network("region", "butd-36", image) == "BUTD"
    assert names.network("region", "butd-36", image | {"precision": "bf16"}) == names.OTHER
