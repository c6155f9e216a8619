"""Tables 1, 9 and 10 of Geigle et al.: the main results, and how wrong pairs are drawn in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report import cooperative, names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns
from pipeline.report.tables.rerank_tables_8_11 import BLOCKS, DIRECTIONS

GROUPS = {"G1": "G1: before Transformers", "G2": "G2: cross-encoders", "G3": "G3: embeddings, and cooperative"}
MARKS = {"†": ", from the literature", "‡": ", their own run"}
LOSSES = (("T^BHE", "T^BHE: triplet loss with the hardest wrong pair of a batch."),
          ("T^ANCE", "T^ANCE: triplet loss, the mean over wrong pairs drawn from the 50 nearest."),
          ("E", "E: cross-entropy of pairs, wrong ones drawn from all."),
          ("E^ANCE", "E^ANCE: some of the wrong ones from the 50 nearest (5 % in the paper)."))


def _published_main(row: PublishedRow) -> RowHeader:
    return RowHeader((f"{cooperative.published_label(row)}{MARKS.get(row['mark'], '')}",), GROUPS[row["group"]])


def _measured_main(system: MeasuredSystem) -> RowHeader | None:
    """Every system that is no variant of a paper's recipe."""
    if names.is_variant(system.origin.recipe):
        return None
    if cooperative.part(system) == "CE":
        group = "G2"
    else:
        group = "G1" if system.origin.text == "bigru" and not system.origin.rerank else "G3"
    return RowHeader((cooperative.label(system),), GROUPS[group])


def _published_loss(row: PublishedRow) -> RowHeader:
    loss = "not trained" if row["loss"] == "none" else row["loss"]
    return RowHeader((loss, cooperative.published_label(row)))


def _measured_embeddings(system: MeasuredSystem) -> RowHeader | None:
    """Cross-encoders that retrieve by their embeddings, as they were trained."""
    if cooperative.part(system) != "EMB":
        return None
    return RowHeader((loss(system.members[0].settings), cooperative.label(system)))


def _measured_joint(system: MeasuredSystem) -> RowHeader | None:
    """Networks that retrieve and rerank their own candidates."""
    if cooperative.part(system) != "JOIN+CO":
        return None
    return RowHeader((loss(system.members[0].settings), cooperative.label(system)))


def loss(settings: Mapping[str, Any]) -> str:
    """Name what a cross-encoder learnt by.

    Args:
        settings: Those of its recipe.

    Returns:
        For example "T^BHE + E^ANCE"; other objectives go by their own names.
    """
    tasks, pairs = cooperative.tasks(settings), settings.get("pairs") or {}
    objective = settings.get("objective", {}).get("name", "triplet")
    parts = ["T^BHE" if objective == "triplet" else str(objective)] * ("emb" in tasks)
    parts += ["T^ANCE"] * ("ance" in settings.get("tasks", ()))
    if "ce" in tasks:
        name = "E" if pairs.get("objective", "cross_entropy") == "cross_entropy" else str(pairs["objective"])
        parts.append(f"{name}^ANCE" if pairs.get("hard") else name)
    return " + ".join(parts)


TABLE1 = RetrievalTable(
    "rerank_table1", "Retrieval on {data} in percent, after Table 1 of Geigle et al.",
    TableColumns(("Method",), BLOCKS[1:], DIRECTIONS, rsum=False), _measured_main, _published_main,
    "MS-COCO and Flickr30K",
    legend=(("SEP+CO", "SEP+CO: EMB retrieves, CE orders the best candidates anew (20 in the paper)."),
            ("JOIN+CO", "JOIN+CO: one network does both.")),
)
TABLE9 = RetrievalTable(
    "rerank_table9", "Embeddings by how wrong pairs are drawn in training, on {data} in percent, after Table 9 of "
    "Geigle et al.",
    TableColumns(("Loss", "Method"), BLOCKS, DIRECTIONS, rsum=False), _measured_embeddings, _published_loss,
    "MS-COCO and Flickr30K", LOSSES[:2], note="MS-COCO 1K is one set of 1,000 images, not five folds.",
)
TABLE10 = RetrievalTable(
    "rerank_table10", "One network that retrieves and reranks (JOIN+CO) by how wrong pairs are drawn in training, on "
    "{data} in percent, after Table 10 of Geigle et al.",
    TableColumns(("Loss", "Method"), BLOCKS, DIRECTIONS, rsum=False), _measured_joint, _published_loss,
    "MS-COCO and Flickr30K", LOSSES, note="MS-COCO 1K is one set of 1,000 images, not five folds.",
)
