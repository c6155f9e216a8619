"""VSE∞'s tables of whole systems, on photographs and clips: 2 to 5, 9 and 10."""

from pipeline.foundation.settings.features import FEATURES
from pipeline.judge.tables.published import PublishedRow
from pipeline.run.report import names
from pipeline.run.report.measured import MeasuredSystem
from pipeline.run.report.result_rows import RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable

# Image network -> the heading of its rows, `names.OTHER` among them.
BACKBONES = names.NAMES["backbones"]
NETWORKS_OF_CLIPS = names.NAMES["backbones_of_clips"]
# Recipe for clips -> its name in Tables 4a and 4b.
CLIPS = names.NAMES["clips"]


# Tables 2, 9 and 10: embeddings by image network and text encoder.


def _published(row: PublishedRow) -> RowHeader:
    """The header of a published row; only the authors' own runs, `Our: ...`, are compared with
    measured ones.
    """
    visual = row["visual_feature"]
    backbone = row["backbone"]
    text = row["text_encoder"]
    star = "*" if row["ensemble"] == "1" else ""
    identity = None
    if row["method"].startswith("Our: "):
        method = row["method"].removeprefix("Our: ") + star
        identity = (method, visual, backbone, text)
    labels = (row["method"] + star, names.features(visual))
    return RowHeader(labels, _section(backbone, text), identity=identity)


def _measured(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    network = names.backbone(system.members)
    identity = (names.published_method(origin.recipe), origin.visual, network, origin.text)
    labels = (names.method(origin.recipe, origin.visual), names.features(origin.visual))
    return RowHeader(labels, _section(network, origin.text), identity=identity)


def _section(backbone: str, text: str) -> str:
    return f"{BACKBONES.get(backbone, backbone)} + {names.encoder(text)}"


# Table 3: vision-language BERTs.


def _published_berts(row: PublishedRow) -> RowHeader:
    backbone = row["backbone"]
    if row["pretrain"] == "1":
        return RowHeader((row["method"], "✓", backbone), "Vision-language BERTs")
    method = f"{row['method']} ({'+'.join(row['visual_feature'])})"
    if row["ensemble"] == "1":
        method += "*"
    return RowHeader((method, "✗", backbone), "Embeddings", identity=(method, backbone))


def _measured_berts(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.text != "bert":
        return None
    visual = "+".join(origin.visual)
    method = f"{names.method(origin.recipe, origin.visual)} ({visual})"
    published = f"{names.published_method(origin.recipe)} ({visual})"
    network = names.backbone(system.members)
    return RowHeader((method, "✗", network), "Embeddings", identity=(published, network))


# Tables 4a and 4b: clips.


def _published_clips(row: PublishedRow) -> RowHeader:
    method = row["method"]
    backbone = row["backbone"]
    network = NETWORKS_OF_CLIPS.get(backbone, backbone)
    return RowHeader((method,), network, identity=(method, backbone))


def _measured_clips(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.visual != FEATURES["frame"].letter:
        return None
    network = names.backbone(system.members)
    method = CLIPS.get(origin.recipe)
    if not method:
        method = f"{names.method(origin.recipe, origin.visual)}, trained as on photographs"
    return RowHeader((method,), NETWORKS_OF_CLIPS.get(network, network), identity=(method, network))


# Table 5: Crisscrossed Captions.


def _published_cxc(row: PublishedRow) -> RowHeader:
    """The header of a published row; in the paper's own rows it names the image network."""
    method = row["method"]
    network = row["backbone"]
    if not network:
        return RowHeader((method,))
    identity = (method, row["visual_feature"], network, row["text_encoder"])
    return RowHeader((f"{method} ({network})",), identity=identity)


def _measured_cxc(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.benchmark != "coco_5k_cxc":
        return None
    method = names.method(origin.recipe, origin.visual)
    label = f"{method} ({names.features(origin.visual)}, {names.encoder(origin.text)})"
    network = names.backbone(system.members)
    identity = (names.published_method(origin.recipe), origin.visual, network, origin.text)
    return RowHeader((label,), identity=identity)


TABLE2 = RetrievalTable.listed("vse_infty_table2", measured=_measured, published=_published)
TABLE3 = RetrievalTable.listed(
    "vse_infty_table3", measured=_measured_berts, published=_published_berts
)
TABLE4A = RetrievalTable.listed(
    "vse_infty_table4a", measured=_measured_clips, published=_published_clips
)
TABLE4B = RetrievalTable.listed(
    "vse_infty_table4b", measured=_measured_clips, published=_published_clips
)
TABLE5 = RetrievalTable.listed("vse_infty_table5", measured=_measured_cxc, published=_published_cxc)
TABLE9 = RetrievalTable.listed(
    "vse_infty_table9", measured=_measured, published=_published, elsewhere=None
)
TABLE10 = RetrievalTable.listed(
    "vse_infty_table10", measured=_measured, published=_published, elsewhere=None
)
