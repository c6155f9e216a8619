"""Which heads a figure shows where several would do, and what it says of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import forged
import invented_facts
import numpy as np
import pytest
from invented import member
from invented_heads import ADOPT, TRIPLET, head
from PIL import Image

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.figures.drawing import drawable
from pipeline.judge.systems.scores.system import System
from pipeline.run.provenance.heads import one_per_seed, read_heads
from pipeline.run.report import figures
from pipeline.run.report.examples import Gallery

GPO, ITEMS = {"name": "gpo"}, {"region": 36, "grid": 64, "patch": 197}


def draw(name: str, folder: Path, **more: Any) -> figures.Drawing:
    return figures.draw(name, figures.FigureInputs("Invented", read_heads(folder), ITEMS, **more))


def gallery(untrained: list[str]) -> Gallery:
    """A system on regions: three images of two captions each; the last image's captions find
    another first.
    """
    scores = np.array([[9, 8, 1, 1, 7, 7], [1, 1, 9, 8, 6, 6], [0, 0, 0, 0, 5, 5]], np.float32)
    made_from = invented_facts.of_head(
        member={"head": "a", **member("region", "butd-36", "bigru", untrained, {}, None, {})}
    )
    pool = System.of("invented", scores, np.array([0, 0, 1, 1, 2, 2]), made_from=made_from)
    return Gallery(pool, list("abcdef"), list("xyz"), lambda row: Image.new("RGB", (40, 20)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "shown"),
    [
        (
            (),
            ["vse_infty-g", "vse_infty-r"],
        ),  # the paper's own recipe, before the recipes that vary it
        ((("vse_infty", "bigru", 1),), ["vse_infty-seed1"]),
        (
            (("vse2ad", "bigru", 0), ("vse_infty-noaug", "bigru", 0)),
            ["noaug-g", "noaug-p", "noaug-r"],
        ),
    ],
)
def test_coefficients_are_of_the_run_or_of_the_papers_recipe(
    tmp_path: Path, run: Any, shown: list[str]
) -> None:
    for feature in ("region", "grid", "patch"):
        head(
            tmp_path,
            f"noaug-{feature[0]}",
            [1],
            recipe="vse_infty-noaug",
            feature=feature,
            image=GPO,
            text=GPO,
        )
    for feature in ("region", "grid"):
        head(
            tmp_path,
            f"vse_infty-{feature[0]}",
            [1],
            recipe="vse_infty",
            feature=feature,
            image=GPO,
            text=GPO,
        )
    head(tmp_path, "vse_infty-seed1", [1], recipe="vse_infty", seed=1, image=GPO, text=GPO)
    assert sorted(set(draw("pooling_coefficients", tmp_path, run=run).numbers["head"])) == shown


@pytest.mark.slow
def test_negatives_are_of_the_run_or_of_the_papers_recipe(tmp_path: Path) -> None:
    for recipe in ("mine", "vse2ad", "vse2ad-gpo"):
        head(tmp_path, f"a-{recipe}", [1, 2], recipe=recipe)
    assert set(draw("negatives", tmp_path).numbers["head"]) == {"a-vse2ad"}
    assert set(draw("negatives", tmp_path, run=[("vse2ad-gpo", "bigru", 0)]).numbers["head"]) == {
        "a-vse2ad-gpo"
    }


@pytest.mark.slow
def test_the_curve_is_of_the_run_if_it_can_be(tmp_path: Path) -> None:
    for recipe, pooling in (("vse2ad", "adpool"), ("mine", "mean")):
        for objective in (ADOPT, TRIPLET):
            head(
                tmp_path,
                f"{recipe}-{objective['name']}",
                [1, 2],
                recipe=recipe,
                objective=objective,
                image={"name": pooling},
            )
    assert set(draw("training_curve", tmp_path).numbers["head"]) == {
        "vse2ad-adopt",
        "vse2ad-triplet",
        "published",
    }
    of_run = draw("training_curve", tmp_path, run=[("other", "bigru", 0), ("mine", "bigru", 0)])
    assert set(of_run.numbers["head"]) == {"mine-adopt", "mine-triplet", "published"}


def test_equal_settings_under_two_names_are_one_run(tmp_path: Path) -> None:
    for name, seed in (("a0", 0), ("a1", 1), ("b0", 0)):
        head(
            tmp_path, name, [1, 2], recipe="vse2ad" if name[0] == "a" else "vse2ad-again", seed=seed
        )
    head(tmp_path, "t0", [1, 2], recipe="vse2ad-noadopt", objective=TRIPLET)
    drawing = draw("training_curve", tmp_path)
    assert set(drawing.numbers["head"]) == {"a0", "a1", "t0", "published"}
    assert "up to 2 seeds" in drawing.caption


def test_a_grid_counts_equal_settings_once(tmp_path: Path) -> None:
    for k_image in (1, 5):
        for k_text in (1, 5):
            head(
                tmp_path,
                f"{k_image}{k_text}",
                [10.0],
                recipe="vse2ad",
                image={"name": "kmax", "k": k_image},
                text={"name": "kmax", "k": k_text},
            )
    head(
        tmp_path,
        "mean",
        [30.0],
        recipe="again",
        image={"name": "kmax", "k": 1},
        text={"name": "max"},
    )
    drawing = draw("kmax_grid", tmp_path)
    assert sorted(drawing.numbers["head"]) == ["11", "15", "51", "55"]


def test_the_dagger_is_of_what_is_drawn(tmp_path: Path) -> None:
    """Another head of the same feature says nothing of the network behind the system that is
    shown.
    """
    head(tmp_path, "zzz", [1], recipe="another")
    assert (
        "region (butd-36, untrained)"
        in draw("retrieved_captions", tmp_path, gallery=gallery(["region"])).caption
    )
    assert "†" not in draw("retrieved_captions", tmp_path, gallery=gallery([])).caption


def test_the_dagger_of_a_curve_is_of_its_heads(tmp_path: Path) -> None:
    for name, objective in (("a", ADOPT), ("t", TRIPLET)):
        head(tmp_path, name, [1, 2], objective=objective, trained=False)
    head(tmp_path, "zzz", [1, 2], recipe="another", image={"name": "mean"})
    assert "region (region-butd, untrained)" in draw("training_curve", tmp_path).caption


def test_only_a_head_of_the_run_must_be_readable(tmp_path: Path) -> None:
    for name in ("ours", "theirs", "sound"):
        head(tmp_path, name, [1])
    (tmp_path / "theirs" / "record.json").write_text("{")
    said: list[str] = []
    assert [each.name for each in read_heads(tmp_path, ["ours"], said.append)] == ["ours", "sound"]
    assert "theirs" in said[0]
    forged.artefact(tmp_path / "ours", lambda content: content["facts"].update(features={}))
    with pytest.raises(InputError, match="/ours: not a head"):
        read_heads(tmp_path, ["ours"])


@pytest.mark.slow
def test_captions_without_spaces_and_in_wide_letters_fit(tmp_path: Path) -> None:
    long = ["x" * 300, "中" * 300, "word " * 60, "a", "b", "c"]
    shown = draw("retrieved_captions", tmp_path, gallery=replace(gallery([]), captions=long))
    texts = [text.get_text() for axes in shown.figure.axes for text in axes.texts]
    assert {text[0] for text in texts if text.endswith(" …")} == {"x", "w", drawable("中")}
    assert not {"…", ""} & set(texts)


def test_heads_of_one_setting_are_one_for_each_seed_in_the_order_of_seeds(tmp_path: Path) -> None:
    for name, seed in (("b", 2), ("a", 2), ("c", 10), ("d", 1)):
        head(tmp_path, name, [1.0], seed=seed)
    head(tmp_path, "unfinished", [1.0], seed=3, epochs=5)
    found = read_heads(tmp_path)
    assert [each.name for each in found] == ["a", "b", "c", "d"]  # by name
    assert [each.name for each in one_per_seed(found)] == ["d", "a", "c"]
    assert [each.name for each in one_per_seed(found[::-1])] == ["d", "b", "c"]


def test_what_heads_differ_in_is_all_but_the_seed_and_what_is_ignored(tmp_path: Path) -> None:
    head(tmp_path, "a", [1.0])
    head(tmp_path, "seed", [1.0], seed=1)
    head(tmp_path, "feature", [1.0], feature="grid")
    head(tmp_path, "objective", [1.0], objective=TRIPLET)
    head(tmp_path, "pooling", [1.0], image={"name": "mean"})
    store = head(tmp_path, "store", [1.0])
    forged.artefact(store, lambda content: content["facts"].update(store="another"))
    manifest = head(tmp_path, "manifest", [1.0])
    forged.artefact(
        manifest, lambda content: content["made_from"]["manifest"].update(identity="another")
    )
    heads = {each.name: each for each in read_heads(tmp_path)}

    def alike(*ignored: str) -> set[str]:
        key = heads["a"].settings_key(*ignored)
        return {name for name, each in heads.items() if each.settings_key(*ignored) == key}

    assert alike() == {"a", "seed"}
    assert alike("objective") == {"a", "seed", "objective"}
    assert alike("objective", "image_pooling") == {"a", "seed", "objective", "pooling"}
