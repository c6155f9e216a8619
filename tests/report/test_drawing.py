"""Figures: drawn from what is there, whole in their numbers, left out with a reason where something
lacks.
"""

from __future__ import annotations

import hashlib
import resource
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forged
import invented_facts
import numpy as np
import pandas as pd
import pytest
import torch
from invented import member
from invented_heads import ADOPT, TRIPLET, head
from PIL import Image
from safetensors.torch import load_file

from pipeline.foundation import settings
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import heads
from pipeline.judge.figures.drawing import LINES
from pipeline.judge.systems.scores.system import System
from pipeline.make.heads import pooling
from pipeline.run.provenance.heads import read_heads
from pipeline.run.report import figures
from pipeline.run.report.examples import Gallery, examples
from pipeline.run.report.figures import retrieved, vse2ad, vse_infty
from pipeline.run.report.page import charts

RELEASED = ADOPT | {"count": "released"}


def draw(name: str, folder: Path, **more: Any) -> figures.Drawing:
    items = {"region": 36, "grid": 64, "patch": 197}
    return figures.draw(name, figures.FigureInputs("Invented", read_heads(folder), items, **more))


@pytest.mark.parametrize("name", figures.FIGURES)
def test_a_figure_without_inputs_says_what_it_needs(name: str, tmp_path: Path) -> None:
    with pytest.raises(figures.MissingInputs, match=r"train|pipeline"):
        draw(name, tmp_path)


def test_unknown_figure_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="training_curve, negatives"):
        draw("pie", tmp_path)


@pytest.mark.slow
def test_training_curve_compares_heads_that_differ_in_the_objective_alone(tmp_path: Path) -> None:
    head(tmp_path, "a0", [10, 20], objective=ADOPT, seed=0)
    head(tmp_path, "a1", [20, 40], objective=ADOPT, seed=1)
    head(tmp_path, "other-pooling", [5, 6], objective=TRIPLET, image={"name": "mean"})
    with pytest.raises(figures.MissingInputs):
        draw("training_curve", tmp_path)
    head(tmp_path, "t0", [7, 8], objective=TRIPLET, recipe="vse2ad-noadopt")
    head(tmp_path, "unfinished", [1], objective=TRIPLET, epochs=2)
    drawing = draw("training_curve", tmp_path)
    axes, printed = drawing.figure.axes
    assert [line.get_ydata()[-1] for line in printed.lines] == [425.9, 417.8]  # as printed
    assert [line.get_ydata().tolist() for line in axes.lines] == [[15, 30], [7, 8]]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[1, 2], [1, 2]]
    assert set(drawing.numbers["head"]) == {"a0", "a1", "t0", "published"}
    assert "up to 2 seeds" in drawing.caption


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"all_negatives_epochs": 0}, "without AdOpt (hard triplet)"),
        ({}, "without AdOpt (hard triplet after epoch 1)"),
    ],
)
def test_training_curve_says_when_the_triplet_loss_becomes_hard(
    options: dict[str, int], label: str, tmp_path: Path
) -> None:
    head(tmp_path, "a", [10, 20], objective=ADOPT)
    head(tmp_path, "t", [7, 8], objective=TRIPLET | options)
    drawing = draw("training_curve", tmp_path)
    assert [line.get_label() for line in drawing.figure.axes[0].lines] == ["with AdOpt", label]
    assert label in drawing.caption
    drawing.figure.draw_without_rendering()
    legend = drawing.figure.axes[0].get_legend()
    assert legend.get_window_extent().x1 <= drawing.figure.bbox.x1


@pytest.mark.slow
def test_with_both_triplet_losses_the_papers_is_drawn(tmp_path: Path) -> None:
    head(tmp_path, "a", [10, 20], objective=ADOPT)
    head(
        tmp_path,
        "b",
        [7, 8],
        objective=TRIPLET | {"all_negatives_epochs": 0},
        recipe="vse2ad-noadopt",
    )
    head(tmp_path, "c", [17, 18], objective=TRIPLET, recipe="vse2ad-triplet_warm")
    assert set(draw("training_curve", tmp_path).numbers["head"]) == {"a", "b", "published"}


