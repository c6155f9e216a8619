"""Metrics by name, as ir_measures writes them: R@1, nDCG@10, AP.

A new one is a class in `kinds.py` and a line in `METRICS`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy
from pipeline.foundation.parts.errors import InputError, meant

if TYPE_CHECKING:
    from pipeline.foundation.evaluation.metrics.base import (
        RECALLS,
        RSUM,
        STATISTICS,
        TASKS,
        Metric,
        Statistic,
    )
    from pipeline.foundation.evaluation.metrics.standard import Metrics, evaluate, measure

lazy.imports(__name__)

METRICS: "lazy.LookupTable[type[Metric]]" = lazy.LookupTable(
    {
        "R": "pipeline.foundation.evaluation.metrics.kinds:Hit",
        "Recall": "pipeline.foundation.evaluation.metrics.kinds:Recall",
        "P": "pipeline.foundation.evaluation.metrics.kinds:Precision",
        "MRR": "pipeline.foundation.evaluation.metrics.kinds:ReciprocalRank",
        "nDCG": "pipeline.foundation.evaluation.metrics.kinds:NDCG",
        "AP": "pipeline.foundation.evaluation.metrics.kinds:AveragePrecision",
        "nDCG_exp": "pipeline.foundation.evaluation.metrics.kinds:ExponentialNDCG",
        "AP_min": "pipeline.foundation.evaluation.metrics.kinds:AveragePrecisionOfPossible",
        "mAP@R": "pipeline.foundation.evaluation.metrics.kinds:AveragePrecisionAtR",
        "Rprec": "pipeline.foundation.evaluation.metrics.kinds:RPrecision",
        "MedR": "pipeline.foundation.evaluation.metrics.kinds:MedianRank",
        "MeanR": "pipeline.foundation.evaluation.metrics.kinds:MeanRank",
        "mean_recall": "pipeline.foundation.evaluation.metrics.kinds:MeanRecall",
        "RSUM": "pipeline.foundation.evaluation.metrics.kinds:RSum",
        "mR": "pipeline.foundation.evaluation.metrics.kinds:MeanOfSix",
    },
    "metrics",
    base="pipeline.foundation.evaluation.metrics.base:Metric",
)

# Other code's name -> ours.
ALIASES = {"Success": "R", "RR": "MRR", "MAP": "AP", "R-Precision": "Rprec", "PMRP": "Rprec"}

WRITTEN = re.compile(
    r"(?P<name>mAP@R|[A-Za-z0-9_-]+)(\(rel=(?P<grade>\d+(\.\d+)?)\))?(@(?P<k>\d{1,9}))?",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def parse(name: str) -> "Metric":
    """The metric of a name.

    Args:
        name: Of `METRICS` or `ALIASES`, upper or lower case, with a cutoff where the metric has
            one: `nDCG@10`. With `(rel=2)`, candidates of a lower grade are wrong: `AP(rel=2)@100`.

    Raises:
        InputError: For an unknown name, for a cutoff that is missing, not wanted or 0.
    """
    written = WRITTEN.fullmatch(name.strip())
    known = {ours.lower(): ours for ours in METRICS}
    for alias, ours in ALIASES.items():
        known[alias.lower()] = ours
    if written is None or written["name"].lower() not in known:
        raise _unknown(name, known)
    metric = METRICS[known[written["name"].lower()]]
    k = None
    if written["k"]:
        k = int(written["k"])
    grade = None
    if written["grade"]:
        grade = float(written["grade"])
    if k == 0 or (k is None and metric.cutoff == "needed"):
        raise InputError(f"{name}: {metric.name} needs a cutoff from 1 up: {metric.name}@10")
    if k is not None and metric.cutoff == "none":
        raise InputError(f"{name}: {metric.name} has no cutoff; write {metric.name}")
    return metric(k, grade or None)


def _unknown(name: str, known: Mapping[str, str]) -> InputError:
    """The error for a name that is no metric's, or whose cutoff is no whole number."""
    base, _, cutoff = name.strip().partition("@")
    if base.lower() in known and "@" not in cutoff:
        return InputError(f"{name}: expected a whole number from 1 up after @, as in {base}@10")
    hint = meant(re.split(r"[(@]", name.strip())[0], [*METRICS])
    return InputError(f"unknown metric {name!r}, with a cutoff as in nDCG@10; {hint}")


def parse_all(names: Sequence[str]) -> "list[Metric]":
    """The metrics of some names as `parse` takes them, each once, in order."""
    metrics: dict[str, Metric] = {}
    for name in names:
        metric = parse(name)
        metrics[str(metric)] = metric
    return list(metrics.values())
