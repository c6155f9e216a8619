"""The tables of VSE∞ but Table 11: whole systems on photographs and clips, and parts of the method varied."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.heads import pooling
from pipeline.provenance.head_record import HeadRecord
from pipeline.report import emphasis, names, networks
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable, TableColumns
from pipeline.report.table import MISSING, Note
from pipeline.settings.features import FEATURES

DIRECTIONS = (("i2t", "IMG → TEXT"), ("t2i", "TEXT → IMG"))
OF_CLIPS = (("i2t", "VIDEO → TEXT"), ("t2i", "TEXT → VIDEO"))
TASKS = (("i2t", "I → T"), ("t2i", "T → I"), ("t2t", "T → T"), ("i2i", "I → I"))
COCO_1K = (("coco_1k_5fold", "COCO 5-fold 1K Test"),)
COCO_5K = (("coco_5k", "COCO 5K Test"),)
BACKBONES = {
    "IN-R152": "ResNet-152 on ImageNet",
    "BUTD": "BUTD (Faster R-CNN, ResNet-101, on ImageNet and Visual Genome)",
    "WSL": "WSL (ResNeXt-101 on Instagram)",
    networks.OTHER: "Other image networks",
}
NETWORKS_OF_CLIPS = {"IN-R152": BACKBONES["IN-R152"], "I3D": "I3D on Kinetics", networks.OTHER: "Other networks"}
VIDEO = "-video"
"""Ending of the recipes of Tables 4a and 4b that others build on; behind it `_` and what is varied."""
RECIPES_OF_CLIPS = ("hgr", "hgr_infty")
"""Recipes for clips alone, and their variants behind `-`."""


def _is_shown(system: MeasuredSystem) -> bool:
    """Whether it is no variant of a paper's recipe; those have tables of their own."""
    return not names.is_variant(system.origin.recipe)


# Tables 2, 9 and 10: embeddings by image network and text encoder.


def _published(row: PublishedRow) -> RowHeader:
    """Only the authors' own runs, printed as `Our: ...`, are compared with measured ones."""
    visual, backbone, text = row["visual_feature"], row["backbone"], row["text_encoder"]
    star = "*" if row["ensemble"] == "1" else ""
    own = row["method"].startswith("Our: ")
    identity = (row["method"].removeprefix("Our: ") + star, visual, backbone, text) if own else None
    return RowHeader((row["method"] + star, names.features(visual)), _section(backbone, text), identity=identity)