@pytest.mark.slow
def test_negatives_by_both_readings_of_k_are_drawn_together(tmp_path: Path) -> None:
    head(tmp_path, "a", [1], negatives=[[63, 61]])
    head(tmp_path, "other-margin", [1], recipe="mine", objective=RELEASED | {"margin": 0.1})
    head(tmp_path, "other-pooling", [1], recipe="mine", image={"name": "mean"}, objective=RELEASED)
    head(tmp_path, "other-seed", [1], recipe="vse2ad-released", objective=RELEASED, seed=1)
    assert list(draw("negatives", tmp_path).numbers["head"].unique()) == ["a"]
    head(
        tmp_path, "released", [1], negatives=[[30, 2]], recipe="vse2ad-released", objective=RELEASED
    )
    drawing = draw("negatives", tmp_path)
    assert list(drawing.numbers["head"].unique()) == ["a", "released"]
    labels = [line.get_label() for line in drawing.figure.axes[0].lines]
    assert [label for label in labels if "region" in label] == [
        "region, printed",
        "region, released",
    ]
    assert "equation 6 as printed and as released" in drawing.caption


def test_the_released_reading_alone_is_named(tmp_path: Path) -> None:
    head(tmp_path, "a", [1], recipe="mine", objective=RELEASED)
    assert "equation 6 as released, after" in draw("negatives", tmp_path).caption


def test_steps_are_counted_in_whole_numbers(tmp_path: Path) -> None:
    head(tmp_path, "a", [1], negatives=[[63, 61]])
    figure = draw("negatives", tmp_path).figure
    figure.draw_without_rendering()
    assert all(
        float(tick).is_integer()
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis)
        for tick in axis.get_ticklocs()
    )


def test_a_small_fall_of_negatives_is_drawn_as_small_as_it_is(tmp_path: Path) -> None:
    head(tmp_path, "a", [1], negatives=[[63, 57]])
    low, high = draw("negatives", tmp_path).figure.axes[0].get_ylim()
    assert low == 0
    assert high > 63


def test_negatives_are_those_of_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pipeline.run.report.figures.vse2ad.WINDOWS", 2
    )  # 6 steps: a mean over 2 (3, made round)
    head(tmp_path, "a", [1, 2, 3], negatives=[[63, 61], [50, 52], [40, 46]])
    head(tmp_path, "g", [1, 2], feature="grid", negatives=[[63], [60]])
    head(tmp_path, "t", [1, 2], feature="patch", objective=TRIPLET)
    drawing = draw("negatives", tmp_path)
    of = {name: table.to_dict("list") for name, table in drawing.numbers.groupby("head")}
    assert of.keys() == {"a", "g"}
    assert of["a"]["step"] == [1, 2, 3, 4, 5, 6]
    assert of["a"]["epoch"] == [1, 1, 2, 2, 3, 3]
    assert of["a"]["negatives"] == [63, 61, 50, 52, 40, 46]
    assert of["a"]["mean"] == [63, 62, 55.5, 51, 46, 43]
    assert "mean over the 2 steps" in drawing.caption
    drawn = [line.get_ydata().tolist() for line in drawing.figure.axes[0].lines[:4]]
    assert drawn == [of["a"]["negatives"], of["a"]["mean"], of["g"]["negatives"], of["g"]["mean"]]


def test_negatives_of_several_steps_a_row_are_drawn_where_the_steps_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.run.report.figures.vse2ad.WINDOWS", 2)  # 6 steps: a mean over 2
    written = head(tmp_path, "a", [1, 2], negatives=[[63, 50], [40, 46]]) / "steps.csv"
    pd.read_csv(written).assign(averaged=[2, 1, 2, 1]).to_csv(written, index=False)
    forged.artefact(written.parent)
    drawing = draw("negatives", tmp_path)
    assert drawing.numbers["step"].tolist() == [2, 3, 5, 6]
    assert drawing.numbers["mean"].tolist() == [63, 56.5, 40, 43]
    assert "mean over the 2 steps around each; faint: means over 2 steps." in drawing.caption


def test_damaged_steps_are_refused(tmp_path: Path) -> None:
    folder = head(tmp_path, "a", [1])
    (folder / "steps.csv").write_text("")
    forged.artefact(folder)
    with pytest.raises(InputError, match=r"a/steps\.csv: not readable"):
        draw("negatives", tmp_path)


