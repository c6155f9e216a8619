"""The numbers of a result one by one, each with its interval, how that was computed, and of how
many queries it is.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pipeline.foundation.evaluation.metrics import parse
from pipeline.foundation.evaluation.metrics.base import (
    CONFIDENCE,
    TASKS,
    Metric,
    Statistic,
    at,
    flat,
)
from pipeline.foundation.parts.errors import InputError, few
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables import evaluated
from pipeline.judge.tables.evaluated import Results

# What computed them.
LIBRARY = "vse-pipeline"
# What intervals draw anew.
DRAWN = "images drawn with all their captions"
QUERIES_DRAWN = "queries drawn"


# What metrics are called by their ids; others by our names. A recall of several right answers is
# another number than R@K, which counts a query with any of them as a hit.
IDS = {
    "R": "hit_rate",
    "MedR": "median_rank",
    "MeanR": "mean_rank",
    "RSUM": "image_text_retrieval.rsum",
    "mR": "image_text_retrieval.mean_of_six_recalls",
    "mean_recall": "image_text_retrieval.mean_of_three_recalls",
}


@dataclass(frozen=True)
class Number:
    """One number; its interval is None where there is none."""

    statistic: Statistic
    value: float
    interval: tuple[float, float] | None
    queries: int
    drawn: str = DRAWN  # what its interval draws anew

    @property
    def metric(self) -> Metric:
        """What it measures."""
        return parse(self.statistic.metric)

    @property
    def unit(self) -> str:
        """What it is counted in: that of a sum of percentages is points."""
        if not self.metric.is_share:
            return "rank"
        if self.metric.most > 1:
            return "points"
        return "percent"

    @property
    def confidence_interval(self) -> dict[str, Any] | None:
        """Its interval by the names that catalogues have for it."""
        if self.interval is None:
            return None
        lower, upper = self.interval
        return {
            "lower": lower,
            "upper": upper,
            "confidence_level": CONFIDENCE,
            "method": _method(self.metric, self.drawn),
        }


def kind_of(metric: Metric) -> str:
    """The name of a metric as catalogues write it, without its cutoff: hit_rate."""
    return IDS.get(metric.name, metric.name.lower())


def id_of(metric: Metric) -> str:
    """The name of a metric as catalogues write it: hit_rate_at_5."""
    name = kind_of(metric)
    if metric.grade is not None:
        name += f"_rel_{metric.grade:g}"
    if metric.k is not None:
        name += f"_at_{metric.k}"
    return re.sub(r"[^a-z0-9_.]+", "_", name)


def _method(metric: Metric, drawn: str) -> str:
    """How the interval of a metric is computed, see `pipeline.foundation.evaluation.statistics`."""
    if metric.is_median:
        return f"percentile bootstrap, {drawn}"
    if not metric.is_share:
        return f"Student's t, {drawn}"
    of_sum = ""
    if metric.most > 1:
        of_sum = f" of the share of {100 * metric.most:g}"
    return (
        f"Wilson's score interval{of_sum} for the effective number of queries, with Student's t, "
        f"{drawn}"
    )


def numbers_of(result: Mapping[str, Any]) -> Iterator[Number]:
    """What was measured of the whole pool; without what is not known or infinite."""
    intervals = flat(result.get("interval", {}))
    statistics = [Statistic(way, metric) for way in TASKS for metric in result.get(way, {})]
    # Beside what is not measured in a direction there are sizes and rules.
    statistics += [statistic for statistic in intervals if not statistic.direction]
    drawn = DRAWN
    if not evaluated.are_images(result):
        drawn = QUERIES_DRAWN
    for statistic in statistics:
        value = at(result, statistic)
        if value is None or not math.isfinite(value):
            continue
        interval = intervals.get(statistic)
        if interval is not None and not all(map(math.isfinite, interval)):
            interval = None
        queries = sum(result["queries"].values())
        if statistic.direction:
            queries = result["queries"][statistic.direction]
        yield Number(statistic, value, interval, queries, drawn)


def pool_of(result: Mapping[str, Any]) -> dict[str, int]:
    """How many images and captions there are, or candidates and queries of a run of anything."""
    if evaluated.are_images(result):
        return {"images": result["images"], "captions": result["captions"]}
    return {"candidates": result["images"], "queries": result["captions"]}


def sizes_of(result: Mapping[str, Any], number: Number) -> dict[str, int]:
    """Of how many queries a number is, and how many images, or candidates, there are."""
    of_rows, _ = pool_of(result)
    return {"queries": number.queries, of_rows: result["images"]}


def require_one_model(results: Results, form: str) -> None:
    """Check that all numbers are of one system."""
    names = list(dict.fromkeys(printable(name) for name, _ in results))
    measured = {(name, result["protocol"]) for name, result in results}
    # Seeds in several folders may have one name.
    if len(names) > 1 or len(measured) < len(results):
        raise InputError(
            f"--export {form} is of one model, and these numbers are of {few(names)}: name one FILE alone"
        )


def dataset_of(name: str, result: Mapping[str, Any], on_hub: str) -> str:
    """The name of the data set of a result: its own, or the last part of that on Hugging Face."""
    known = result.get("dataset") or on_hub.rpartition("/")[2]
    if not known:
        raise InputError(
            f"{name}: the form names the data set, which is not known of these scores; give its --manifest, or "
            "--about dataset=OWNER/NAME"
        )
    return printable(known)


def library_version() -> str:
    """The version of this library."""
    return version(LIBRARY)
