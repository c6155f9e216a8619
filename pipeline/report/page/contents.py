"""What the page holds, as the template reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.report.page.charts import Chart
from pipeline.report.page.headline import Headline
from pipeline.report.page.members import Effect
from pipeline.report.page.stores import Failure


@dataclass(frozen=True)
class Contents:
    """Everything on the page; a section without content says so instead.

    Attributes:
        title: the data set's name; about: what it is (`code` in backticks); licence: its own.
        headlines: one table for each protocol.
        curves: a chart for each recipe and text encoder of the run; further_curves: those of other heads.
        effects: ensembles with what each member adds.
        explorer: what explorer.js reads; {} where nothing is scored. See `explorer.gather`. run: the run in words.
        failures: images that failed; stores: the stores that were looked at.
        provenance: name -> settings, digests and versions.
    """

    title: str
    about: str
    licence: str
    headlines: Sequence[Headline] = ()
    curves: Sequence[Chart] = ()
    further_curves: Sequence[Chart] = ()
    effects: Sequence[Effect] = ()
    explorer: Mapping[str, Any] = field(default_factory=dict)
    run: str = ""
    failures: Sequence[Failure] = ()
    stores: Sequence[str] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