@pytest.mark.parametrize("options", [{}, {"generator": "mlp"}])
def test_pooling_coefficients_are_those_of_the_checkpoint(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    gpo = {"name": "gpo", **options}
    place = head(tmp_path, "gpo", [1], recipe="vse_infty", image=gpo, text=gpo, trained=False)
    drawing = draw("pooling_coefficients", tmp_path)
    shown = drawing.numbers[drawing.numbers["side"] == "image"]["coefficient"].to_numpy()
    module = pooling.build("gpo", 8, **options)
    module.load_state_dict(
        {
            key.removeprefix("image_pooling."): value
            for key, value in load_file(place / "best.safetensors").items()
            if key.startswith("image_pooling.")
        }
    )
    # Pooling one-hot columns gives the coefficients themselves: item k is 1 in dimension 0 if it is
    # among the k first.
    steps = torch.tril(torch.ones(36, 36)).T[:, :, None].expand(36, 36, 8)
    sums = module(steps.transpose(0, 1).contiguous(), torch.full((36,), 36))[:, 0].detach().numpy()
    np.testing.assert_allclose(np.sort(np.cumsum(shown)), np.sort(sums), atol=1e-5)
    assert shown.sum() == pytest.approx(1)
    for axes in drawing.figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        assert legend.get_window_extent().y0 >= axes.bbox.y1  # no curve can touch it
    assert (
        "† Not the papers' networks; stand-ins made these features: region (region-butd, untrained)."
        in drawing.caption
    )


def test_a_published_checkpoint_shows_its_coefficients_and_has_no_curve(tmp_path: Path) -> None:
    gpo = {"name": "gpo"}
    head(
        tmp_path,
        "published",
        [],
        recipe="vse_infty",
        image=gpo,
        text=gpo,
        epochs=25,
        origin="model_best.pth",
    )
    assert set(draw("pooling_coefficients", tmp_path).numbers["head"]) == {"published"}
    assert charts.curves(read_heads(tmp_path)) == []
    for name in ("training_curve", "negatives", "kmax_grid"):
        with pytest.raises(figures.MissingInputs):
            draw(name, tmp_path)


def test_data_dependent_coefficients_are_not_drawn(tmp_path: Path) -> None:
    gpo = {"name": "gpo", "data_dependent": True}
    head(tmp_path, "gpo", [1], image=gpo, text=gpo)
    with pytest.raises(figures.MissingInputs):
        draw("pooling_coefficients", tmp_path)


@pytest.mark.slow
def test_kmax_grid_places_heads_by_their_settings(tmp_path: Path) -> None:
    def kmax(k: int) -> dict[str, Any]:
        return {"name": "kmax", "k": k}

    values = {(1, 1): 10.0, (1, 5): 40.0, (5, 1): 20.0}
    for number, ((image, text), rsum) in enumerate(values.items()):
        head(tmp_path, f"h{number}", [rsum, 1], image=kmax(image), text=kmax(text))
    head(tmp_path, "patch", [9.0], feature="patch", image=kmax(5), text=kmax(5))
    with pytest.raises(figures.MissingInputs):
        draw("kmax_grid", tmp_path)
    head(tmp_path, "mean", [30.0, 2], image={"name": "mean"}, text={"name": "max"})
    drawing = draw("kmax_grid", tmp_path)
    axes = drawing.figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "5", "all"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "5"]
    shown = {text.get_position()[::-1]: text.get_text() for text in axes.texts}
    assert shown == {(0, 0): "10.0", (0, 1): "40.0", (1, 0): "20.0", (2, 0): "30.0"}


@pytest.mark.slow
def test_the_run_as_it_ships_trains_the_heads_that_every_figure_needs(tmp_path: Path) -> None:
    shipped = settings.load(Path(__file__).parents[2] / "params.yaml")
    for name, feature, *_ in heads(shipped.run).values():
        recipe = shipped.recipe(name).model_dump()
        place = head(
            tmp_path,
            f"{name}-{feature}",
            [1, 2],
            recipe=name,
            feature=feature,
            objective=recipe["objective"],
            image=recipe["image_pooling"],
            text=recipe["text_pooling"],
        )
        forged.artefact(
            place, lambda content, recipe=recipe: content["request"].update(recipe=recipe)
        )  # type: ignore[misc]
    for name in ("training_curve", "negatives", "pooling_coefficients"):
        drawing = draw(name, tmp_path)
        assert len(drawing.numbers)
        for axes in drawing.figure.axes:  # a published number alone has a hollow marker
            for line in axes.lines:
                filled = line.get_color()
                if "published" in axes.get_ylabel():
                    filled = "white"
                assert line.get_marker() in ("None", "") or line.get_markerfacecolor() == filled
    assert (
        "Filled markers: measured; hollow: published." in draw("training_curve", tmp_path).caption
    )


