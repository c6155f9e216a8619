"""Tables 8 and 11 of Geigle et al.: how many candidates are reranked, and how both scores become one."""

from __future__ import annotations

from pipeline.report import names
from pipeline.report.measured import MeasuredSystem
from pipeline.report.published import PublishedRow
from pipeline.report.result_rows import RowHeader
from pipeline.report.retrieval_table import RetrievalTable
from pipeline.report.table_columns import TableColumns

DIRECTIONS = (("t2i", "TEXT → IMG"), ("i2t", "IMG → TEXT"))
BLOCKS = (("coco_1k", "MS-COCO 1K"), ("coco_5k", "MS-COCO 5K"), ("f30k_1k", "Flickr30K 1K"))
SUMS = {"add": "ADD", "norm_add": "NORM_ADD"}
MODELS = {"SEP+CO^OSCAR": "SEP+CO (OSCAR)", "JOIN+CO^OSCAR": "JOIN+CO (OSCAR)"}


def _system(system: MeasuredSystem) -> str:
    origin = system.origin
    return (f"{names.method(origin.recipe, origin.visual)} ({names.features(origin.visual)}, "
            f"{names.encoder(origin.text)})")


def _published_k(row: PublishedRow) -> RowHeader:
    return RowHeader((row["k"], MODELS[row["method"]]), group=row["method"])


def _measured_k(system: MeasuredSystem) -> RowHeader | None:
    """Systems that are reranked by the scorer alone."""
    step = dict(system.origin.rerank)
    if not step or set(SUMS) & step.keys():
        return None
    return RowHeader((str(step["k"]), _system(system)), group=_system(system))


def _published_sum(row: PublishedRow) -> RowHeader:
    how = "scorer alone" if row["sum"] == "none" else row["sum"]
    return RowHeader((how, row["lambda"], MODELS[row["method"]]), group=row["method"])


def _measured_sum(system: MeasuredSystem) -> RowHeader | None:
    """Systems that are reranked, whatever the combination."""
    step = dict(system.origin.rerank)
    if not step:
        return None
    how = next((name for name in SUMS if name in step), "")
    return RowHeader((SUMS.get(how, "scorer alone"), f"{step[how]:g}" if how else "0.0", _system(system)),
                     group=_system(system))


TABLE8 = RetrievalTable(
    "rerank_table8", "The retriever's best k candidates reranked, on {data} in percent, after Table 8 of Geigle et al.",
    TableColumns(("k", "Method"), BLOCKS, DIRECTIONS, rsum=False), _measured_k, _published_k,
    "MS-COCO and Flickr30K", note="MS-COCO 1K is one set of 1,000 images, not five folds.",
)
TABLE11 = RetrievalTable(
    "rerank_table11", "The retriever's and the scorer's scores of the candidates combined, on {data} in percent, after "
    "Table 11 of Geigle et al. λ: the retriever's share.",
    TableColumns(("Sum", "λ", "Method"), BLOCKS[2:], DIRECTIONS, rsum=False), _measured_sum, _published_sum,
    "Flickr30K",
)
