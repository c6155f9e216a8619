"""Numbers as the `model-index` of a model card on Hugging Face: the YAML at the head of a
README.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from pipeline.foundation.evaluation.metrics.base import STATISTICS, at
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables.evaluated import Results


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
    for statistic in STATISTICS:
        value = at(numbers, statistic)
        if value is not None:
            kind = statistic.metric.replace("R@", "recall_at_").lower()
            yield {"type": kind, "name": str(statistic), "value": value}
