"""Numbers as the `model-index` of a model card on Hugging Face: the YAML at the head of a
README.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from pipeline.foundation.evaluation.metrics.base import STATISTICS, Statistic, at, flat
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables.evaluated import Results

# How the intervals of recalls and RSUM are computed, see
# `pipeline.foundation.evaluation.statistics.intervals`.
METHOD = "Wilson's score interval, images drawn with all their captions"


def to_yaml(results: Results) -> str:
    """Write the front matter of a model card: each system with its numbers on its data set, by each
    protocol.

    Raises:
        InputError: If the data set of a system is not known.
    """
    models: dict[str, list[dict[str, Any]]] = {}
    for name, numbers in results:
        if not numbers.get("dataset"):
            raise InputError(
                f"{name}: a model-index names the data set, which is not known of these scores; give its "
                "--manifest"
            )
        models.setdefault(printable(name), []).append(_result(numbers))
    index = [{"name": name, "results": of_model} for name, of_model in models.items()]
    return f"---\n{yaml.safe_dump({'model-index': index}, sort_keys=False, allow_unicode=True)}---"


def _result(numbers: Mapping[str, Any]) -> dict[str, Any]:
    dataset = printable(numbers["dataset"])
    described = {"type": dataset, "name": f"{dataset}, protocol {numbers['protocol']}"}
    if numbers.get("split"):
        described["split"] = numbers["split"]
    return {
        "task": {"type": "image-text-retrieval", "name": "Image-text retrieval"},
        "dataset": described,
        "metrics": list(_metrics(numbers)),
    }


def _metrics(numbers: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    intervals = flat(numbers.get("interval", {}))
    for statistic in STATISTICS:
        value = at(numbers, statistic)
        if value is None:
            continue
        kind = statistic.metric.replace("R@", "recall_at_").lower()
        metric = {"type": kind, "name": str(statistic), "value": value}
        interval = intervals.get(statistic)
        if interval is not None:
            metric["args"] = _arguments(numbers, statistic, interval)
        yield metric


def _arguments(
    numbers: Mapping[str, Any], statistic: Statistic, interval: Iterable[float]
) -> dict[str, Any]:
    """The interval of a number, how it was computed, and of how many queries the number is."""
    lower, upper = interval
    queries = numbers["queries"]
    count = sum(queries.values())
    if statistic.direction:
        count = queries[statistic.direction]
    return {
        "unit": "percent",
        "confidence_interval": {
            "lower": lower,
            "upper": upper,
            "confidence_level": 0.95,
            "method": METHOD,
        },
        "queries": count,
        "images": numbers["images"],
    }
