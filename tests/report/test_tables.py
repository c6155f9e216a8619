"""The tables besides the first: the paper's rows as printed, and the right measured rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from invented import built, everything, headlines, system, texts

from pipeline.foundation import settings
from pipeline.foundation.evaluation.metrics import STATISTICS
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.tables import published
from pipeline.judge.tables.table import TableRequest
from pipeline.make.heads.pooling import POOLINGS
from pipeline.run.report import tables
from pipeline.run.report.tables import vse_infty
from pipeline.run.report.tables.ablations import ABLATIONS, TABLES

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
PRINTED = {
    "vse2ad_table2": ("VSE+2AD", "52.5 80.2 69.5 91.2 475.9 45.3×"),
    "vse2ad_table3": ("−AdOpt", "39.2 71.1 81.5 53.4 82.2 90.5 417.9"),
    "vse2ad_table4": ("AdPool", "41.4 72.3 54.9 83.0 426.9 4.9×"),
    "vse2ad_tableA1": ("GPO", "41.2 71.1 55.6 82.0 422.9"),
    "vse2ad_tableC2": ("0.75", "0.25 40.6 71.4 54.1 82.2 421.3"),
    "vse_infty_table2": (
        "Our: VSE∞*",
        "Grid 85.6 98.0 99.4 73.1 94.3 97.7 548.1 88.7 98.9 99.8 76.1 94.5 97.1 555.1",
    ),
    "vse_infty_table3": ("VSE∞ (R+G)", "✗ BUTD 62.5 87.8 46.0 75.8"),
    "vse_infty_table5": ("VSE∞ (WSL)", "67.9 90.6 53.6 81.1 46.7 69.2 51.3 83.2"),
    "vse_infty_table10": ("GXN*", "Grid 42.0 – 84.7 31.7 – 74.6 –"),
}
VARIED = {  # Features + text encoder, what is varied, and the recalls
    "vse_infty_table1": (["Grid + BiGRU", "Best Pooling Function", "0"], "61.6 76.3"),
    "vse_infty_table6": (["Region + BERT", "AvgPool", "GPO"], "71.7 93.8 57.5 87.6"),
    "vse_infty_table7": (["Region + BiGRU", "visual"], "75.4 95.5 61.4 89.5"),
    "vse_infty_table8": (["Grid + BiGRU", "Transformer"], "76.6 95.7 62.7 90.7"),
    "vse_infty_table12": (["Region + BERT", "✓"], "79.3 96.1 64.7 91.3"),
    "vse_infty_table13": (["Region + BiGRU", "✗"], "78.5 96.0 61.7 90.3"),
}


def pooled(recipe: str) -> dict[str, Any]:
    """The image pooling of a shipped recipe, as a head records it."""
    return {"image_pooling": SETTINGS.recipe(recipe).image_pooling.model_dump()}


@pytest.mark.parametrize("name", PRINTED)
def test_columns_are_in_the_papers_order(name: str) -> None:
    label, printed = PRINTED[name]
    (panel,) = built(name, {}).panels
    assert [label, *printed.split()] in texts(panel)


@pytest.mark.parametrize("name", VARIED)
def test_columns_of_an_ablation_are_in_the_papers_order(name: str) -> None:
    labels, printed = VARIED[name]
    (panel,) = built(name, {}).panels
    assert [*labels, *printed.split()] in texts(panel)


@pytest.mark.specification
@pytest.mark.parametrize("name", sorted({*PRINTED, *VARIED, "vse2ad_table1"}))
def test_every_published_number_is_shown_once(name: str) -> None:
    (panel,) = built(name, {}).panels
    shown = sorted(
        text for row in texts(panel) for text in row if "." in text and not text.endswith("×")
    )
    columns = [
        *map(str, STATISTICS),
        "weight_obj",
        "weight_emb",
        "params",
        "t2t R@1",
        "t2t R@5",
        "i2i R@1",
        "i2i R@5",
    ]
    rows = published.load(name)
    printed = [
        row.cells[column] for row in rows for column in columns if "." in row.cells.get(column, "")
    ]
    assert shown == sorted(printed)


@pytest.mark.parametrize("name", sorted({*PRINTED, *VARIED, "vse2ad_table1", "vse_infty_table11"}))
def test_rows_in_doubt_have_notes_and_no_others(name: str) -> None:
    (panel,) = built(name, {}).panels
    marked = {
        mark
        for group in panel.groups
        for row in group.rows
        for cell in row.cells
        for mark in cell.marks
    }
    lettered = [note.mark for note in panel.notes if note.mark]
    assert marked == set(lettered)
    assert len(lettered) == sum(len(row.doubts) for row in published.load(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted({*PRINTED} - {"vse_infty_table5", "vse_infty_table9", "vse_infty_table10"})
)
def test_sample_rows_stand_apart(name: str) -> None:
    measured = {key: entry for key, entry in everything().items() if "sample" in key}
    main, other = built(name, measured).panels
    assert texts(main) == texts(built(name, {}).panels[0])
    assert texts(other)
    assert all("COCO" not in above for column in other.columns for above in column.above)


@pytest.mark.parametrize(
    ("name", "recipe", "labels"),
    [
        ("vse2ad_table3", "vse2ad", ["VSE+2AD"]),
        ("vse2ad_table3", "vse2ad-notok", ["−tok AdPool"]),
        ("vse2ad_table3", "vse2ad-noemb", ["−emb AdPool"]),
        ("vse2ad_table3", "vse2ad-noadpool", ["−AdPool"]),
        ("vse2ad_table3", "vse2ad-noadopt", ["−AdOpt"]),
        ("vse2ad_table4", "vse2ad", ["AdPool"]),
        ("vse2ad_table4", "vse2ad-gpo", ["GPO"]),
        ("vse2ad_table4", "vse2ad-seq2seq", ["Seq2Seq"]),
        ("vse2ad_tableA1", "vse2ad-manual", ["Manual"]),
        ("vse2ad_tableC2", "vse2ad-w25", ["0.25", "0.75"]),
        ("vse2ad_tableC2", "vse2ad-w50", ["0.5", "0.5"]),
        ("vse2ad_tableC2", "vse2ad-w75", ["0.75", "0.25"]),
        ("vse2ad_tableC2", "vse2ad-random", ["random", "random"]),
        ("vse2ad_tableC2", "vse2ad", ["AdPool", "AdPool"]),
    ],
)
def test_recipes_are_measured_against_their_published_row(
    name: str, recipe: str, labels: list[str]
) -> None:
    panel = built(
        name, system("coco", "coco_5k", recipe=recipe), request=TableRequest(delta=True)
    ).panels[0]
    *published_rows, measured = texts(panel)
    assert measured[: len(labels)] == labels
    (base,) = (row for row in published_rows if row[: len(labels)] == labels)
    where = [column.heading for column in panel.columns].index("RSUM")
    assert measured[where] == "330.0"
    assert measured[where + 1] == f"−{float(base[where]) - 330:.1f}"


@pytest.mark.parametrize(
    ("table", "recipe", "labels", "printed"),
    [
        ("1", "vse_pp-seq2seq", ["Seq2Seq", "6.3M"], "58.5 69.9"),
        ("1", "vse_pp-gcn_mean", ["GCN+AvgPool", "4.2M"], "54.9 69.0"),
        ("1", "vse_pp-max", ["Best Pooling Function", "0"], "60.7 74.5"),
        ("6", "vse_infty-mean_gpo", ["AvgPool", "GPO"], "71.7 93.8 57.5 87.6"),
        ("6", "vse_infty-gpo_cls", ["GPO", "CLS"], "73.8 94.8 59.2 88.0"),
        ("7", "vse_infty-noaug", ["none"], "74.6 95.0 60.6 89.1"),
        ("7", "vse_infty-visualaug", ["visual"], "75.4 95.5 61.4 89.5"),
        ("8", "vse_infty-transformer", ["Transformer"], "77.4 95.4 61.4 90.1"),
        ("12", "vse_infty-perdim", ["✓"], "76.5 95.9 61.2 89.6"),
        ("13", "vse_infty-datadep", ["✓"], "78.0 96.2 61.8 90.2"),
    ],
)
def test_an_ablations_recipe_stands_with_its_published_row(
    table: str, recipe: str, labels: list[str], printed: str
) -> None:
    text, shown = ("bert", "BERT") if table == "6" else ("bigru", "BiGRU")
    measured = system(
        "coco",
        "coco_1k_5fold",
        recipe=recipe,
        text=text,
        features={"region": "butd-36"},
        ensemble=None,
        settings=pooled(recipe),
    )
    *published_rows, row = texts(built(f"vse_infty_table{table}", measured).panels[0])
    stands = [f"Region + {shown}", *labels]
    assert [*stands, *printed.split()] in published_rows
    assert row[: len(stands)] == stands


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        (name, recipe)
        for name, ablation in ABLATIONS.items()
        if ablation.by_feature
        for recipe in ablation.recipes
    ],
)
def test_each_recipe_of_an_ablation_has_a_row_of_its_own(name: str, recipe: str) -> None:
    recipe, _, visual = recipe.partition("/")
    text = "bert" if name == "vse_infty_table6" else "bigru"
    features = {"grid": "grid16-butd_resnet101"} if visual == "G" else {"region": "butd-36"}
    measured = system(
        "coco",
        "coco_1k_5fold",
        recipe=recipe,
        features=features,
        text=text,
        ensemble=None,
        settings=pooled(recipe),
    )
    *published_rows, row = texts(built(name, measured, request=TableRequest(delta=True)).panels[0])
    labels = row[: -1 - 2 * len(getattr(TABLES, name).columns.metrics)]
    told_apart = len(labels) - ABLATIONS[name].parameters
    bases = [base for base in published_rows if base[:told_apart] == labels[:told_apart]]
    assert len(bases) == (0 if "Max" in labels[1] else 1)
    for base in bases:
        printed, ours = (sum(map(float, cells[len(labels) : -1])) for cells in (base, row))
        assert row[-1] == f"{ours - printed:+.1f}".replace("-", "−")


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("vse_infty_table7", "vse_infty-perdim"),
        ("vse2ad_table2", "vse2ad-gpo"),
        ("vse2ad_table3", "vse2ad-gpo"),
        ("vse2ad_table4", "vse2ad-notok"),
        ("vse2ad_table4", "vse2ad-w25"),
        ("vse2ad_table4", "vse2ad-nomargin"),
        ("vse2ad_table4", "vse_infty"),
        ("vse2ad_tableA1", "vse2ad"),
        ("vse2ad_tableC2", "vse2ad-notok"),
        ("vse_infty_table10", "vse2ad-gpo"),
    ],
)
def test_other_recipes_are_left_out(name: str, recipe: str) -> None:
    measured = system("coco", "coco_5k", recipe=recipe)
    assert texts(built(name, measured).panels[0]) == texts(built(name, {}).panels[0])


def test_a_recipe_that_differs_in_its_poolings_alone_has_a_row_whatever_its_name() -> None:
    vse2ad = SETTINGS.recipe("vse2ad").recorded()
    both = {"image_pooling": {"name": "max"}, "text_pooling": {"name": "max"}}
    cases: dict[str, tuple[dict[str, Any], str | None]] = {
        "both": (both, "MaxPool"),
        "images": ({"image_pooling": {"name": "kmax", "k": 3}}, "K-MaxPool–AdPool"),
        "own": ({"image_pooling": {"name": "adpool", "token": False}}, None),
        "rate": ({**both, "learning_rate": 0.1}, None),
        "epochs": ({**both, "epochs": 99}, "MaxPool"),
    }
    published = texts(built("vse2ad_table4", {}).panels[0])
    for name, (changes, label) in cases.items():
        measured = system("coco", "coco_5k", recipe=f"my_{name}", settings=vse2ad | changes)
        rows = texts(built("vse2ad_table4", measured).panels[0])[len(published) :]
        assert [row[0] for row in rows] == ([] if label is None else [label]), name
    # Where a project changes the method itself, its recipes build on that.
    changed = vse2ad | {"learning_rate": 0.1}
    measured = system("coco", "coco_5k", settings=changed)
    measured |= system("coco", "coco_5k", recipe="mine", settings=changed | both)
    rows = texts(built("vse2ad_table4", measured).panels[0])[len(published) :]
    assert [row[0] for row in rows] == ["AdPool", "MaxPool"]


def test_a_table_names_recipes_that_were_measured_on_features_that_it_does_not_show() -> None:
    measured = system("coco", "coco_5k", recipe="vse2ad-gpo", ensemble="G", features={"grid": "g"})
    measured |= system("coco", "coco_5k", recipe="vse2ad-seq2seq", text="bert")
    measured |= system("coco", "coco_5k") | system(
        "coco", "coco_5k", ensemble="G", features={"grid": "g"}
    )
    for table, named in (("4", True), ("A1", True), ("C2", False)):
        notes = [note.text for note in built(f"vse2ad_table{table}", measured).panels[0].notes]
        said = "Region features with BiGRU alone have rows, not vse2ad-gpo (Grid, BiGRU), vse2ad-seq2seq (Region, BERT)."
        assert (said in notes) == named, table


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_pooling_has_a_row_of_its_own_without_more_lines(pooling: str) -> None:
    measured = system("coco", "coco_5k", recipe=f"vse2ad-{pooling}")
    assert texts(built("vse2ad_table4", measured).panels[0])[-1][0] == POOLINGS.title(pooling)


def test_other_features_and_encoders_are_left_out_of_the_analyses() -> None:
    measured = system("coco", "coco_5k", text="bert")
    measured |= system(
        "coco", "coco_5k", ensemble="RG", features={"region": "butd", "grid": "butd"}
    )
    assert len(texts(built("vse2ad_table3", measured).panels[0])) == 5


def test_measured_rows_follow_the_papers_order() -> None:
    measured = system("coco", "coco_5k") | system("coco", "coco_5k", recipe="vse2ad-w75")
    measured |= system("coco", "coco_5k", recipe="vse2ad-w25")
    rows = texts(built("vse2ad_tableC2", measured).panels[0])[5:]
    assert [row[0] for row in rows] == ["0.25", "0.75", "AdPool"]


def test_rows_that_the_paper_lacks_stay_in_the_order_measured() -> None:
    measured: dict[str, Any] = {}
    for feature in ("region", "grid", "patch"):
        measured |= system("sample", "all", ensemble=None, features={feature: "small"})
    panel = built("vse_infty_table2", measured).panels[1]
    assert [row[1] for row in texts(panel)] == ["Region", "Grid", "Patch"]


def test_vse_infty_is_compared_under_the_same_network_only() -> None:
    def difference(engine: str) -> str:
        measured = system("coco", "coco_5k", recipe="vse_infty", features={"region": engine})
        return texts(
            built("vse_infty_table10", measured, request=TableRequest(delta=True)).panels[0]
        )[-1][-1]

    assert difference("butd-10-100") == "−91.9"
    assert difference("pyramid36-small") == ""


def test_sum_of_recalls_is_compared_where_no_rsum_is_printed() -> None:
    measured = system("coco", "coco_5k", recipe="vse_infty", text="bert")
    row = texts(built("vse_infty_table3", measured, request=TableRequest(delta=True)).panels[0])[-1]
    assert row == ["VSE∞ (R)", "✗", "BUTD", "50.0", "55.0", "50.0", "55.0", "−48.7"]


@pytest.mark.slow
@pytest.mark.parametrize("name", tables.TABLES)
def test_published_or_measured_rows_alone(name: str) -> None:
    measured = everything()
    only = built(name, measured, TableRequest(rows="published")).panels
    assert len(only) == (name != "systems")  # which no paper prints
    for printed in only:
        assert not any(row.sources for group in printed.groups for row in group.rows)
        assert "measured" not in printed.caption
    for panel in built(name, measured, TableRequest(rows="measured", delta=True)).panels:
        assert all(row.sources for group in panel.groups for row in group.rows)
        assert "published" not in panel.caption
        assert not [group.title for group in panel.groups if "Measured" in group.title]
    assert built(name, {}, TableRequest(rows="measured")).panels == ()


def test_other_columns_than_the_papers() -> None:
    asked = TableRequest(metrics=("R@1", "RSUM"))
    panel, *_ = built("vse2ad_table1", system("coco", "coco_1k_5fold"), asked).panels
    assert [column.heading for column in panel.columns] == [
        "VF",
        "Method",
        *["R@1", "R@1", "RSUM"] * 2,
    ]
    panel, *_ = built("vse2ad_table2", {}, TableRequest(metrics=("R@10",))).panels
    assert {cell for row in texts(panel) for cell in row[1:3]} == {
        "–"
    }  # the paper prints no R@10 here
    with pytest.raises(InputError, match="unknown metric 'R7x'"):
        built("vse2ad_table1", {}, TableRequest(metrics=("R7x",)))


def test_a_caption_speaks_of_the_rows_below_it_alone() -> None:
    regions = built("vse2ad_table1", system("sample", "all"), TableRequest(rows="measured")).panels[
        0
    ]
    assert "blue" not in regions.caption
    assert "RGP" not in regions.caption
    assert "0123456789abcdef"[:8] not in regions.caption  # the manifest's digest
    assert any("0123456789abcdef" in line for line in regions.made_from)


def test_unknown_table_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"unknown table .vse2ad_table9.; did you mean vse2ad_table\d"
    ):
        built("vse2ad_table9", {})


def test_table_5_shows_what_was_measured_by_cxc_and_no_other_table_does() -> None:
    measured = system(
        "coco",
        "coco_5k",
        recipe="vse_infty",
        ensemble=None,
        features={"grid": "grid16-wsl"},
        text="bert",
        images=5000,
        captions=25000,
    )
    entry = next(iter(measured.values()))
    before = {
        name: texts(built(name, measured).panels[0])
        for name in ("vse_infty_table5", "vse_infty_table10")
    }
    entry["coco_5k"]["extended"] = {
        "cxc": {
            way: {f"R@{k}": value + k * (value in (50.0, 20.0)) for k in (1, 5, 10)}
            for way, value in (("i2t", 50.0), ("t2i", 40.0), ("i2i", 30.0), ("t2t", 20.0))
        }
        | {"interval": {}}
    }
    (panel,) = built("vse_infty_table5", measured).panels
    assert len(before["vse_infty_table5"]) == 4
    assert texts(panel)[:4] == before["vse_infty_table5"]
    assert texts(panel)[4][1:] == ["51.0", "55.0", "40.0", "40.0", "21.0", "25.0", "30.0", "30.0"]
    assert texts(built("vse_infty_table10", measured).panels[0]) == before["vse_infty_table10"]
    assert [table.origin.protocol for table in headlines(measured)] == [
        "coco_5k"
    ]  # the report has its RSUM once
    entry["coco_5k"]["extended"]["cxc"]["t2t"]["R@1"] = float("nan")
    with pytest.raises(InputError, match="t2t R@1 is not a finite number"):
        built("vse_infty_table5", measured)


def test_what_the_authors_averaged_is_not_what_one_system_is_compared_with() -> None:
    """A star marks a row of two models whose similarities were averaged."""
    row: Any = {
        "method": "Our: VSE∞",
        "visual_feature": "R",
        "backbone": "BUTD",
        "text_encoder": "bigru",
        "pretrain": "0",
    }
    for header in (vse_infty._published, vse_infty._published_berts):
        alone = header(row | {"ensemble": "0"})
        averaged = header(row | {"ensemble": "1"})
        assert averaged.labels == (f"{alone.labels[0]}*", *alone.labels[1:])
        assert None not in (alone.identity, averaged.identity)
        assert averaged.identity != alone.identity
