"""A number as a file of a model's folder `.eval_results` on Hugging Face, from where the
leaderboard of a benchmark takes it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.extensions.catalogues import measured
from pipeline.extensions.catalogues.measured import Number
from pipeline.extensions.catalogues.options import EvalResultsOptions
from pipeline.foundation.evaluation.metrics.base import CONFIDENCE
from pipeline.foundation.evaluation.metrics.spelt import spelt
from pipeline.foundation.files.parsing import to_yaml
from pipeline.foundation.parts.errors import InputError, counted, unknown
from pipeline.foundation.parts.wrapping import printable
from pipeline.judge.tables import evaluated
from pipeline.judge.tables.catalogues import Catalogue
from pipeline.judge.tables.evaluated import Results


class EvalResults(Catalogue):
    """One number of a task of a benchmark, with its interval in the notes.

    The token by which Hugging Face shows a number as verified comes from an evaluation that ran
    there, so none is written.
    """

    def __init__(self, about: EvalResultsOptions) -> None:
        self.about = about

    def text(self, results: Results) -> str:
        measured.require_one_model(results, "eval-results")
        if len(results) > 1:
            protocols = [result["protocol"] for _, result in results]
            raise InputError(
                f"--export eval-results is of one number, and these are by the protocols {', '.join(protocols)}: "
                "name the FILE, with --protocol"
            )
        result = results[0][1]
        number = _named(self.about.metric, list(measured.numbers_of(result)))
        return to_yaml([self._entry(result, number)]).rstrip("\n")

    def _entry(self, result: Mapping[str, Any], number: Number) -> dict[str, Any]:
        about = self.about
        dataset = {"id": about.dataset, "task_id": about.task_id}
        if about.revision:
            dataset["revision"] = about.revision
        entry = {"dataset": dataset, "value": number.value}
        if about.date:
            entry["date"] = about.date
        if about.url:
            source = {
                "url": about.url,
                "name": about.source,
                "user": about.user,
                "org": about.organisation,
            }
            entry["source"] = {key: text for key, text in source.items() if text}
        entry["notes"] = _notes(result, number)
        return entry


def _named(typed: str, numbers: Sequence[Number]) -> Number:
    """A number by its name, such as t2i_R@1; by R@1 where one direction alone is measured."""
    asked = spelt(typed)
    if asked is not None:
        found = [each for each in numbers if each.statistic == (asked.direction, asked.metric)]
        if not found and not asked.direction:
            found = [each for each in numbers if each.statistic.metric == asked.metric]
        if len(found) == 1:
            return found[0]
    names = [str(each.statistic).replace(" ", "_") for each in numbers]
    raise unknown("number in --about metric:", typed, names)


def _notes(result: Mapping[str, Any], number: Number) -> str:
    """How the number was measured, and its interval."""
    about = [f"{number.statistic} in {number.unit}"]
    known = number.confidence_interval
    if known is not None:
        ends = f"{known['lower']:.2f} to {known['upper']:.2f}"
        about.append(f"{100 * CONFIDENCE:g} % interval {ends} ({known['method']})")
    of_images, _ = evaluated.sides(result)
    about.append(f"{counted(number.queries, 'query')}, {counted(result['images'], of_images)}")
    about.append(f"protocol {result['protocol']}, ties {result['ties']}")
    if result.get("split"):
        about.append(f"split {printable(result['split'])}")
    about.append(f"{measured.LIBRARY} {measured.library_version()}")
    return "; ".join(about)
