"""What each member adds to an ensemble: the ensemble against itself without that member, on the same queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.retrieval import Member, Metrics, contrast, evaluate, fuse
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.settings import Evaluate


@dataclass(frozen=True)
class Part:
    """One member. alone, without: RSUM of the member by itself, and of the others; effect: what it adds, with its
    95 % interval, and p of the paired randomisation test."""

    name: str
    alone: float
    without: float
    effect: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Effect:
    """One ensemble by its mean: RSUM with all members, and each member's part."""

    name: str
    protocol: str
    rsum: float
    parts: Sequence[Part]

    @property
    def largest(self) -> float:
        """The largest end of an interval, by size: the scale of the drawing."""
        return max(max(abs(part.low), abs(part.high), abs(part.effect)) for part in self.parts) or 1.0


def effects(ensembles: Mapping[str, Mapping[str, Path]], protocol: str, settings: Evaluate,
            progress: Callable[[str], object] = lambda what: None) -> list[Effect]:
    """The effects in ensembles of two or more members; each maps a member's name to its similarity store.

    Every subset is measured once; `progress` is told which. Raises InputError where members do not fit together.
    """
    stores = {path: SimilarityStore.open(path).check() for parts in ensembles.values() for path in parts.values()}
    known: dict[frozenset[Path], Metrics] = {}

    def measured(paths: Sequence[Path]) -> Metrics:
        key = frozenset(paths)
        if key not in known:
            progress(" + ".join(path.stem for path in paths))
            members = [Member(path.stem, stores[path].scores, stores[path].image_ids, stores[path].caption_ids)
                       for path in paths]
            known[key] = evaluate(fuse(members), stores[paths[0]].caption_image, protocol,
                                  block_megabytes=settings.block_megabytes)
        return known[key]

    def part(name: str, path: Path, parts: Mapping[str, Path]) -> Part:
        others = [other for other in parts.values() if other != path]
        found = contrast.of([measured(others)], [measured(list(parts.values()))], settings.resamples,
                            settings.seed)["rsum"]
        low, high = found["interval"]
        return Part(name, measured([path]).rsum, found["a"], found["difference"], low, high, found["p"])

    return [Effect(name, protocol, measured(list(parts.values())).rsum,
                   [part(member, path, parts) for member, path in parts.items()])
            for name, parts in ensembles.items() if len(parts) > 1]
