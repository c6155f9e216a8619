"""Recipes that build on another, the names of varied ones, and the papers' recipes as they ship."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.foundation import settings
from pipeline.foundation.files.parsing import from_yaml
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import loading
from pipeline.foundation.settings.recipe import Variation, named
from pipeline.judge.tables import published
from pipeline.make.heads import pooling
from pipeline.run.report.tables.ablations import ABLATIONS

PARAMS = Path(__file__).parents[2] / "params.yaml"
SHIPPED = settings.load(PARAMS).recipes


@pytest.mark.specification
def test_a_recipe_takes_over_its_base_but_for_the_keys_it_gives() -> None:
    whole = {"pooling": {"name": "gpo", "width": 8}, "rate": 1, "clip": 2}
    found = loading.resolve(
        loading.both_sides(
            {
                "c": {"base": "b", "text_pooling": {"name": "cls"}},
                "b": {"base": "a", "pooling": {"name": "max"}, "rate": 3},
                "a": whole,
            }
        )
    )
    assert found["a"] == {
        "image_pooling": whole["pooling"],
        "text_pooling": whole["pooling"],
        "rate": 1,
        "clip": 2,
    }
    assert found["b"] == {
        "image_pooling": {"name": "max"},
        "text_pooling": {"name": "max"},
        "rate": 3,
        "clip": 2,
    }
    assert found["c"] == {
        "image_pooling": {"name": "max"},
        "text_pooling": {"name": "cls"},
        "rate": 3,
        "clip": 2,
    }


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"a": {"base": "b"}}, "recipes.a.base: unknown recipe 'b'; there are: a"),
        ({"a": {"base": "a"}}, "a builds on a"),
        ({"a": {"base": "b"}, "b": {"base": "c"}, "c": {"base": "b"}}, "b builds on c builds on b"),
        ({"a": {"pooling": {}, "text_pooling": {}}}, "recipes.a: pooling sets"),
    ],
)
def test_recipes_without_sense_are_refused(section: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        loading.resolve(loading.both_sides(section))


def test_a_change_to_a_recipe_is_to_that_alone() -> None:
    changed = settings.load(
        PARAMS, ("recipes.vse2ad.learning_rate=0.1", "recipes.vse2ad-w25.text_pooling.balance=0.3")
    )
    assert changed.recipe("vse2ad").learning_rate == 0.1
    assert changed.recipe("vse2ad-gpo") == SHIPPED["vse2ad-gpo"]
    assert changed.recipe("vse2ad-w25").text_pooling.options == {"balance": 0.3}
    assert changed.recipe("vse2ad-w25").image_pooling.options == {"balance": 0.25}


def test_every_row_of_vse2ads_tables_has_its_recipe() -> None:
    of_paper = {name: ablation for name, ablation in ABLATIONS.items() if name.startswith("vse2ad")}
    assert {recipe for ablation in of_paper.values() for recipe in ablation.recipes} <= set(SHIPPED)
    rows = [*published.load("vse2ad_table4"), *published.load("vse2ad_tableA1")]
    assert {(row["aggregator"],) for row in rows} <= {
        ABLATIONS["vse2ad_table4"].labels(recipe) for recipe in SHIPPED
    }


@pytest.mark.specification
@pytest.mark.parametrize(
    ("recipe", "millions"),
    [
        ("vse_pp", 0),
        ("vse_pp-seq2seq", 6.3),
        ("vse_pp-selfattn", 3.2),
        ("vse_pp-gcn_mean", 4.2),
        ("vse_pp-gcn_seq2seq", 23.1),
        ("vse_pp-max", 0),
        ("vse_pp-kmax20", 0),
    ],
)
def test_aggregators_have_the_parameters_that_vse_infty_table_1_gives(
    recipe: str, millions: float
) -> None:
    chosen = SHIPPED[recipe].image_pooling
    built = pooling.build(chosen.name, 1024, **chosen.options)
    assert sum(weight.numel() for weight in built.parameters()) / 1e6 == pytest.approx(
        millions, abs=0.06
    )
    assert SHIPPED[recipe].text_pooling == SHIPPED["vse_pp"].text_pooling


def differences(recipe: str, base: str) -> set[str]:
    one, other = SHIPPED[recipe].model_dump(), SHIPPED[base].model_dump()
    return {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}


@pytest.mark.specification
def test_an_ablation_differs_in_one_thing() -> None:
    # The last four: how a cross-encoder learns pairs, by which tasks, a schedule, and the form of
    # late interaction.
    one_thing = (
        {"image_pooling", "text_pooling"},
        {"objective"},
        {"drop_items", "drop_tokens"},
        {"languages"},
        {"pairs", "start", "learning_rate"},
        {"pairs", "tasks"},
        {"objective", "warmup_epoch", "weight_decay"},
        {"architecture"},
    )
    for recipe in SHIPPED:
        if "-" not in recipe or "-video" in recipe:
            continue
        found = differences(recipe, recipe.partition("-")[0])
        assert found, recipe
        assert any(found <= keys for keys in one_thing), (recipe, found)


def test_recipes_for_clips_differ_from_each_other_as_those_for_photographs() -> None:
    """Table 4: all were trained by HGR's code, in the same way."""
    assert differences("vse_infty-video", "vse_pp-video") == {"image_pooling", "text_pooling"}
    assert differences("vse_pp-video_seq2seq", "vse_pp-video") == {"image_pooling"}
    video, how = SHIPPED["vse_infty-video"], settings.load(PARAMS).training["video"]
    assert (
        video.learning_rate,
        video.objective.options.get("margin", 0.2),
        how.dimension,
        how.batch_size,
        how.epochs,
        how.decay_epoch,
    ) == (1e-4, 0.2, 1024, 128, 35, 25)