@pytest.mark.slow
def test_retrieval_time_draws_what_was_timed(tmp_path: Path) -> None:
    pools = [
        {"images": n, "head": n * 1e-6, "ensemble": n * 3e-6, "cross_encoder": n * 1e-2}
        for n in (100, 1000)
    ]
    drawing = draw(
        "retrieval_time", tmp_path, throughput={"pools": pools, "methods": {"pools": "As stated."}}
    )
    assert drawing.caption.endswith("As stated.")
    busy = {"pools": pools, "methods": {"pools": "As stated."}, "busy": True}
    assert draw("retrieval_time", tmp_path, throughput=busy).caption.endswith(
        "As stated. Other work ran on the machine meanwhile; time it again."
    )
    pd.testing.assert_frame_equal(drawing.numbers, pd.DataFrame(pools))


def gallery(opened: Any = None) -> Gallery:
    """Three images of two captions each; the captions 0 to 3 find their image first, 4 and 5
    last.
    """
    scores = np.array([[9, 8, 1, 1, 7, 7], [1, 1, 9, 8, 6, 6], [0, 0, 0, 0, 5, 5]], np.float32)
    captions = [r"costs $5 or $6_{7}^8", "b", "c", "\x07 control", "中文 caption", "f"]
    made_from = invented_facts.of_head(
        member={"head": "a", **member("region", "butd-36", "bigru", [], {}, None, {})}
    )
    return Gallery(
        System.of("invented", scores, np.array([0, 0, 1, 1, 2, 2]), made_from=made_from),
        captions,
        ["x", "y", "z"],
        opened or (lambda row: Image.new("RGB", (40 + row, 20), "navy")),
    )


def test_a_right_image_in_the_last_shown_place_is_not_missed() -> None:
    for shown, missed in ((2, {4, 5}), (3, set())):
        found = examples(gallery(), "t2i", 9, shown)
        assert [{example.query for example in part} for part in found] == [{0, 1, 2, 3}, missed]


@pytest.mark.slow
def test_retrieved_images_mark_the_ground_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.run.report.figures.retrieved.SHOWN", 2)
    head(tmp_path, "a", [1], trained=False)
    drawing = draw("retrieved_images", tmp_path, gallery=gallery())
    table = drawing.numbers
    assert (
        table.groupby("caption", sort=False)["right"].apply(list).tolist()
        == [[True, False]] * 2 + [[False] * 2] * 2
    )
    assert table["ground_truth_rank"].tolist() == [1, 1, 1, 1, 3, 3, 3, 3]
    assert set(table["caption"][4:]) == {"中文 caption", "f"}
    assert (
        "the first 2 captions that found the right image first and the first 2 captions that did not find it among "
        "the first 2; in the order of the SHA-256 digests of the captions"
    ) in drawing.caption


@pytest.mark.slow
def test_photographs_make_a_small_pdf(tmp_path: Path) -> None:
    """Twenty-two photographs with soft gradients and some noise, which compress as real ones do."""
    noise = np.random.default_rng(0)
    slope = np.linspace(0, 200, 400)[:, None, None] * np.ones((400, 300, 3)) * [1.0, 0.7, 0.4]

    def photograph(row: int) -> Image.Image:
        return Image.fromarray(
            (slope + noise.normal(20, 4, slope.shape)).clip(0, 255).astype(np.uint8)
        )

    shown = gallery(photograph)
    captions = [f"caption {number}" for number in range(40)]
    scores = np.random.default_rng(1).normal(size=(20, 40)).astype(np.float32)
    pool = System.of("many", scores, np.repeat(np.arange(20), 2), made_from=shown.pool.made_from)
    many = Gallery(pool, captions, captions[:20], photograph)
    figures.save(draw("retrieved_images", tmp_path, gallery=many), tmp_path, "retrieved")
    assert (tmp_path / "retrieved.pdf").stat().st_size < 300_000


@pytest.mark.slow
def test_a_figure_with_serifs_has_the_papers_kind_of_font(tmp_path: Path) -> None:
    head(tmp_path, "a", [1, 2], negatives=[[9], [8]])
    inputs = figures.FigureInputs("data", heads=read_heads(tmp_path))
    for font, name in (("serif", b"STIX"), ("sans", b"DejaVuSans")):
        figures.save(figures.draw("negatives", inputs, font), tmp_path, font, font)
        assert name in (tmp_path / f"{font}.pdf").read_bytes()


