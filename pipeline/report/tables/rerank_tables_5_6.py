"""Tables 5 and 6 of Geigle et al.: larger pools, and zero-shot retrieval. Both read `results/recorded.json`."""

from __future__ import annotations

from dataclasses import replace

from pipeline.report import cooperative, names
from pipeline.report.measured import MeasuredSystem, Results
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table import Table
from pipeline.report.table_columns import TableColumns
from pipeline.report.table_request import TableRequest
from pipeline.report.tables.rerank_tables_8_11 import DIRECTIONS

IN_DOMAIN = "In-Domain"
SAME = "on the same"
"""What the rows of systems that were trained on the tested data set say: a bound, which does not compete for bold."""


def build_larger(results: Results, request: TableRequest) -> Table:
    """Build Table 5.

    Args:
        results: What was measured; the table shows recorded systems with distractors.
        request: Which rows and columns are shown.

    Returns:
        The published rows, and a panel for each data set whose pool was enlarged.
    """
    larger = tuple(system for system in results.recorded if system.origin.distractors)
    return TABLE5.build(replace(results, systems=larger), request)


def build_zero_shot(results: Results, request: TableRequest) -> Table:
    """Build Table 6.

    Args:
        results: What was measured; the table shows recorded systems whose heads were trained on another data set,
            beside them the same systems of the run, which were trained on this one, and dual encoders as they come.
        request: Which rows and columns are shown.

    Returns:
        The published rows with those of the same test sets, and a panel for each other data set.
    """
    pools = [system for system in results.recorded if not system.origin.distractors]
    shifted = [system for system in pools if system.origin.trained_on and not system.origin.zero_shot]
    kinds = {_kind(system) for system in shifted}
    same = [system for system in results.systems if _kind(system) in kinds]
    as_they_come = {system.origin: system for system in (*results.systems, *pools) if system.origin.zero_shot}
    return TABLE6.build(replace(results, systems=(*same, *shifted, *as_they_come.values())), request)


def _kind(system: MeasuredSystem) -> tuple[str, str, str, str, str]:
    origin = system.origin
    return origin.dataset, origin.split, origin.recipe, origin.visual, origin.text


def _published_larger(row: PublishedRow) -> RowHeader:
    return RowHeader((cooperative.published_label(row), "as headed"))


def _measured_larger(system: MeasuredSystem) -> RowHeader | None:
    return RowHeader((cooperative.label(system), ", ".join(system.origin.distractors)))


def _published_zero_shot(row: PublishedRow) -> RowHeader:
    trained = SAME if row["zero_shot"] == "0" else "its own pairs" if row["method"] == "CLIP" else "on another"
    method = cooperative.published_label(row).replace(f", {IN_DOMAIN}", "")
    return RowHeader((trained, method), competes=trained != SAME)


def _measured_zero_shot(system: MeasuredSystem) -> RowHeader | None:
    other = system.origin.trained_on
    trained = f"on {names.DATASETS.get(other, other)}" if other else SAME
    return RowHeader((trained, cooperative.label(system)), competes=bool(other))


TABLE5 = RetrievalTable(
    "rerank_table5", "Retrieval among distractors, images and captions of other data that no query asks for, on {data} "
    "in percent, after Table 5 of Geigle et al.",
    TableColumns(("Method", "Distractors"), (
        ("f30k_1k_plus_cc14k_coco5k", "Flickr30K 1K, among CC 14K and MS-COCO 5K"),
        ("coco_5k_plus_cc14k_f30k1k", "MS-COCO 5K, among CC 14K and Flickr30K 1K")), DIRECTIONS, rsum=False),
    _measured_larger, _published_larger, "Flickr30K and MS-COCO",
    note="A distractor that fits a query counts as wrong, here and in the paper.",
)
TABLE6 = RetrievalTable(
    "rerank_table6", "Zero-shot retrieval, by heads that were trained on other data, on {data} in percent, after "
    "Table 6 of Geigle et al.",
    TableColumns(("Trained", "Method"), (("coco_5k", "MS-COCO 5K"), ("f30k_1k", "Flickr30K 1K"), ("cc_14k", "CC 14K")),
                 DIRECTIONS, rsum=False),
    _measured_zero_shot, _published_zero_shot, "MS-COCO, Flickr30K and CC",
    note="On another: Flickr30K for MS-COCO and for CC, MS-COCO for Flickr30K. Models such as OSCAR and UNITER are "
    "pretrained on MS-COCO, Flickr30K, CC and SBU (section 3 of the paper), CLIP on pairs of its own. Those trained on "
    "the same are a bound, and not bold.",
    zero_shot=True,
)
