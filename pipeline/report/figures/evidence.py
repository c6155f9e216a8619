"""What figures are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.report.examples import Gallery
from pipeline.report.heads import TrainedHead
from pipeline.report.networks import STAND_IN, stand_in


@dataclass(frozen=True)
class Evidence:
    """Everything that is there; a figure says what it lacks.

    Attributes:
        title: the data set's name for readers.
        heads: the finished heads on it.
        items: feature -> N, the items of its store.
        throughput: results/throughput.json, {} where nothing was timed.
        gallery: a system's scores on the test split, with captions and photographs; None where there are none.
    """

    title: str
    heads: tuple[TrainedHead, ...] = ()
    items: Mapping[str, int] = field(default_factory=dict)
    throughput: Mapping[str, Any] = field(default_factory=dict)
    gallery: Gallery | None = None

    @property
    def trained(self) -> tuple[TrainedHead, ...]:
        """The heads that were trained here, and so have a history."""
        return tuple(head for head in self.heads if head.history)

    def stand_ins(self, features: Iterable[str]) -> str:
        """A sentence on those of the features that the papers' networks did not make; '' if they made all."""
        wanted = set(features)
        made = {head.feature: head.description["features"] for head in self.heads if head.feature in wanted}
        told = [stand_in(name, str(by.get("recipe")), bool(by.get("trained"))) for name, by in made.items()]
        named = ", ".join(text for text in told if text)
        return f" {STAND_IN} Not the papers' networks; stand-ins made these features: {named}." if named else ""
