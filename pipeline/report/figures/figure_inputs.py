"""What figures are drawn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline.provenance.head_record import HeadRecord
from pipeline.report.examples import Gallery
from pipeline.report.heads import TrainedHead
from pipeline.report.measured import MeasuredSystem
from pipeline.report.networks import STAND_IN, stand_ins_of

UNSCORED = "a scored system and its photographs: run `pipeline score` and `pipeline ensemble`"


@dataclass(frozen=True)
class FigureInputs:
    """Everything that figures can be drawn from, as far as it exists.

    Attributes:
        title: The data set's name for readers.
        heads: The finished heads on it.
        items: Feature -> N, the number of items in its store.
        throughput: The parsed `results/throughput.json`, {} where nothing was timed.
        gallery: A scored system with captions and photographs; or, in words, what is missing for one.
        run: (recipe, text encoder, seed) of the run's systems, in the order of the settings.
        measured: The systems of results/metrics.json on it, by one protocol.
        train_images: How many images its train split has.
    """

    title: str
    heads: tuple[TrainedHead, ...] = ()
    items: Mapping[str, int] = field(default_factory=dict)
    throughput: Mapping[str, Any] = field(default_factory=dict)
    gallery: Gallery | str = UNSCORED
    run: Sequence[tuple[str, str, int]] = ()
    measured: tuple[MeasuredSystem, ...] = ()
    train_images: int = 0

    @property
    def trained(self) -> tuple[TrainedHead, ...]:
        """The heads with a history: those that were trained here."""
        return tuple(head for head in self.heads if head.history)

    def preferred_first(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """Order heads for a figure of one system.

        Args:
            heads: The heads that the figure could show.
            plain: The recipe of the paper that the figure is from.

        Returns:
            The heads of the run, in its order, then those of the plain recipe, then the others.
        """
        ranks = {system: rank for rank, system in enumerate(self.run)}
        return sorted(heads, key=lambda head: (ranks.get(head.system, len(ranks)), head.recipe != plain))

    def preferred_system(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """The heads of the one system that a figure shows.

        Args:
            heads: The heads that the figure could show.
            plain: The recipe of the paper that the figure is from.

        Returns:
            Those that share recipe, text encoder and seed with the first of `preferred_first`.
        """
        chosen = self.preferred_first(heads, plain)
        return [head for head in chosen if head.system == chosen[0].system]


def stand_in_sentence(members: Iterable[HeadRecord]) -> str:
    """A sentence for a caption on the stand-ins behind a figure, beginning with a space; "" without stand-ins."""
    named = ", ".join(stand_ins_of(members))
    return f" {STAND_IN} Not the papers' networks; stand-ins made these features: {named}." if named else ""
