"""Measurements for the page alone: what each member adds to an ensemble, and hubs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.foundation.evaluation.metrics import Metrics, evaluate
from pipeline.foundation.evaluation.retrieval import Protocol, protocol as protocol_named
from pipeline.foundation.evaluation.statistics import contrast
from pipeline.foundation.evaluation.statistics.hubness import Hubness, hubness
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables import compared
from pipeline.judge.tables.table import Cell, number
from pipeline.run.report import names


class Part(NamedTuple):
    """What one member adds to an ensemble."""

    name: str  # the member's feature
    alone: Cell  # RSUM of the member by itself
    # The contrast of the other members' mean and the ensemble, see `statistics.contrast`.
    found: dict[str, Any]

    @property
    def without(self) -> Cell:
        """RSUM of the ensemble without it."""
        return compared.mean(self.found["RSUM"], "a")

    @property
    def cells(self) -> list[Cell]:
        """What it adds, p, and the corrected p."""
        return compared.difference(self.found["RSUM"])

    @property
    def would_suffice(self) -> str:
        """What would make the difference significant, "" for one that is."""
        return compared.would_suffice(self.found["RSUM"])


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
        interval_ends = []
        for part in self.parts:
            rsum = part.found["RSUM"]
            interval_ends += [abs(rsum["difference"]), *map(abs, rsum["interval"])]
        return max(interval_ends) or 1.0


def effects(
    ensembles: Mapping[str, Mapping[str, Path]],
    protocol: str | Protocol,
    settings: Evaluate,
    judged: Callable[[System], System] = lambda pool: pool,
    progress: Callable[[str], object] = lambda what: None,
) -> list[Effect]:
    """Measure what each member adds to ensembles of two or more members."""
    stores: dict[Path, System] = {}
    for parts in ensembles.values():
        for path in parts.values():
            stores[path] = System.open(path).check()
    metrics_of_members: dict[frozenset[Path], Metrics] = {}

    def measured(paths: Sequence[Path]) -> Metrics:
        members_key = frozenset(paths)
        if members_key not in metrics_of_members:
            progress(" + ".join(path.stem for path in paths))
            pool = judged(fuse([stores[path] for path in paths]))
            metrics_of_members[members_key] = evaluate(
                pool.scores, pool.truth, protocol, block_megabytes=settings.block_megabytes
            )
        return metrics_of_members[members_key]

    members_of_ensembles = {
        name: list(parts.items()) for name, parts in ensembles.items() if len(parts) > 1
    }
    pairs = []
    for members in members_of_ensembles.values():
        paths = [path for _, path in members]
        for path in paths:
            ensemble_without = measured([other for other in paths if other != path])
            pairs.append(([ensemble_without], [measured(paths)]))
    # All are shown together.
    contrasts = iter(contrast.together(pairs, settings.resamples, settings.seed))
    effects = []
    for name, members in members_of_ensembles.items():
        whole_ensemble = measured([path for _, path in members])
        added_by_members = []
        for member, path in members:
            alone = measured([path])
            added_by_members.append(Part(member, number(alone.rsum), next(contrasts)))
        rules = protocol_named(protocol)
        rsum = number(whole_ensemble.rsum)
        effects.append(Effect(name, rules.name, rsum, added_by_members))
    return effects


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
    measured = []
    for name, store in stores.items():
        progress(f"hubs of {name}")
        captions = hubness(store.scores, "i2t", settings)
        images = hubness(store.scores, "t2i", settings)
        measured.append(SystemHubs(names.title(store.made_from), captions, images))
    return measured
