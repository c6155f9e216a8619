"""VSE+2AD's tables of whole systems, 1 and 2."""

from pipeline.judge.tables.published import PublishedRow
from pipeline.run.report import emphasis, names
from pipeline.run.report.measured import MeasuredSystem
from pipeline.run.report.result_rows import RowHeader
from pipeline.run.report.retrieval_table import RetrievalTable


def _published_main(row: PublishedRow) -> RowHeader:
    return _main(row["visual_feature"], row["method"], row["method"], row["text_encoder"])


def _measured_main(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.visual not in emphasis.GROUP_COLOURS:
        return None
    method = names.method(origin.recipe, origin.visual)
    published = names.published_method(origin.recipe)
    return _main(origin.visual, method, published, origin.text)


def _main(visual: str, method: str, published: str, text: str) -> RowHeader:
    section = f"Text Encoder: {names.encoder(text)}"
    return RowHeader((visual, method), section, visual, identity=(visual, published, text))


def _published_all_features(row: PublishedRow) -> RowHeader:
    return RowHeader((row["method"],), identity=row["method"])


def _measured_all_features(system: MeasuredSystem) -> RowHeader | None:
    origin = system.origin
    if origin.visual != "RGP":
        return None
    method = names.method(origin.recipe)
    if origin.text == "bert":
        return RowHeader((method,), identity=names.published_method(origin.recipe))
    return RowHeader((f"{method} ({names.encoder(origin.text)})",))


TABLE1 = RetrievalTable.listed("vse2ad_table1", measured=_measured_main, published=_published_main)
TABLE2 = RetrievalTable.listed(
    "vse2ad_table2", measured=_measured_all_features, published=_published_all_features
)
