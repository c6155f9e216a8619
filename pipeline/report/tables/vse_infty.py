"""VSE∞'s tables of whole systems, on photographs and clips: 2 to 5, 9 and 10."""

from pipeline.report import names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.settings.features import FEATURES

# Image network -> the heading of its rows, `names.OTHER` among them.
BACKBONES, NETWORKS_OF_CLIPS = names.NAMES["backbones"], names.NAMES["backbones_of_clips"]
# Recipe for clips -> its name in Tables 4a and 4b.
CLIPS = names.NAMES["clips"]


# Tables 2, 9 and 10: embeddings by image network and text encoder.


def _published(row: PublishedRow) -> RowHeader:
    """The header of a published row; only the authors' own runs, `Our: ...`, are compared with
    measured ones.
    """
    visual, backbone, text = row["visual_feature"], row["backbone"], row["text_encoder"]
    star = "*" if row["ensemble"] == "1" else ""
    is_own = row["method"].startswith("Our: ")
    identity = (
        (row["method"].removeprefix("Our: ") + star, visual, backbone, text) if is_own else None
    )
    return RowHeader(
        (row["method"] + star, names.features(visual)), _section(backbone, text), identity=identity
    )


def _measured(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    method, network = names.method(origin.recipe, origin.visual), names.backbone(system.members)
    identity = (names.published_method(origin.recipe), origin.visual, network, origin.text)
    return RowHeader(
        (method, names.features(origin.visual)), _section(network, origin.text), identity=identity
    )


def _section(backbone: str, text: str) -> str:
    return f"{BACKBONES.get(backbone, backbone)} + {names.encoder(text)}"


# Table 3: vision-language BERTs.


def _published_berts(row: PublishedRow) -> RowHeader:
    if row["pretrain"] == "1":
        return RowHeader((row["method"], "✓", row["backbone"]), "Vision-language BERTs")
    method = f"{row['method']} ({'+'.join(row['visual_feature'])})" + (
        "*" if row["ensemble"] == "1" else ""
    )
    return RowHeader(
        (method, "✗", row["backbone"]), "Embeddings", identity=(method, row["backbone"])
    )


def _measured_berts(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.text != "bert":
        return None
    named = (names.method(origin.recipe, origin.visual), names.published_method(origin.recipe))
    method, published = (f"{name} ({'+'.join(origin.visual)})" for name in named)
    network = names.backbone(system.members)
    return RowHeader((method, "✗", network), "Embeddings", identity=(published, network))


# Tables 4a and 4b: clips.


def _published_clips(row: PublishedRow) -> RowHeader:
    backbone = row["backbone"]
    return RowHeader(
        (row["method"],),
        NETWORKS_OF_CLIPS.get(backbone, backbone),
        identity=(row["method"], backbone),
    )


def _measured_clips(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.visual != FEATURES["frame"].letter:
        return None
    network = names.backbone(system.members)
    method = (
        CLIPS.get(origin.recipe)
        or f"{names.method(origin.recipe, origin.visual)}, trained as on photographs"
    )
    return RowHeader((method,), NETWORKS_OF_CLIPS.get(network, network), identity=(method, network))


# Table 5: Crisscrossed Captions.


def _published_cxc(row: PublishedRow) -> RowHeader:
    """The header of a published row; in the paper's own rows it names the image network."""
    network = row["backbone"]
    name = f"{row['method']} ({network})" if network else row["method"]
    identity = (
        (row["method"], row["visual_feature"], network, row["text_encoder"]) if network else None
    )
    return RowHeader((name,), identity=identity)


def _measured_cxc(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.benchmark != "coco_5k_cxc":
        return None
    method, network = names.method(origin.recipe, origin.visual), names.backbone(system.members)
    return RowHeader(
        (f"{method} ({names.features(origin.visual)}, {names.encoder(origin.text)})",),
        identity=(names.published_method(origin.recipe), origin.visual, network, origin.text),
    )


TABLE2 = RetrievalTable.listed("vse_infty_table2", measured=_measured, published=_published)
TABLE3 = RetrievalTable.listed(
    "vse_infty_table3", measured=_measured_berts, published=_published_berts
)
TABLE4A, TABLE4B = (
    RetrievalTable.listed(
        f"vse_infty_table4{letter}", measured=_measured_clips, published=_published_clips
    )
    for letter in "ab"
)
TABLE5 = RetrievalTable.listed("vse_infty_table5", measured=_measured_cxc, published=_published_cxc)
TABLE9, TABLE10 = (
    RetrievalTable.listed(
        f"vse_infty_table{number}", measured=_measured, published=_published, elsewhere=None
    )
    for number in (9, 10)
)