def test_retrieved_captions_mark_the_images_own(tmp_path: Path) -> None:
    drawing = draw("retrieved_captions", tmp_path, gallery=gallery())
    by_digest = sorted("xyz", key=lambda name: hashlib.sha256(name.encode()).digest())
    assert (
        drawing.numbers["file"].unique().tolist() == by_digest[:2]
    )  # all three have one of their own first
    assert drawing.numbers.groupby("file")["right"].sum().tolist() == [2, 2]
    assert "first and no others, as every one found one among the first 5; in" in drawing.caption


def test_a_caption_of_two_lines_is_shown_whole(tmp_path: Path) -> None:
    long = "a caption that says much of what there is to see " * 3
    captions = [f"{long}{number}" for number in range(6)]
    drawing = draw("retrieved_captions", tmp_path, gallery=replace(gallery(), captions=captions))
    texts = [text.get_text() for axes in drawing.figure.axes for text in axes.texts]
    assert {" ".join(text.split()) for text in texts} >= set(drawing.numbers["caption"])
    assert drawing.figure.get_figheight() > 2 * 1.05


def test_a_pool_without_successes_and_failures_is_left_out(tmp_path: Path) -> None:
    second = np.array([[1, 2], [2, 1]], np.float32)
    small = Gallery(
        System.of("small", second, np.array([0, 1])), ["a", "b"], ["x", "y"], gallery().open
    )
    for name in ("retrieved_images", "retrieved_captions"):
        with pytest.raises(figures.MissingInputs, match="score more images"):
            draw(name, tmp_path, gallery=small)


@pytest.mark.slow
def test_a_photograph_that_is_gone_is_said_in_its_place(tmp_path: Path) -> None:
    def gone(row: int) -> Image.Image:
        raise ImageError("no such file")

    drawing = draw("retrieved_images", tmp_path, gallery=gallery(gone))
    assert any(
        "such file" in text.get_text() for axes in drawing.figure.axes for text in axes.texts
    )


@pytest.mark.slow
def test_saved_files_are_the_same_every_time(tmp_path: Path) -> None:
    head(tmp_path / "heads", "a", [1, 2])
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        figures.save(draw("negatives", tmp_path / "heads"), tmp_path / name, "negatives")
        written.append(
            {file.name: file.read_bytes() for file in sorted((tmp_path / name).iterdir())}
        )
    assert written[0] == written[1]
    assert list(written[0]) == ["negatives.csv", "negatives.pdf", "negatives.png", "negatives.svg"]
    assert b"/Type3" not in written[0]["negatives.pdf"]


def test_index_names_what_was_left_out() -> None:
    text = figures.index({}, {"kmax_grid": "heads <script>"})
    assert "- kmax\\_grid: needs heads &lt;script&gt;" in text


@pytest.mark.parametrize("broken", ["[]", "{", '{"feature": "sound", "training": {}}'])
def test_a_broken_head_is_refused_by_name(tmp_path: Path, broken: str) -> None:
    (head(tmp_path, "a", [1]) / "record.json").write_text(broken)
    with pytest.raises(InputError, match="/a"):
        read_heads(tmp_path)


@pytest.mark.slow
def test_a_full_disk_names_the_figures_file(tmp_path: Path) -> None:
    head(tmp_path / "heads", "a", [1, 2])
    drawing = draw("negatives", tmp_path / "heads")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as full:
            figures.save(drawing, tmp_path, "negatives")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert full.value.filename == str(tmp_path / "negatives.pdf")
    assert not list(tmp_path.glob("negatives*"))


@pytest.mark.parametrize(
    ("rank", "text"),
    [
        (1.0, "rank 1"),
        (7.0, "rank 7"),
        (7.5, "rank 7.5 on average over ties"),
        (120.0, "rank 120"),
    ],
)
def test_a_mean_rank_is_said_to_be_one(rank: float, text: str) -> None:
    assert retrieved.rank_text(rank) == text


@pytest.mark.parametrize(
    ("steps", "window"),
    [(1, 1), (20, 1), (39, 1), (40, 2), (99, 2), (100, 5), (199, 5), (200, 10), (40_000, 2000)],
)
def test_the_running_mean_is_over_a_round_number_up_to_a_twentieth_of_the_steps(
    steps: int, window: int
) -> None:
    heads: Any = [
        SimpleNamespace(steps=pd.DataFrame({"averaged": [1] * count})) for count in (1, steps)
    ]
    assert vse2ad._window(heads) == window


