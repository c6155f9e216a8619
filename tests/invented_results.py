"""Results of invented numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.foundation.artefacts import Record, Reference
from pipeline.foundation.settings import Evaluate
from pipeline.run.provenance.results import EvaluateRequest, Result

SETTINGS = Evaluate(resamples=1, seed=0, block_megabytes=32)


def result(
    name: str,
    facts: Mapping[str, Any],
    numbers: Mapping[str, Any],
    hits: Mapping[str, Any] | None = None,
) -> Result:
    """The result of a system of these facts, by protocol."""
    request = EvaluateRequest(name=name, protocols=[*numbers], settings=SETTINGS)
    record = Record(
        kind="result",
        request=request.recorded(),
        facts=dict(facts),
        finished=True,
        made_from={"system": Reference(kind="scores", name=name, identity="i")},
    )
    return Result(record, numbers, hits or {}).sealed()
