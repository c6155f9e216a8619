"""Numbers as a record of Every Eval Ever, a store of evaluations of all kinds of models.

Source:
    https://github.com/evaleval/every_eval_ever, `every_eval_ever/schemas/eval.schema.json`.
"""

import inspect
import json
import time
from collections.abc import Mapping
from typing import Any

from pipeline.extensions.catalogues import measured
from pipeline.extensions.catalogues.measured import Number
from pipeline.extensions.catalogues.options import EveryEvalEverOptions
from pipeline.foundation.evaluation.metrics.base import Metric, flat
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables import evaluated
from pipeline.judge.tables.catalogues import Catalogue
from pipeline.judge.tables.evaluated import Results

VERSION = "0.3.0"  # of the schema
SPLITS = ("train", "val", "test")  # that the schema knows


class EveryEvalEver(Catalogue):
    """All numbers of one model, by each protocol."""

    def __init__(self, about: EveryEvalEverOptions) -> None:
        self.about = about

    def text(self, results: Results) -> str:
        measured.require_one_model(results, "every-eval-ever")
        content: dict[str, Any] = {
            "source_metadata": self._source(),
            "eval_library": {"name": measured.LIBRARY, "version": measured.library_version()},
            "model_info": self._model(),
            "evaluation_results": [],
        }
        if self.about.date:
            content["evaluation_timestamp"] = self.about.date
        for name, result in results:
            for number in measured.numbers_of(result):
                content["evaluation_results"].append(self._result(name, result, number))
        dataset = measured.dataset_of(*results[0], self.about.dataset)
        model = self.about.model.replace("/", "_")
        record = {
            "schema_version": VERSION,
            # By the content, so that an evaluation has the same one whenever it is written.
            "evaluation_id": f"{dataset}/{model}/{digest(content)[:16]}",
            "retrieved_timestamp": str(int(time.time())),
            **content,
        }
        return json.dumps(record, indent=1, allow_nan=False)

    def _source(self) -> dict[str, str]:
        source = {
            "source_type": "evaluation_run",
            "source_organization_name": self.about.organisation,
            "evaluator_relationship": self.about.relationship,
        }
        if self.about.url:
            source["source_organization_url"] = self.about.url
        return source

    def _model(self) -> dict[str, Any]:
        model = {
            "name": self.about.model.rpartition("/")[2],
            "id": self.about.model,
            "additional_details": {
                "deployment_type": self.about.deployment,
                "model_availability": self.about.availability,
            },
        }
        if self.about.developer:
            model["developer"] = self.about.developer
        return model

    def _result(self, name: str, result: Mapping[str, Any], number: Number) -> dict[str, Any]:
        dataset = measured.dataset_of(name, result, self.about.dataset)
        statistic = number.statistic
        names = [dataset, result.get("split"), result["protocol"], statistic.direction]
        evaluation = printable(".".join(filter(None, names)))
        return {
            "evaluation_result_id": f"{evaluation}.{statistic.metric}",
            "evaluation_name": evaluation,
            "source_data": self._data(dataset, result),
            "metric_config": _metric(result, number),
            "score_details": _score(result, number),
        }

    def _data(self, dataset: str, result: Mapping[str, Any]) -> dict[str, Any]:
        """The data set, by its name on Hugging Face where it is known."""
        data: dict[str, Any] = {
            "dataset_name": dataset,
            "source_type": "other",
            "additional_details": {
                "protocol": result["protocol"],
                **{name: str(count) for name, count in measured.pool_of(result).items()},
            },
        }
        split = result.get("split")
        if split:
            data["additional_details"]["split"] = printable(split)
        if self.about.dataset:
            data["source_type"] = "hf_dataset"
            data["hf_repo"] = self.about.dataset
            if split in SPLITS:
                data["hf_split"] = split
        return data


def _metric(result: Mapping[str, Any], number: Number) -> dict[str, Any]:
    """What was measured, and between which bounds it may be."""
    metric = number.metric
    task = "both directions"
    if number.statistic.direction:
        task = printable(evaluated.task(result, number.statistic.direction))
    lowest = 0.0
    highest: float | str = 100.0 * metric.most
    if not metric.is_share:
        lowest = 1.0
        highest = "Infinity"
    described = {
        "evaluation_description": f"{task}: {_definition(metric)}",
        "metric_id": measured.id_of(metric),
        "metric_name": str(metric),
        "metric_kind": measured.kind_of(metric),
        "metric_unit": number.unit,
        "lower_is_better": metric.less_is_better,
        "score_type": "continuous",
        "min_score": lowest,
        "max_score": highest,
        "additional_details": {"ties": result["ties"]},
    }
    if metric.k is not None:
        described["metric_parameters"] = {"k": metric.k}
    return described


def _definition(metric: Metric) -> str:
    """What a metric is: the first paragraph of its docstring, without its source."""
    first = (inspect.getdoc(type(metric)) or metric.name).partition("\n\n")[0]
    return " ".join(first.split()).partition(" Source:")[0]


def _score(result: Mapping[str, Any], number: Number) -> dict[str, Any]:
    # Not as `num_samples`: captions of one image are not independent of each other.
    details = {name: str(count) for name, count in measured.sizes_of(result, number).items()}
    by_ties = flat(result.get("over_ties", {})).get(number.statistic)
    if by_ties is not None:
        lower, upper = by_ties
        details["range_over_ties"] = f"{lower:.4f} to {upper:.4f}"
    of_lists = result.get("lists", {}).get(number.statistic.direction)
    if of_lists is not None:
        details["longest_list"] = str(of_lists["longest"])
    score = {"score": number.value, "details": details}
    if number.confidence_interval is not None:
        score["uncertainty"] = {"confidence_interval": number.confidence_interval}
    return score
