"""A short settings file over what ships: what it changes, what it leaves, and where a fault
stands.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings import Recipe, Settings, Training
from pipeline.foundation.settings.judging import Evaluate, Typesetting
from pipeline.foundation.settings.loading import _recipes, _shipped
from pipeline.foundation.settings.schema import Extract, Throughput
from pipeline.run.report.tables import TABLES

PARAMS = Path(__file__).parents[2] / "params.yaml"
SHIPPED = settings.load(PARAMS)
EARLIER = Path(__file__).parent / "earlier_params.yaml"
"""The settings of a project of an earlier version: every section, every key, every recipe in one
file."""


def load(folder: Path, files: dict[str, Any] | None = None, **sections: Any) -> Settings:
    """Settings with these sections beside the shipped ones, and with recipes in files beside
    them.
    """
    tree = yaml.safe_load(PARAMS.read_text(encoding="utf-8")) | sections
    (folder / "params.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    (folder / "manifests" / "recipes").mkdir(parents=True, exist_ok=True)
    for name, recipe in (files or {}).items():
        (folder / "manifests" / "recipes" / f"{name}.yaml").write_text(
            yaml.safe_dump(recipe), encoding="utf-8"
        )
    return settings.load(folder / "params.yaml")


def test_a_settings_file_of_an_earlier_version_means_what_it_meant() -> None:
    shipped = settings.load(
        PARAMS, ["sample.images=600"]
    )  # as many shipped then, and the table of all systems did not
    assert settings.load(EARLIER) == shipped.model_copy(
        update={"tables": [name for name in TABLES if name != "systems"]}
    )


def test_a_file_that_gives_all_takes_nothing_that_ships(tmp_path: Path) -> None:
    """An earlier file without later keys: the defaults hold, whatever ships beside."""
    tree = yaml.safe_load(EARLIER.read_text(encoding="utf-8"))
    assert "steps" not in tree["training"]["light"]
    tree["training"]["light"]["steps"] = 6
    tree["recipes"]["late"] = {
        key: value for key, value in tree["recipes"]["vse_pp"].items() if key != "base"
    } | {"base": "vse2ad"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    found = settings.load(tmp_path / "params.yaml")
    assert (
        found.training["light"].steps,
        found.training["sample"].steps,
        found.training["paper"].steps,
    ) == (6, None, None)
    assert found.recipe("late").architecture.name == "two_tower"


def test_the_users_page_is_short_and_says_what_ships() -> None:
    lines = PARAMS.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 65
    given = yaml.safe_load("\n".join(lines))
    shipped = _shipped()
    for section in set(given) - {"run", "training"}:
        assert given[section] == {key: shipped[section][key] for key in given[section]}
    assert given["training"]["sample"].items() <= SHIPPED.training["sample"].model_dump().items()


@pytest.mark.parametrize("section", [Extract, Evaluate, Throughput, Typesetting])
def test_what_ships_is_the_default_of_what_has_one(section: type[Any]) -> None:
    """Else a whole section of an earlier file would mean another thing today."""
    shipped = getattr(SHIPPED, section.__name__.lower())
    for name, field in section.model_fields.items():
        assert field.is_required() or getattr(shipped, name) == field.get_default(
            call_default_factory=True
        )


@pytest.mark.parametrize("section", SHIPPED.training)
def test_trainings_that_ship_have_the_defaults(section: str) -> None:
    for name, field in Training.model_fields.items():
        assert (
            field.is_required() or getattr(SHIPPED.training[section], name) == field.get_default()
        )


def test_one_key_of_a_recipe_changes_that_recipe_and_those_that_build_on_it(tmp_path: Path) -> None:
    found = load(
        tmp_path, recipes={"vse2ad": {"learning_rate": 0.001, "text_pooling": {"name": "cls"}}}
    )
    changed = {"learning_rate": 0.001, "text_pooling": found.recipe("vse2ad").text_pooling}
    assert found.recipe("vse2ad").text_pooling.name == "cls"
    assert found.recipe("vse2ad") == SHIPPED.recipe("vse2ad").model_copy(update=changed)
    assert found.recipe("vse2ad-nomargin").learning_rate == 0.001
    assert found.recipe("vse_infty") == SHIPPED.recipe("vse_infty")


def test_a_recipe_is_a_file_of_the_project(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        {
            "mine": {"base": "vse2ad", "pooling": {"name": "max"}},
            "vse_pp": {"drop_items": 0.1},
            "late": {"base": "mine", "learning_rate": 0.1},
        },
    )
    mine = found.recipe("mine")
    assert (mine.image_pooling.name, mine.text_pooling.name) == ("max", "max")
    assert found.recipe("vse_pp") == SHIPPED.recipe("vse_pp").model_copy(update={"drop_items": 0.1})
    assert found.recipe("late") == mine.model_copy(
        update={"learning_rate": 0.1}
    )  # in the place of the one that ships
    again = load(
        tmp_path, recipes={"mine": {"base": "mine_too"}, "mine_too": {"base": "vse_infty"}}
    )
    assert again.recipe("mine") == SHIPPED.recipe(
        "vse_infty"
    )  # the settings' own comes before the file


def test_a_schedule_takes_over_that_of_its_data_sets_preset(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        presets={"mine": "paper"},
        training={
            "mine": {"epochs": 2},
            "other": {"epochs": 2},
            "third": {"base": "sample", "dimension": 8},
            "sample": {"batch_size": 32},
        },
    )
    assert found.training_of("mine") == SHIPPED.training["paper"].model_copy(update={"epochs": 2})
    assert found.training_of("other") == SHIPPED.training["light"].model_copy(update={"epochs": 2})
    assert found.training_of("third") == SHIPPED.training["sample"].model_copy(
        update={"dimension": 8, "batch_size": 32}
    )
    assert found.preset_of("coco") == "paper"  # as it ships


def test_a_feature_keeps_its_engine_or_is_another(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        features={
            "light": {"grid": {"image_size": 256}, "region": {"engine": "butd-36"}},
            "mine": {"patch": {"engine": "patch", "weights": "untrained"}},
        },
    )
    grid = found.features["light"]["grid"]
    assert (grid.engine, grid.options) == (
        "grid",
        SHIPPED.features["light"]["grid"].options | {"image_size": 256},
    )
    assert found.features["light"]["region"].options == {}
    assert found.features["light"]["patch"] == SHIPPED.features["light"]["patch"]
    assert set(found.features["mine"]) == {"patch"}


def test_sections_of_comments_alone_are_as_shipped(tmp_path: Path) -> None:
    assert load(tmp_path, recipes=None, extract=None, training=None) == SHIPPED


@pytest.mark.specification
@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ({"base": "vse2ad", "lerning_rate": 1.0}, "recipes.mine.lerning_rate: unknown key"),
        (
            {"base": "vse2ad", "learning_rate": -1.0},
            "recipes.mine.learning_rate: Input should be greater than 0",
        ),
        ({"base": "vse2da"}, "recipes.mine.base: unknown recipe 'vse2da'; did you mean vse2ad?"),
        ({"learning_rate": 0.1}, "recipes.mine.objective: missing"),
        ({"base": "vse2ad", "pooling": {}, "text_pooling": {}}, "recipes.mine: pooling sets"),
        ("nothing", "recipes.mine: "),
    ],
)
def test_a_fault_names_the_file_in_which_it_stands(tmp_path: Path, recipe: Any, said: str) -> None:
    with pytest.raises(
        InputError, match=re.escape(f"{tmp_path}/manifests/recipes/mine.yaml: {said}")
    ):
        load(tmp_path, {"mine": recipe})
    (tmp_path / "manifests" / "recipes" / "mine.yaml").unlink()
    with pytest.raises(InputError, match=re.escape(f"{tmp_path}/params.yaml: {said}")):
        load(tmp_path, recipes={"mine": recipe})


def test_a_fault_in_one_of_two_places_is_told_from_the_other(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"params\.yaml: recipes\.mine\.colour: unknown key"):
        load(tmp_path, {"mine": {"base": "vse2ad"}}, recipes={"mine": {"colour": 1}})
    with pytest.raises(InputError, match=r"mine\.yaml: recipes\.mine\.colour: unknown key"):
        load(
            tmp_path,
            {"mine": {"base": "vse2ad", "colour": 1}},
            recipes={"mine": {"drop_items": 0.1}},
        )
    (tmp_path / "manifests" / "recipes" / "broken.yaml").write_text("a: [")
    with pytest.raises(InputError, match=r"broken\.yaml: not readable as YAML: line"):
        load(tmp_path)


def test_every_recipe_that_ships_builds_on_another_or_is_whole() -> None:
    """So that a project which has the same recipe in its own settings is not changed by one that
    ships later.
    """
    needed = {name for name, field in Recipe.model_fields.items() if field.is_required()}
    for name, recipe in _shipped()["recipes"].items():
        assert "base" in recipe or needed <= recipe.keys(), name
    assert SHIPPED.recipes.keys() == _shipped()["recipes"].keys()
    assert _recipes(PARAMS.parent / "manifests" / "recipes").keys() <= SHIPPED.recipes.keys()
