"""Figures 3 and 4 of Geigle et al.: systems that differ in nothing but training images, or
layers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import invented_facts
import numpy as np
import pytest
from invented import read_metrics, system
from invented_heads import head
from safetensors.numpy import load_file

from pipeline.run.provenance.heads import read_heads
from pipeline.run.report import figures


def cross(
    recipe: str,
    tasks: list[str],
    r1: float,
    seed: int = 0,
    layers: list[int] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """A cross-encoder on the sample."""
    architecture = {"name": "cross"} | ({"layers": layers} if layers else {})
    entries = system(
        "sample",
        "all",
        recipe=recipe,
        text="bert",
        ensemble=None,
        r1=r1,
        seed=seed,
        settings={"architecture": architecture, "tasks": tasks, **settings},
    )
    for entry in entries.values():
        entry["record"]["facts"]["member"]["head"] = f"{recipe}-region-bert-s{seed}"
    return entries


def inputs(metrics: dict[str, Any], **more: Any) -> figures.FigureInputs:
    return figures.FigureInputs("Invented", measured=read_metrics(metrics), **more)


def test_lines_are_of_systems_that_differ_in_training_images_alone() -> None:
    metrics = (
        cross("emb-100", ["emb"], 20.0, images=100)
        | cross("emb", ["emb"], 40.0)
        | cross("emb", ["emb"], 50.0, seed=1)
        | cross("ce-100", ["ce"], 30.0, images=100)
        | cross("other", ["ce"], 30.0, learning_rate=1.0)
    )
    drawing = figures.draw("training_images", inputs(metrics, train_images=600))
    (axes,) = drawing.figure.axes
    (line,) = axes.lines
    assert np.asarray(line.get_xdata()).tolist() == [100, 600]
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx([150, 300])
    assert line.get_label() == "EMB (emb, Region, BERT)"
    assert drawing.numbers["RSUM"].tolist() == [150, 270, 330]
    assert "up to 2 seeds" in drawing.caption


def test_reranked_systems_of_several_sizes_are_one_line() -> None:
    metrics: dict[str, Any] = {}
    for images, r1 in ((100, 20.0), (None, 40.0)):
        recipe = f"join-{images or 'all'}"
        for name, entry in cross(
            recipe, ["emb", "ce"], r1, **({"images": images} if images else {})
        ).items():
            made = invented_facts.reranked(entry["record"]["facts"], f"{recipe}-region-bert")
            entry["record"]["facts"] = made.recorded()
            metrics |= {f"{name}+rerank": entry}
    drawing = figures.draw("training_images", inputs(metrics, train_images=600))
    assert drawing.numbers["images"].tolist() == [100, 600]
    assert drawing.numbers["label"].tolist() == ["JOIN+CO (join-all, Region, BERT)"] * 2


def test_half_sized_heads_stand_beside_whole_ones_with_their_parameters(tmp_path: Path) -> None:
    folder = head(
        tmp_path, "emb-region-bert-s0", [1.0], image={"name": "gpo"}, text={"name": "gpo"}
    )
    size = sum(array.size for array in load_file(folder / "best.safetensors").values())
    metrics = (
        cross("emb", ["emb"], 40.0)
        | cross("emb-half", ["emb"], 30.0, layers=[0, 2, 4])
        | cross("ce", ["ce"], 30.0)
        | system("sample", "all")
    )
    numbers = figures.draw("half_size", inputs(metrics, heads=read_heads(tmp_path))).numbers
    assert numbers[["part", "layers", "RSUM"]].values.tolist() == [
        ["EMB", "all layers", 270],
        ["EMB", "fewer layers", 210],
    ]
    assert numbers["parameters"].fillna(0).tolist() == [size, 0]
    assert size > 0


@pytest.mark.parametrize("name", ["training_images", "half_size"])
def test_systems_of_one_size_are_no_figure(name: str) -> None:
    with pytest.raises(figures.MissingInputs, match="pipeline evaluate"):
        figures.draw(name, inputs(cross("emb", ["emb"], 40.0), train_images=600))


def test_the_caption_has_the_most_seeds_of_any_point() -> None:
    for many, few in ((100, 200), (200, 100)):
        metrics: dict[str, Any] = {}
        for images, seeds in ((many, 3), (few, 1)):
            for seed in range(seeds):
                metrics |= cross(f"emb-{images}", ["emb"], 20.0 + seed, seed=seed, images=images)
        drawing = figures.draw("training_images", inputs(metrics, train_images=600))
        assert "up to 3 seeds" in drawing.caption
        assert drawing.numbers["images"].tolist() == sorted([many] * 3 + [few])


def test_of_two_recipes_with_equal_settings_the_first_is_drawn() -> None:
    metrics = (
        cross("emb", ["emb"], 40.0)
        | cross("again", ["emb"], 50.0)
        | cross("emb-100", ["emb"], 20.0, images=100)
    )
    numbers = figures.draw("training_images", inputs(metrics, train_images=600)).numbers
    assert numbers["RSUM"].tolist() == [150, 270]


def test_a_system_of_several_heads_has_the_parameters_of_all(tmp_path: Path) -> None:
    sizes = []
    for feature in ("region", "grid"):
        folder = head(tmp_path, f"{feature}-s0", [1.0], feature=feature, image={"name": "gpo"})
        arrays = load_file(folder / "best.safetensors").values()
        sizes.append(sum(array.size for array in arrays))
    metrics: dict[str, Any] = {}
    for recipe, layers in (("emb", None), ("half", [0, 2])):
        architecture = {"name": "cross"} | ({"layers": layers} if layers else {})
        metrics |= system(
            "sample",
            "all",
            recipe=recipe,
            text="bert",
            ensemble="RG",
            features={"region": "a", "grid": "b"},
            settings={"architecture": architecture, "tasks": ["emb"]},
        )
    drawing = figures.draw("half_size", inputs(metrics, heads=read_heads(tmp_path)))
    assert drawing.numbers["parameters"].tolist() == [sum(sizes)] * 2
    assert min(sizes) > 0
