"""The settings file: what ships is valid, and what does not belong in it is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from pipeline import settings
from pipeline.errors import InputError

PARAMS = Path(__file__).parents[2] / "params.yaml"


def test_shipped_settings_are_valid_and_name_only_what_exists() -> None:
    from pipeline import objectives
    from pipeline.extractors import ENGINES
    from pipeline.heads import pooling
    from pipeline.report.tables import TABLES

    shipped = settings.load(PARAMS)
    assert {engine.engine for engine in shipped.features.values()} <= set(ENGINES)
    assert set(shipped.tables) <= set(TABLES)
    for recipe in shipped.recipes.values():
        objectives.build(recipe.objective.name, **recipe.objective.options)
        for one in (recipe.image_pooling, recipe.text_pooling):
            pooling.build(one.name, 8, **one.options)
    shipped.training_of(shipped.run.dataset)


@pytest.mark.parametrize(("path", "value", "said"), [
    ("extract.colour", "red", "extract.colour: unknown key"),
    ("extract.batch_size", "0", "extract.batch_size"),
    ("extract.batch_size", "many", "extract.batch_size"),
    ("extract.precision", "fp8", "extract.precision"),
    ("compute.products", "mkl", "compute.products"),
    ("compute.threads", "2", "compute.threads: unknown key"),
    ("run.dataset", "../../etc", "run.dataset"),
    ("run.features", "[region, sound]", "run.features.1"),
    ("recipes.vse2ad.drop_items", "1.0", "recipes.vse2ad.drop_items"),
    ("training.sample.epochs", "2.5", "training.sample.epochs"),
    ("new_section", "{a: 1}", "new_section: unknown key"),
])
def test_refuses(path: str, value: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace(".", r"\.")):
        settings.load(PARAMS, (f"{path}={value}",))


@pytest.mark.parametrize(("changes", "said"), [
    (["run.features=[grid]"], "run.ablations.feature: region is not among run.features, grid"),
    (["run.ablations.features=[grid]"], "run.ablations.features: unknown key"),
])
def test_refuses_a_run_that_does_not_fit_together(changes: list[str], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        settings.load(PARAMS, tuple(changes))


@pytest.mark.parametrize("changes", [
    ("run.features=[grid]", "run.ablations.recipes=[]"),
    ("run.features=[grid]", "run.ablations.feature=grid"),
    ("run.recipes=[vse_infty_released]",),  # as `pipeline convert` calls a head
])
def test_runs_with_other_ablations_or_none(changes: tuple[str, ...]) -> None:
    assert settings.load(PARAMS, changes)


@pytest.mark.parametrize("change", ["nothing", "=3", "a.b=1", "run.dataset.deeper=1", "run.features=[", ".=1"])
def test_refuses_changes_that_are_none(change: str) -> None:
    with pytest.raises(InputError, match="-S"):
        settings.load(PARAMS, (change,))


def test_a_change_is_to_one_place() -> None:
    changed = settings.load(PARAMS, ("training.flickr30k.epochs=3",))
    assert changed.training["flickr30k"].epochs == 3
    assert changed.training["coco"].epochs == 25  # written once in the file, for both


def test_missing_section_and_missing_file(tmp_path: Path) -> None:
    tree = yaml.safe_load(PARAMS.read_text(encoding="utf-8"))
    del tree["score"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(InputError, match="score: missing"):
        settings.load(tmp_path / "params.yaml")
    with pytest.raises(InputError, match="no such settings file"):
        settings.load(tmp_path / "nowhere.yaml")
    (tmp_path / "broken.yaml").write_bytes(b"run: [\xff")
    with pytest.raises(InputError, match="not readable"):
        settings.load(tmp_path / "broken.yaml")


def test_names_of_what_is_not_there() -> None:
    shipped = settings.load(PARAMS)
    with pytest.raises(InputError, match=r"no recipes\.none; there are: vse2ad"):
        shipped.recipe("none")