def test_no_two_recipes_are_one() -> None:
    dumped = [str(recipe.model_dump()) for recipe in SHIPPED.values()]
    assert len(set(dumped)) == len(dumped)


@pytest.mark.parametrize(
    ("varied", "name", "differs"),
    [
        (Variation(pooling="max"), "vse2ad-max", {"image_pooling", "text_pooling"}),
        (Variation(image_pooling="max"), "vse2ad_image_max", {"image_pooling"}),
        (
            Variation(text_pooling="cls", objective="infonce"),
            "vse2ad_text_cls_infonce",
            {"text_pooling", "objective"},
        ),
        (
            Variation(pooling="max", image_pooling="gpo"),
            "vse2ad_max_image_gpo",
            {"image_pooling", "text_pooling"},
        ),
        (Variation(objective="adopt"), "vse2ad-nomargin", {"objective"}),
        (Variation(pooling="gpo"), "vse2ad-gpo", {"image_pooling", "text_pooling"}),
        (Variation(pooling="adpool"), "vse2ad", set()),
        (Variation(noise=0.2), "vse2ad-noise20", {"noise"}),
        (Variation(objective="crcl", noise=0.125), "vse2ad_crcl-noise12_5", {"objective", "noise"}),
        (Variation(finetune=True), "vse2ad_finetuned", {"finetune"}),
        (
            Variation(pooling="max", finetune=True),
            "vse2ad_max_finetuned",
            {"image_pooling", "text_pooling", "finetune"},
        ),
        (Variation(), "vse2ad", set()),
    ],
)
def test_a_varied_recipe_has_a_name_of_its_own(
    varied: Variation, name: str, differs: set[str]
) -> None:
    base = SHIPPED["vse2ad"]
    recipe = varied.of(base)
    assert named(recipe, None, varied.name("vse2ad"), SHIPPED, SHIPPED) == name
    one, other = recipe.model_dump(), base.model_dump()
    assert {key for key in one if one[key] != other[key]} == differs


def test_languages_stand_at_the_end_of_a_name_in_one_order() -> None:
    varied = Variation(languages=("en", "de"))
    recipe = varied.of(SHIPPED["vse2ad"])
    assert recipe.languages == ["de", "en"]
    assert varied.name("vse2ad") == "vse2ad-de-en"
    assert Variation(pooling="max", languages=("en",)).name("vse2ad") == "vse2ad_max-en"
    english = Variation(languages=("en",))
    assert (
        named(english.of(SHIPPED["vse_infty"]), None, english.name("vse_infty"), SHIPPED, SHIPPED)
        == "vse_infty-en"
    )


def test_a_varied_recipe_never_takes_anothers_name() -> None:
    varied = Variation(pooling="gcn")  # the recipe vse2ad-gcn is not this one
    with pytest.raises(InputError, match=r"settings' 'vse2ad-gcn'.*--name"):
        named(varied.of(SHIPPED["vse2ad"]), None, varied.name("vse2ad"), SHIPPED, SHIPPED)
    changed = {name: recipe for name, recipe in SHIPPED.items() if name != "vse2ad"}
    with pytest.raises(InputError, match="settings' 'vse2ad'"):
        named(
            SHIPPED["vse2ad"].model_copy(update={"learning_rate": 0.1}),
            None,
            "vse2ad",
            changed,
            SHIPPED,
        )


def test_a_change_to_pooling_is_to_both_sides() -> None:
    changed = settings.load(PARAMS, ("recipes.vse2ad.pooling.name=gpo",)).recipe("vse2ad")
    assert (changed.image_pooling.name, changed.text_pooling.name) == ("gpo", "gpo")
    with pytest.raises(InputError, match=r"recipes\.vse2ad\.image_polling"):
        settings.load(PARAMS, ("recipes.vse2ad.image_polling.name=gpo",))


def test_a_recipe_may_be_called_by_a_number_and_bases_come_to_an_end() -> None:
    assert loading.resolve(from_yaml("{7: {a: 1}, 8: {base: 7}}")) == {"7": {"a": 1}, "8": {"a": 1}}
    chain = {"r0": {"a": 1}} | {
        f"r{number}": {"base": f"r{number - 1}"} for number in range(1, 2000)
    }
    with pytest.raises(InputError, match="leads over more than 50 recipes"):
        loading.resolve(dict(reversed(chain.items())))


def test_a_preset_of_a_data_sets_own_name_is_no_base_of_its_training() -> None:
    tree = {
        "recipes": {},
        "finetuning": {},
        "training": {"mine": {"epochs": 3}, "other": {"epochs": 4}},
        "presets": {"mine": "mine", "other": "mine"},
    }
    complete = loading._complete(tree)
    assert complete["training"]["mine"] == {"epochs": 3}
    assert complete["training"]["other"] == {"epochs": 4}


@pytest.mark.parametrize("part", ["image_pooling=kmax", "image_pooling.name=kmax"])
def test_a_part_and_its_options_may_be_given_in_any_order(part: str) -> None:
    changes = (f"recipes.vse2ad.{part}", "recipes.vse2ad.image_pooling.k=3")
    for given in (changes, changes[::-1]):
        chosen = settings.load(PARAMS, given).recipes["vse2ad"].image_pooling
        assert chosen.name == "kmax"
        assert dict(chosen)["k"] == 3
