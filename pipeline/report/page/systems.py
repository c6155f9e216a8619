"""Measurements for the page alone: what each member adds to an ensemble, and hubs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.evaluation.metrics import Metrics, evaluate
from pipeline.evaluation.retrieval import Protocol, protocol as protocol_named
from pipeline.evaluation.statistics import contrast
from pipeline.evaluation.statistics.hubness import Hubness, hubness
from pipeline.report import compared, names
from pipeline.report.table import Cell, number
from pipeline.settings import Evaluate
from pipeline.systems.scores.fuse import fuse
from pipeline.systems.scores.system import System


class Part(NamedTuple):
    """What one member adds to an ensemble."""

    name: str  # the member's feature
    alone: Cell  # RSUM of the member by itself
    found: dict[
        str, Any
    ]  # the contrast of the other members' mean and the ensemble, see `statistics.contrast`

    @property
    def without(self) -> Cell:
        """RSUM of the ensemble without it."""
        return compared.mean(self.found["RSUM"], "a")

    @property
    def cells(self) -> list[Cell]:
        """What it adds, p, and the corrected p."""
        return compared.difference(self.found["RSUM"])

    @property
    def would_tell(self) -> str:
        """What would tell a difference that is not told, "" for one that is."""
        return compared.shortly(self.found["RSUM"])


@dataclass(frozen=True)
class Effect:
    """One ensemble, the mean of its members."""

    name: str  # its title
    protocol: str  # the evaluation protocol
    rsum: Cell  # RSUM with all members
    parts: Sequence[Part]  # what each member adds

    @property
    def largest(self) -> float:
        """The largest absolute end of an interval, which is the scale of the drawing."""
        return (
            max(
                abs(end)
                for part in self.parts
                for rsum in [part.found["RSUM"]]
                for end in (rsum["difference"], *rsum["interval"])
            )
            or 1.0
        )


def effects(
    ensembles: Mapping[str, Mapping[str, Path]],
    protocol: str | Protocol,
    settings: Evaluate,
    judged: Callable[[System], System] = lambda pool: pool,
    progress: Callable[[str], object] = lambda what: None,
) -> list[Effect]:
    """Measure what each member adds to ensembles of two or more members."""
    stores = {
        path: System.open(path).check() for parts in ensembles.values() for path in parts.values()
    }
    known: dict[frozenset[Path], Metrics] = {}

    def measured(paths: Sequence[Path]) -> Metrics:
        key = frozenset(paths)
        if key not in known:
            progress(" + ".join(path.stem for path in paths))
            pool = judged(fuse([stores[path] for path in paths]))
            known[key] = evaluate(
                pool.scores, pool.truth, protocol, block_megabytes=settings.block_megabytes
            )
        return known[key]

    several = {name: parts for name, parts in ensembles.items() if len(parts) > 1}
    pairs = [
        (
            [measured([other for other in parts.values() if other != path])],
            [measured([*parts.values()])],
        )
        for parts in several.values()
        for path in parts.values()
    ]
    contrasts = iter(
        contrast.together(pairs, settings.resamples, settings.seed)
    )  # all are shown together
    return [
        Effect(
            name,
            protocol_named(protocol).name,
            number(measured([*parts.values()]).rsum),
            [
                Part(member, number(measured([path]).rsum), next(contrasts))
                for member, path in parts.items()
            ],
        )
        for name, parts in several.items()
    ]


class SystemHubs(NamedTuple):
    """Hubs of one system."""

    name: str  # the system's title
    captions: Hubness  # of captions, as images find them
    images: Hubness  # of images, as captions find them


def hubs(
    stores: Mapping[str, System],
    settings: Evaluate,
    progress: Callable[[str], object] = lambda what: None,
) -> list[SystemHubs]:
    """Measure the hubs of systems."""
    every = []
    for name, store in stores.items():
        progress(f"hubs of {name}")
        every.append(
            SystemHubs(
                names.title(store.made_from),
                hubness(store.scores, "i2t", settings),
                hubness(store.scores, "t2i", settings),
            )
        )
    return every
