"""What figures are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.provenance.head_record import Member
from pipeline.report.examples import Gallery
from pipeline.report.heads import TrainedHead
from pipeline.report.networks import STAND_IN, told

UNSCORED = "a scored system and its photographs: run `pipeline score` and `pipeline ensemble`"


@dataclass(frozen=True)
class Evidence:
    """Everything that is there; a figure says what it lacks.

    Attributes:
        title: the data set's name for readers.
        heads: the finished heads on it.
        items: feature -> N, the items of its store.
        throughput: results/throughput.json, {} where nothing was timed.
        gallery: a system's scores on the test split, with captions and photographs; or, in words, what lacks for one.
        run: the run's recipes, text encoders and seeds, the first first.
    """

    title: str
    heads: tuple[TrainedHead, ...] = ()
    items: Mapping[str, int] = field(default_factory=dict)
    throughput: Mapping[str, Any] = field(default_factory=dict)
    gallery: Gallery | str = UNSCORED
    run: Sequence[tuple[str, str, int]] = ()

    @property
    def trained(self) -> tuple[TrainedHead, ...]:
        """The heads that were trained here, and so have a history."""
        return tuple(head for head in self.heads if head.history)

    def by_choice(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """The heads, those first that a figure of one system shows: the run's in its order, then those of the paper's
        `plain` recipe, then the others; equals in the order given."""
        ranks = {system: rank for rank, system in enumerate(self.run)}
        return sorted(heads, key=lambda head: (ranks.get(head.system, len(ranks)), head.recipe != plain))

    def system(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """Those of the heads that share recipe, text encoder and seed with the first `by_choice`; [] of none."""
        chosen = self.by_choice(heads, plain)
        return [head for head in chosen if head.system == chosen[0].system]


def not_the_papers(members: Iterable[Member]) -> str:
    """A sentence for a caption on the stand-ins behind the heads that are drawn; '' if there are none."""
    named = ", ".join(told(tuple(members)))
    return f" {STAND_IN} Not the papers' networks; stand-ins made these features: {named}." if named else ""
