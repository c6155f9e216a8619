"""A table with a row for each query: its rank, ties and hits in every system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.evaluation.retrieval import Metrics
from pipeline.evaluation.retrieval.metrics import RECALLS
from pipeline.evaluation.retrieval.protocols import protocol as find
from pipeline.files.atomic import replacing
from pipeline.files.results import cell
from pipeline.systems.scores.system import System

if TYPE_CHECKING:
    import pandas as pd

KEYS = ["protocol", "language", "direction", "fold", "query"]


def table(system: System, found: Metrics, rules: object, name: str = "", language: str | None = None) -> pd.DataFrame:
    """The queries of one system."""
    import pandas as pd

    parts, start = [], f"{name} " if name else ""
    owner = system.caption_image if system.relevance is None else system.relevance.owner
    said = {} if language is None else {"language": language}
    cut = find(rules).parts(owner, system.shape[0])  # type: ignore[arg-type]
    for fold, (ranks, (images, captions)) in enumerate(zip(found.ranks, cut, strict=True)):
        for way, queries, places, ids in (("i2t", ranks.i2t, images, system.image_ids),
                                          ("t2i", ranks.t2i, captions, system.caption_ids)):
            parts.append(pd.DataFrame({
                "protocol": found.protocol, **said, "direction": way, "fold": fold, "query": ids[places[queries.query]],
                f"{start}rank": queries.ranks(found.ties), f"{start}tied": queries.equal,
                **{f"{start}R@{k}": queries.hits(k, found.ties) for k in RECALLS}}))
    return pd.concat(parts, ignore_index=True)


def joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Put several protocols' tables of one system below each other."""
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


def write(path: Path, tables: list[pd.DataFrame]) -> None:
    """Write the systems' tables side by side, by query."""
    whole = tables[0]
    for other in tables[1:]:
        whole = whole.merge(other, how="outer", on=[key for key in KEYS if key in whole], sort=False)
    with replacing(path) as partial:
        if path.suffix == ".parquet":
            whole.to_parquet(partial, index=False)
        else:
            whole.rename(columns=cell).to_csv(partial, index=False)
