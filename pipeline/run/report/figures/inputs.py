"""The inputs of a run's figures, and their captions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pipeline.foundation.files.parsing import from_yaml
from pipeline.judge.figures.drawing import Drawing
from pipeline.run.provenance.heads import TrainedHead
from pipeline.run.report import names
from pipeline.run.report.examples import Gallery
from pipeline.run.report.measured import MeasuredSystem

CAPTIONS: dict[str, str] = from_yaml(
    Path(__file__).with_name("captions.yaml").read_text(encoding="utf-8")
)
UNSCORED = "a scored system and its photographs: run `pipeline score` and `pipeline ensemble`"


@dataclass(frozen=True)
class FigureInputs:
    """Everything that figures can be drawn from, as far as it exists."""

    title: str  # The data set's name for readers
    heads: tuple[TrainedHead, ...] = ()  # The finished heads on it
    # Feature -> N, the number of items in its store.
    items: Mapping[str, int] = field(default_factory=dict)
    # The parsed `results/throughput.json`, {} where nothing was timed.
    throughput: Mapping[str, Any] = field(default_factory=dict)
    # A scored system with captions and photographs; or, in words, what is missing for one.
    gallery: Gallery | str = UNSCORED
    # (recipe, text encoder, seed) of the run's systems, in the order of the settings.
    run: Sequence[tuple[str, str, int]] = ()
    # The systems of results/metrics.json on it, by one protocol.
    measured: tuple[MeasuredSystem, ...] = ()
    train_images: int = 0  # How many images its train split has

    def caption(self, figure: str, head: TrainedHead | None = None, **said: Any) -> str:
        """The figure's caption in captions.yaml, its braces filled by `said`; head: the first one
        that is shown.
        """
        if head:
            asked = head.request
            said = {
                "method": names.method(asked.name),
                "encoder": names.encoder(asked.text),
                "feature": asked.feature,
                "seed": asked.seed,
                **said,
            }
        return CAPTIONS[figure].format(title=self.title, **said)

    @property
    def trained(self) -> tuple[TrainedHead, ...]:
        """The heads with a history: those that were trained here."""
        return tuple(head for head in self.heads if head.history)

    def preferred_first(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """The heads in order: those of the run, in its order, then those of the paper's plain
        recipe, then others.
        """
        ranks = {system: rank for rank, system in enumerate(self.run)}

        def order(head: TrainedHead) -> tuple[int, bool]:
            return ranks.get(head.run_key, len(ranks)), head.request.name != plain

        return sorted(heads, key=order)

    def preferred_system(self, heads: Iterable[TrainedHead], plain: str) -> list[TrainedHead]:
        """The heads that share recipe, text encoder and seed with the first of `preferred_first`;
        plain: as there.
        """
        chosen = self.preferred_first(heads, plain)
        return [head for head in chosen if head.run_key == chosen[0].run_key]


class MissingInputs(Exception):
    """A figure's inputs are missing; the message says which, and how to make them."""


def naming_stand_ins(drawing: Drawing) -> Drawing:
    """Say in the caption which stand-ins are behind a figure."""
    stand_ins = names.stand_ins(drawing.members)
    if not stand_ins:
        return drawing
    said = (
        f" {names.STAND_IN} Not the papers' networks; stand-ins made these features: "
        f"{', '.join(stand_ins)}."
    )
    return replace(drawing, caption=drawing.caption + said)