def _measured(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if not _is_shown(system):
        return None
    method, network = names.method(origin.recipe, origin.visual), networks.backbone(system.members)
    identity = (names.published_method(origin.recipe), origin.visual, network, origin.text)
    return RowHeader((method, names.features(origin.visual)), _section(network, origin.text), identity=identity)


def _section(backbone: str, text: str) -> str:
    return f"{BACKBONES.get(backbone, backbone)} + {names.encoder(text)}"


def _of_networks(number: int, blocks: tuple[tuple[str, str], ...], data: str, **further: Any) -> RetrievalTable:
    return RetrievalTable(
        name=f"vse_infty_table{number}", data=data,
        caption="Visual-semantic embeddings by image network and text encoder on {data} in percent, after Table "
        f"{number} of VSE∞.",
        columns=TableColumns(("Method", "Feature Type"), blocks, DIRECTIONS), measured=_measured, published=_published,
        legend=(("*", "*: two models averaged."),), emphasis=emphasis.two_best_sums, **further)


# Table 3: vision-language BERTs.


def _published_berts(row: PublishedRow) -> RowHeader:
    if row["pretrain"] == "1":
        return RowHeader((row["method"], "✓", row["backbone"]), "Vision-language BERTs")
    method = f"{row['method']} ({'+'.join(row['visual_feature'])})" + "*" * (row["ensemble"] == "1")
    return RowHeader((method, "✗", row["backbone"]), "Embeddings", identity=(method, row["backbone"]))


def _measured_berts(system: MeasuredSystem) -> RowHeader | None:
    """Every system with BERT."""
    origin = system.origin
    if origin.text != "bert" or not _is_shown(system):
        return None
    named = (names.method(origin.recipe, origin.visual), names.published_method(origin.recipe))
    method, published = (f"{name} ({'+'.join(origin.visual)})" for name in named)
    network = networks.backbone(system.members)
    return RowHeader((method, "✗", network), "Embeddings", identity=(published, network))


# Tables 4a and 4b: clips.


def _published_clips(row: PublishedRow) -> RowHeader:
    backbone = row["backbone"]
    return RowHeader((row["method"],), NETWORKS_OF_CLIPS.get(backbone, backbone), identity=(row["method"], backbone))


def _measured_clips(system: MeasuredSystem) -> RowHeader | None:
    """Every system on frames."""
    origin = system.origin
    if origin.visual != FEATURES["frame"].letter:
        return None
    network, (base, _, varied) = networks.backbone(system.members), origin.recipe.partition(VIDEO)
    if VIDEO not in origin.recipe and base.partition("-")[0] not in RECIPES_OF_CLIPS:
        method = f"{names.method(base, origin.visual)}, trained as on photographs"
    else:
        method = names.method(f"{base}-{varied.removeprefix('_')}" if varied else base, origin.visual)
    return RowHeader((method,), NETWORKS_OF_CLIPS.get(network, network), identity=(method, network))


def _of_clips(letter: str, dataset: str) -> RetrievalTable:
    title = names.dataset(dataset)
    return RetrievalTable(
        name=f"vse_infty_table4{letter}", data=title,
        caption=f"Video–text retrieval on {{data}} in percent, after Table 4 ({letter}) of VSE∞.",
        columns=TableColumns(("Method",), ((dataset, title),), OF_CLIPS), measured=_measured_clips,
        published=_published_clips)


# Table 5: Crisscrossed Captions.


def _published_cxc(row: PublishedRow) -> RowHeader:
    """Show the image network of the paper's own rows."""
    network = row["backbone"]
    name = f"{row['method']} ({network})" if network else row["method"]
    identity = (row["method"], row["visual_feature"], network, row["text_encoder"]) if network else None
    return RowHeader((name,), identity=identity)


def _measured_cxc(system: MeasuredSystem) -> RowHeader | None:
    """Every system that was measured by CxC."""
    origin = system.origin
    if origin.benchmark != "coco_5k_cxc" or not _is_shown(system):
        return None
    method, network = names.method(origin.recipe, origin.visual), networks.backbone(system.members)
    return RowHeader((f"{method} ({names.features(origin.visual)}, {names.encoder(origin.text)})",),
                     identity=(names.published_method(origin.recipe), origin.visual, network, origin.text))


# Tables 1, 6, 7, 8, 12 and 13: one part of the method varied.

BEST = "Best Pooling Function"
"""Section 3.1: max pooling of regions, 20-max of grids."""
INFERRED = Note(
    "BiGRU is inferred: the paper does not name the text encoder of its Table 1, whose AvgPool on regions is VSE++ "
    "with BiGRU in its Table 9."
)
TICKS = {"1": "✓", "0": "✗"}


@dataclass(frozen=True)
class Ablation:
    """One of the tables.

    Attributes:
        caption: What is varied.
        headings: The headings of the label columns that say how.
        columns: The columns of the published file that hold these labels.
        recipes: Recipe -> its labels; RECIPE/LETTER for a recipe on that visual feature alone.
        text: The text encoder of published rows that name none.
        metrics: The metrics of each direction that the paper prints.
        directions: The directions in the paper's order.
        parameters: Whether the parameters of the image pooling are shown.
    """

    caption: str
    headings: tuple[str, ...]
    columns: tuple[str, ...]
    recipes: Mapping[str, tuple[str, ...]]
    text: str = ""
    metrics: tuple[str, ...] = ("r1", "r5")
    directions: tuple[tuple[str, str], ...] = DIRECTIONS
    parameters: bool = False


ABLATIONS = {
    "vse_infty_table1": Ablation(
        "Aggregators of image items in VSE++", ("Aggregator",), ("aggregator",),
        {"vse_pp": ("AvgPool",), "vse_pp-seq2seq": ("Seq2Seq",), "vse_pp-selfattn": ("SelfAttn",),
         "vse_pp-gcn_mean": ("GCN+AvgPool",), "vse_pp-gcn_seq2seq": ("GCN+Seq2Seq",),
         "vse_pp-max/R": (BEST,), "vse_pp-max": ("MaxPool",),
         "vse_pp-kmax20/G": (BEST,), "vse_pp-kmax20": ("20-MaxPool",)}, text="bigru", metrics=("r1",),
        directions=DIRECTIONS[::-1], parameters=True),
    "vse_infty_table6": Ablation(
        "Aggregators of image items and of tokens", ("Visual Aggr.", "Text Aggr."), ("visual_aggr", "text_aggr"),
        {"vse_infty-mean_cls": ("AvgPool", "CLS"), "vse_infty-mean_gpo": ("AvgPool", "GPO"),
         "vse_infty-gpo_cls": ("GPO", "CLS"), "vse_infty": ("GPO", "GPO")}),
    "vse_infty_table7": Ablation(
        "Size augmentation of neither side, of images alone, and of both", ("Size Aug.",), ("size_aug",),
        {"vse_infty-noaug": ("none",), "vse_infty-visualaug": ("visual",), "vse_infty": ("visual+text",)}),
    "vse_infty_table8": Ablation(
        "The sequence model of GPO", ("Seq. Model",), ("seq_model",),
        {"vse_infty-transformer": ("Transformer",), "vse_infty": ("BiGRU",)}),
    "vse_infty_table12": Ablation(
        "GPO with coefficients for each dimension, and with those for all", ("Per-dim?",), ("per_dim",),
        {"vse_infty-perdim": ("✓",), "vse_infty": ("✗",)}),
    "vse_infty_table13": Ablation(
        "GPO with coefficients that depend on the features, and with those of positions alone", ("Feature to g?",),
        ("feature_to_g",),
        {"vse_infty-datadep": ("✓",), "vse_infty": ("✗",)}),
}


def _varied(number: int) -> RetrievalTable:
    name = f"vse_infty_table{number}"
    ablation = ABLATIONS[name]
    labels = ("Features", *ablation.headings, *["#Param"] * ablation.parameters)
    return RetrievalTable(
        name=name, data="COCO 5-fold 1K",
        caption=f"{ablation.caption} on {{data}} in percent, after Table {number} of VSE∞.",
        columns=TableColumns(labels, COCO_1K, ablation.directions, metrics=ablation.metrics, rsum=False),
        measured=partial(_measured_varied, ablation), published=partial(_published_varied, ablation),
        emphasis=emphasis.best_of_groups, notes=(INFERRED,) * bool(ablation.text))


def _published_varied(ablation: Ablation, row: PublishedRow) -> RowHeader:
    values = tuple(TICKS.get(row[column], row[column]) for column in ablation.columns)
    return _header(row["visual_feature"], row["text_encoder"] or ablation.text, values,
                   [row["params"]] if ablation.parameters else [])


def _measured_varied(ablation: Ablation, system: MeasuredSystem) -> RowHeader | None:
    origin, recipes = system.origin, ablation.recipes
    if len(origin.visual) > 1:  # an ensemble
        return None
    values = recipes.get(f"{origin.recipe}/{origin.visual}") or recipes.get(origin.recipe)
    counted = [_parameters(system.members[0])] if ablation.parameters and values else []
    return _header(origin.visual, origin.text, values, counted) if values else None


def _header(visual: str, text: str, values: tuple[str, ...], further: Sequence[str]) -> RowHeader:
    """The header of a row; further: labels that do not tell one system from another."""
    features = f"{names.features(visual)} + {names.encoder(text)}"
    return RowHeader((features, *values, *further), group=features, identity=(features, *values))


def _parameters(member: HeadRecord) -> str:
    """The parameters of a head's image pooling as the paper prints them: 0 or 6.3M."""
    how, dimension = member.settings.get("image_pooling"), member.settings.get("dimension")
    if not how or not dimension:
        return MISSING
    options = {key: value for key, value in how.items() if key != "name"}
    module = pooling.build(how["name"], int(dimension), **options)
    count = sum(parameter.numel() for parameter in module.parameters())
    return f"{count / 1e6:.1f}M" if count else "0"


TABLE1, TABLE6, TABLE7, TABLE8, TABLE12, TABLE13 = map(_varied, (1, 6, 7, 8, 12, 13))
BOTH = (*COCO_1K, ("f30k_1k", "Flickr30K 1K Test"))
TABLE2 = _of_networks(2, BOTH, "COCO and Flickr30K")
TABLE9 = _of_networks(9, BOTH, "COCO and Flickr30K", elsewhere=None)
TABLE10 = _of_networks(10, COCO_5K, "COCO 5K", elsewhere=None)
TABLE3 = RetrievalTable(
    name="vse_infty_table3",
    caption="Embeddings with BERT and vision-language BERTs on {data} in percent, after Table 3 of VSE∞.",
    columns=TableColumns(("Method", "Pretrain", "CNN"), COCO_5K, DIRECTIONS, metrics=("r1", "r5"), rsum=False),
    measured=_measured_berts, published=_published_berts, data="COCO 5K",
    legend=(("Pretrain", "Pretrain: on pairs of images and text beyond COCO."), ("(R", "R: region, G: grid features."),
            ("*", "*: two models averaged.")),
    zero_shot=True,
)
TABLE4A, TABLE4B = _of_clips("a", "msrvtt"), _of_clips("b", "vatex")
TABLE5 = RetrievalTable(
    name="vse_infty_table5",
    caption="Retrieval on {data} in percent, after Table 5 of VSE∞. I: image, T: caption.",
    columns=TableColumns(("Method",), (("coco_5k_cxc", ""),), TASKS, ("r1", "r5"), rsum=False),
    measured=_measured_cxc, published=_published_cxc, data="COCO 5K with Crisscrossed Captions (CxC)",
)