def test_retrieved_items_are_numbered_from_1_and_counted_on_their_own_side(tmp_path: Path) -> None:
    """The gallery has three images and six captions."""
    of_images = draw("retrieved_images", tmp_path, gallery=gallery())
    of_captions = draw("retrieved_captions", tmp_path, gallery=gallery())
    for drawing, query, places, count in (
        (of_images, "caption", [1, 2, 3], "3 images"),
        (of_captions, "file", [1, 2, 3, 4, 5], "6 captions"),
    ):
        for _, shown in drawing.numbers.groupby(query):
            assert shown["place"].tolist() == places
            assert shown["ground_truth_rank"].nunique() == 1
        assert f", {count}, after Figure 4" in drawing.caption


def test_a_cell_of_the_grid_is_the_mean_over_its_seeds_in_ink_that_is_read(tmp_path: Path) -> None:
    """White on dark cells, black on light ones: by the middle between the least and the
    greatest.
    """
    values = {("max", "max"): 10.0, ("max", "mean"): 20.0, ("mean", "max"): 47.0}
    values["mean", "mean"] = 90.0
    for (image, text), rsum in values.items():
        for seed, apart in ((0, -5.0), (1, 2.0), (2, 3.0)):
            name = f"{image}-{text}-{seed}"
            poolings = {"image": {"name": image}, "text": {"name": text}}
            head(tmp_path, name, [rsum + apart], seed=seed, **poolings)  # type: ignore[arg-type]
    axes = draw("kmax_grid", tmp_path).figure.axes[0]
    drawn = {text.get_text(): text.get_color() for text in axes.texts}
    assert drawn == {"10.0": "white", "20.0": "white", "47.0": "white", "90.0": "black"}


def test_the_grid_is_of_the_run_though_others_trained_more_cells(tmp_path: Path) -> None:
    for k in range(1, 6):
        for recipe, count in (("mine", 4), ("other", 5)):
            if k <= count:
                settings = {"image": {"name": "kmax", "k": k}, "text": {"name": "max"}}
                objective = TRIPLET if recipe == "other" else ADOPT
                head(
                    tmp_path, f"{recipe}-{k}", [1.0], recipe=recipe, objective=objective, **settings
                )  # type: ignore[arg-type]
    for run, shown in ((("mine", "bigru", 0),), "mine"), ((), "other"):
        numbers = draw("kmax_grid", tmp_path, run=run).numbers
        assert {name.partition("-")[0] for name in numbers["head"]} == {shown}


@pytest.mark.parametrize("option", ["data_dependent", "per_dimension"])
def test_gpo_with_more_than_one_coefficient_a_position_has_no_line(option: str) -> None:
    plain = {"name": "gpo"}
    assert vse_infty._is_plain_gpo(plain)
    assert vse_infty._is_plain_gpo(plain | {option: False})
    assert not vse_infty._is_plain_gpo(plain | {option: True})
    assert not vse_infty._is_plain_gpo({"name": "mean"})


def test_each_system_has_the_same_line_in_every_figure_of_times(tmp_path: Path) -> None:
    """The cross-encoder and the ensemble are drawn by the second and the first line."""
    pools = [
        {"images": n, "head": n * 1e-6, "ensemble": n * 3e-6, "cross_encoder": n * 1e-2}
        for n in (100, 1000)
    ]
    timed = {"pools": pools, "methods": {"pools": "As stated."}}
    (axes,) = draw("retrieval_time", tmp_path, throughput=timed).figure.axes
    drawn = {line.get_label(): line for line in axes.lines}
    for column, label, number in (
        ("cross_encoder", "cross-encoder (model)", 1),
        ("ensemble", "VSE, ensemble RGP", 0),
        ("head", "VSE, one head", 2),
    ):
        assert drawn[label].get_ydata().tolist() == [pool[column] for pool in pools]
        assert drawn[label].get_color() == LINES[number]["color"]


def test_the_running_mean_of_negatives_is_over_the_steps_around_each(tmp_path: Path) -> None:
    """Of 100 steps over five: two before and two after, fewer at the ends."""
    values = [float(63 - step % 7 - step // 10) for step in range(100)]
    head(tmp_path, "a", [1], negatives=[values])
    drawing = draw("negatives", tmp_path)
    expected = [np.mean(values[max(0, step - 2) : step + 3]) for step in range(100)]
    np.testing.assert_allclose(drawing.numbers["mean"], expected)
    assert "mean over the 5 steps around each" in drawing.caption
