"""Measurements for the page alone: what each member adds to an ensemble, and hubs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pipeline.foundation.evaluation.metrics import evaluate
from pipeline.foundation.evaluation.retrieval import Protocol
from pipeline.foundation.evaluation.statistics import ImageHits, pack
from pipeline.foundation.evaluation.statistics.hubness import Hubness, hubness
from pipeline.foundation.parts.errors import counted
from pipeline.foundation.settings import Evaluate
from pipeline.judge.systems.scores.fuse import fuse
from pipeline.judge.systems.scores.system import System
from pipeline.judge.tables.table import Cell, number
from pipeline.run.report import names
from pipeline.run.report.page.pairs import Difference, Pair, further


class Part(NamedTuple):
    """What one member adds to an ensemble."""

    name: str  # the member's feature
    alone: Cell  # RSUM of the member by itself
    without: Cell  # RSUM of the mean of the other members
    difference: Difference  # RSUM of the ensemble minus that of the others' mean


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
            row = part.difference.row
            interval_ends += [abs(row["difference"]), *map(abs, row["interval"])]
        return max(interval_ends) or 1.0


class _Measured(NamedTuple):
    """The mean of some members."""

    protocol: str
    rsum: float
    hits: ImageHits  # of each image


def effects(
    ensembles: Mapping[str, Mapping[str, Path]],
    protocol: str | Protocol,
    settings: Evaluate,
    tables: Sequence[Sequence[Pair]] = (),
    judged: Callable[[System], System] = lambda pool: pool,
    progress: Callable[[str], object] = lambda what: None,
) -> list[Effect]:
    """Measure what each member adds to ensembles of two or more members. tables: the pairs of each
    table of results.
    """
    stores: dict[Path, System] = {}
    for parts in ensembles.values():
        for path in parts.values():
            stores[path] = System.open(path).check()
    measured_before: dict[frozenset[Path], _Measured] = {}

    def measured(paths: Sequence[Path]) -> _Measured:
        members_key = frozenset(paths)
        if members_key not in measured_before:
            progress(" + ".join(path.stem for path in paths))
            pool = judged(fuse([stores[path] for path in paths]))
            metrics = evaluate(
                pool.scores, pool.truth, protocol, block_megabytes=settings.block_megabytes
            )
            hits = ImageHits(pack(metrics, pool.image_ids, pool.caption_ids))
            measured_before[members_key] = _Measured(metrics.protocol, metrics.rsum, hits)
        return measured_before[members_key]

    several = {name: [*parts.items()] for name, parts in ensembles.items() if len(parts) > 1}
    asked = []
    for members in several.values():
        paths = [path for _, path in members]
        for path in paths:
            others = [other for other in paths if other != path]
            asked.append((measured(others).hits, measured(paths).hits))
    differences = iter(further(_of_same_queries(tables, asked), asked))
    effects = []
    for name, members in several.items():
        paths = [path for _, path in members]
        whole_ensemble = measured(paths)
        added_by_members = []
        for member, path in members:
            others = [other for other in paths if other != path]
            alone = number(measured([path]).rsum)
            without = number(measured(others).rsum)
            added_by_members.append(Part(member, alone, without, next(differences)))
        rsum = number(whole_ensemble.rsum)
        effects.append(Effect(name, whole_ensemble.protocol, rsum, added_by_members))
    return effects


def _of_same_queries(
    tables: Sequence[Sequence[Pair]], asked: Sequence[tuple[ImageHits, ImageHits]]
) -> Sequence[Pair]:
    """The pairs of the table of results on the queries of these runs; () if there is none."""
    queries = {b.queries for _, b in asked}
    for pairs in tables:
        if pairs and {pairs[0].tested[0].runs[0].queries} == queries:
            return pairs
    return ()


def corrected_for(effects: Sequence[Effect]) -> str:
    """For which tests p is corrected in the rows of these ensembles, in words that follow
    "corrected for".
    """
    differences = []
    for effect in effects:
        differences += [part.difference for part in effect.parts]
    others = [difference for difference in differences if not difference.is_of_table]
    here = counted(len(others), "difference")
    if not others:
        return "all pairs of systems under Results."
    in_table = counted(others[0].family - len(others), "pair")
    if others[0].family == len(others):
        return f"the {here} shown here."
    if len(others) == len(differences):
        return f"the {here} shown here and the {in_table} of systems under Results."
    if len(others) == 1:
        return (
            f"the {in_table} of systems under Results; for the one difference here that is not among "
            "these, also for itself."
        )
    return (
        f"the {in_table} of systems under Results; for the {here} here that are not among these, also "
        "for one another."
    )


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
