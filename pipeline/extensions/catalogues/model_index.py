"""Numbers as the `model-index` of a model card on Hugging Face: the YAML at the head of a
README.md.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.extensions.catalogues import measured
from pipeline.extensions.catalogues.options import ModelIndexOptions
from pipeline.foundation.files.parsing import to_yaml
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables import evaluated
from pipeline.judge.tables.catalogues import Catalogue
from pipeline.judge.tables.evaluated import Results


class ModelIndex(Catalogue):
    """The front matter of a model card: recalls, RSUM and the metrics that are asked for, of each
    system by each protocol.
    """

    def __init__(self, about: ModelIndexOptions) -> None:
        self.about = about

    def text(self, results: Results) -> str:
        models: dict[str, list[dict[str, Any]]] = {}
        for name, result in results:
            of_model = models.setdefault(printable(name), [])
            of_model.append(self._result(name, result))
        index = [{"name": name, "results": of_model} for name, of_model in models.items()]
        return f"---\n{to_yaml({'model-index': index})}---"

    def _result(self, name: str, result: Mapping[str, Any]) -> dict[str, Any]:
        dataset = measured.dataset_of(name, result, self.about.dataset)
        described = {
            "type": self.about.dataset or dataset,
            "name": f"{dataset}, protocol {result['protocol']}",
        }
        if result.get("split"):
            described["split"] = printable(result["split"])
        return {
            "task": {"type": "image-text-retrieval", "name": "Image-text retrieval"},
            "dataset": described,
            "metrics": list(_metrics(result)),
        }


def _metrics(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for number in measured.numbers_of(result):
        statistic = number.statistic
        if statistic.metric in evaluated.RANKS:
            continue
        kind = measured.id_of(number.metric)
        metric = {"type": kind, "name": str(statistic), "value": number.value}
        if number.confidence_interval is not None:
            metric["args"] = {
                "unit": number.unit,
                "confidence_interval": number.confidence_interval,
                **measured.sizes_of(result, number),
            }
        yield metric
