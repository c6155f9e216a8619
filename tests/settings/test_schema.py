"""The settings file: what ships is valid, and what does not belong in it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.foundation import settings
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import ensembles, heads, systems

PARAMS = Path(__file__).parents[2] / "params.yaml"


def test_shipped_settings_are_valid_and_name_only_what_exists() -> None:
    from pipeline.make.features.extractors import ENGINES
    from pipeline.make.heads import objectives, pooling

    shipped = settings.load(PARAMS)
    assert {
        engine.engine for preset in shipped.features.values() for engine in preset.values()
    } <= set(ENGINES)
    assert shipped.tables is None
    for recipe in shipped.recipes.values():
        objectives.build(recipe.objective.name, **recipe.objective.options)
        for one in (recipe.image_pooling, recipe.text_pooling):
            pooling.build(one.name, 8, **one.options)
    shipped.training_of(shipped.run.dataset)


@pytest.mark.specification
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            "extract.decoders",
            "0",
            "extract.decoders: expected 'auto' or greater than or equal to 1, got 0",
        ),
        (
            "extract.writers",
            "many",
            "extract.writers: expected 'auto' or a valid integer, got 'many'",
        ),
        ("extract.colour", "red", "extract.colour: unknown key"),
        ("extract.device", "foo", "extract.device: unknown device 'foo'; there are: cpu, cuda"),
        ("extract.device", "''", "extract.device: unknown device ''"),
        ("extract.device", "cuda:x", "extract.device: unknown device 'cuda:x'"),
        ("training.light.device", "'cuda:1,gpu'", "training.light.device: unknown device 'gpu'"),
        ("extract.batch_size", "0", "extract.batch_size"),
        ("extract.batch_size", "many", "extract.batch_size"),
        ("extract.precision", "fp8", "extract.precision"),
        ("run.dataset", "../../etc", "run.dataset"),
        ("run.features", "[region, sound]", "run.features.1"),
        ("run.features", "[grid, grid]", "'grid' is named twice"),
        ("run.seeds", "[1, 0, 1]", "1 is named twice"),
        ("run.ensembles", "[RG, RG]", "'RG' is named twice"),
        ("run.ablations", "[vse_infty, vse_infty]", "'vse_infty' is named twice"),
        ("run.ablations", "[vse2ad]", "'vse2ad' is also in run.recipes"),
        ("recipes.vse2ad.drop_items", "1.0", "recipes.vse2ad.drop_items"),
        ("recipes.vse2ad.languages", "[en, en]", "recipes.vse2ad.languages: 'en' is named twice"),
        ("recipes.vse2ad.languages", "[../en]", "recipes.vse2ad.languages.0"),
        ("recipes.vse2ad.languages", "en", "recipes.vse2ad.languages"),
        ("recipes.vse2ad.sampling", "fair", "recipes.vse2ad.sampling"),
        ("training.sample.epochs", "2.5", "training.sample.epochs"),
        ("training.sample.learning_rate", ".inf", "training.sample.learning_rate"),
        ("training.sample.learning_rate", "1e999", "training.sample.learning_rate"),
        ("new_section", "{a: 1}", "new_section: unknown key"),
        ("extract.batchsize", "4", "extract.batchsize: unknown key; did you mean batch_size?"),
        ("recipes.vse2ad.ance", "{k: 4}", "recipes.vse2ad.ance.k: unknown key; there are: "),
        (
            "run.dataset",
            "1e3",
            "got 1000.0; a name that looks like a number, true or null needs quotes",
        ),
        (
            "evaluate",
            "{resamples: 9, seed: 0, block_megabytes: 1, qrels: q.tsv, same_text: positive}",
            "qrels and same_text both say which candidates are positives; set one",
        ),
        ("typesetting", "{column_width: 17}", "column_width 17.0 is wider than text_width 16.0"),
        ("recipes.vse2ad.finetune", "yes", "got 'yes'; write true or false"),
        (
            "throughput",
            "{device: cpu, bach_size: 4}",
            "throughput.bach_size: unknown key; did you mean batch_size?",
        ),
    ],
)
def test_refuses(path: str, value: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        settings.load(PARAMS, (f"{path}={value}",))


@pytest.mark.parametrize(
    "change",
    [
        "run.dataset=2020-13-45",
        "run.ablations=[]",
        "run.recipes=[vse_infty_released]",  # as `pipeline convert` calls a head
    ],
)
def test_runs_with_other_heads(change: str) -> None:
    assert settings.load(PARAMS, (change,))


@pytest.mark.specification
def test_a_feature_is_left_out_by_one_setting() -> None:
    run = settings.load(PARAMS, ("run.features=[grid, patch]", "run.ensembles=[RG, GP, P]")).run
    assert run.left_out == {"RG": ["region"]}
    assert [system for system in systems(run) if "vse_infty" not in system] == [
        *(f"vse2ad-{visual}-bigru-s0" for visual in ("grid", "patch", "GP", "P")),
        "vse2ad-noadopt-grid-bigru-s0",
    ]
    assert {*heads(run), *ensembles(run)} == {*systems(run)}


@pytest.mark.parametrize("name", ["", "GR", "RR", "X", "region"])
def test_an_ensemble_is_of_letters_of_features_in_order(name: str) -> None:
    with pytest.raises(
        InputError,
        match=rf"'{name}' is no ensemble; expected letters of R \(region\), G \(grid\), P",
    ):
        settings.load(PARAMS, (f"run.ensembles=['{name}']",))


@pytest.mark.parametrize(
    "change", ["nothing", "=3", "a.b=1", "run.dataset.deeper=1", "run.features=[", ".=1"]
)
def test_refuses_changes_that_are_none(change: str) -> None:
    with pytest.raises(InputError, match="-S"):
        settings.load(PARAMS, (change,))


def test_a_change_is_to_one_place() -> None:
    changed = settings.load(PARAMS, ("training.flickr30k.epochs=3",))
    assert changed.training_of("flickr30k").epochs == 3
    assert changed.training_of("coco").epochs == 25  # of the same preset


def test_missing_section_and_missing_file(tmp_path: Path) -> None:
    tree = yaml.safe_load(PARAMS.read_text(encoding="utf-8"))
    del tree["run"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree), encoding="utf-8")
    with pytest.raises(InputError, match=r"params\.yaml: run: missing"):
        settings.load(tmp_path / "params.yaml")
    with pytest.raises(InputError, match="no such settings file"):
        settings.load(tmp_path / "nowhere.yaml")
    (tmp_path / "broken.yaml").write_bytes(b"run: [\xff")
    with pytest.raises(InputError, match="is no text in UTF-8"):
        settings.load(tmp_path / "broken.yaml")


def test_names_of_what_is_not_there() -> None:
    shipped = settings.load(PARAMS)
    with pytest.raises(
        InputError, match=r"unknown recipe .none.; the nearest of \d+: .*pipeline settings recipes"
    ):
        shipped.recipe("none")


def test_benchmarks_take_the_papers_features_and_other_data_sets_the_light_ones() -> None:
    shipped = settings.load(PARAMS)
    assert [
        shipped.engine_of(name, "region").engine
        for name in ("coco", "flickr30k", "flickr8k", "mine")
    ] == ["butd-36", "butd-36", "pyramid", "pyramid"]
    assert shipped.training_of("coco").dimension == 1024
    assert (
        shipped.training_of("mine")
        == shipped.training_of("flickr8k")
        != shipped.training_of("sample")
    )


def test_one_word_switches_the_preset() -> None:
    switched = settings.load(PARAMS, ("presets.flickr8k=paper",))
    assert switched.engine_of("flickr8k", "grid").options["grid"] == 16
    assert switched.training_of("flickr8k").epochs == 25


def test_another_engine_does_not_inherit_the_options_of_the_first() -> None:
    changed = settings.load(
        PARAMS,
        ("features.light.region.engine=butd-36", "features.light.region.weights=butd-36-milvlg"),
    )
    assert changed.engine_of("flickr8k", "region").options == {"weights": "butd-36-milvlg"}


OF_PARTS: dict[tuple[str, ...], Callable[[settings.Settings], tuple[Any, Any]]] = {
    ("finetuning.blocks.weights=lora", "finetuning.blocks.weights.rank=3"): lambda chosen: (
        chosen.finetuning["blocks"].weights,
        ("lora", {"rank": 3}),
    ),
    (
        "finetuning.lora.objective.name=triplet",
        "finetuning.lora.objective.margin=0.3",
        "finetuning.lora.logit_scale=unused",
    ): lambda chosen: (chosen.finetuning["lora"].objective, ("triplet", {"margin": 0.3})),
    ("finetuning.lora.weights.rank=64", "finetuning.lora.weights=lora"): lambda chosen: (
        chosen.finetuning["lora"].weights,
        ("lora", {"rank": 64, "alpha": 16}),
    ),
    (
        "recipes.vse2ad.objective.temperature=0.05",
        "recipes.vse2ad.objective.name=infonce",
    ): lambda chosen: (chosen.recipe("vse2ad").objective, ("infonce", {"temperature": 0.05})),
    ("recipes.vse2ad.pooling=mean",): lambda chosen: (
        chosen.recipe("vse2ad").text_pooling,
        ("mean", {}),
    ),
    ("recipes.vse2ad.architecture=late", "recipes.vse2ad.architecture.form=max"): lambda chosen: (
        chosen.recipe("vse2ad").architecture,
        ("late", {"form": "max"}),
    ),
    (
        "features.light.minilm.engine=text-tower",
        "features.light.minilm.weights=folder",
    ): lambda chosen: (chosen.features["light"]["minilm"], ("text-tower", {"weights": "folder"})),
}


@pytest.mark.parametrize("changes", OF_PARTS)
def test_a_part_is_chosen_by_its_name_and_takes_options_of_its_own(
    changes: tuple[str, ...],
) -> None:
    part, expected = OF_PARTS[changes](settings.load(PARAMS, changes))
    assert (part.part, part.options) == expected


def test_a_section_that_is_empty_or_at_its_default_takes_a_key() -> None:
    changed = settings.load(
        PARAMS,
        (
            "training.mine.texts.tokens.weights=folder",
            "recipes.vse2ad.pairs.hard=0.5",
            "recipes.vse2ad.noise.share=0.2",
        ),
    )
    assert changed.training["mine"].texts == {"tokens": {"weights": "folder"}}
    assert changed.training["light"].texts == {}
    assert (changed.recipe("vse2ad").pairs.hard, changed.recipe("vse2ad").noise) == (
        0.5,
        settings.Noise(share=0.2),
    )
    with pytest.raises(InputError, match="unknown text encoder 'tokns'; did you mean tokens"):
        settings.load(PARAMS, ("training.mine.texts.tokns.weights=folder",))


def test_what_is_said_of_a_section_leaves_out_its_content() -> None:
    with pytest.raises(
        InputError, match=r"lora: logit_scale trained .*; for any other set logit_scale: unused$"
    ):
        settings.load(PARAMS, ("finetuning.lora.objective=triplet",))
    with pytest.raises(
        InputError, match=r"finetuning\.lora.objective: expected a section, KEY: VALUE, got 3$"
    ):
        settings.load(PARAMS, ("finetuning.lora.objective=3",))


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"presets\.flickr8k: unknown preset .papers.; did you mean paper"
    ):
        settings.load(PARAMS, ("presets.flickr8k=papers",))
