"""Results measured here: systems over their seeds, and what each was measured on and with."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from pipeline.evaluation.statistics import ImageHits
from pipeline.provenance.head_record import HeadRecord

BENCHMARKS = {
    ("coco", "coco_1k_5fold"): "coco_1k_5fold",
    ("coco", "coco_5k"): "coco_5k",
    ("coco", "cxc"): "coco_5k_cxc",
    ("flickr30k", "flickr30k_1k"): "f30k_1k",
    ("multi30k", "multi30k_2016"): "multi30k",
    ("msrvtt", "msrvtt_full"): "msrvtt",
    ("vatex", "vatex_1500"): "vatex",
}
"""(Data set, protocol) -> the papers' test set. No other measurement may stand under a paper's headings."""

SEPARATE = "separate"
"""In `Origin.rerank`: another network than the retriever's scored the candidates, and it is not among the members."""


@dataclass(frozen=True)
class Origin:
    """What a number was measured on and with, all but the seed.

    Attributes:
        dataset: The data set's name.
        split: The split that was ranked.
        manifest: Digest of the data set's manifest.
        protocol: The evaluation protocol.
        images: Number of images that were ranked.
        captions: Number of captions that were ranked.
        recipe: The training recipe.
        visual: The ensemble or feature as letters: R, G, P, RG or RGP.
        text: The text encoder.
        features: (feature, name of what made its store) pairs.
        untrained: The features that an untrained network made; none for a published head, which brings its own network.
        steps: What was done to the scores after the ensemble, in order, e.g. ("rerank (with RGP, k 20)",).
        trained_on: The data set that its heads were trained on, where it is another one; "" otherwise.
        distractors: What the queries' own images and captions were ranked among, a text for each data set.
        transductive: Whether a step read the test queries together, so that a query's ranks depend on the others.
        zero_shot: Whether a dual encoder made it as it comes; it has no features, and its recipe is its name.
        rerank: The settings of the last step, if that reranked: (name, value) pairs such as ("k", 20); () otherwise.
    """

    dataset: str
    split: str
    manifest: str
    protocol: str
    images: int
    captions: int
    recipe: str
    visual: str
    text: str
    features: tuple[tuple[str, str], ...]
    untrained: tuple[str, ...]
    steps: tuple[str, ...] = ()
    trained_on: str = ""
    distractors: tuple[str, ...] = ()
    transductive: bool = False
    rerank: tuple[tuple[str, Any], ...] = ()
    zero_shot: bool = False

    @property
    def benchmark(self) -> str | None:
        """The papers' test set that this repeats, or None."""
        return BENCHMARKS.get((self.dataset, self.protocol)) if self.split == "test" else None


@dataclass(frozen=True)
class TestedColumn:
    """What a paired test of one column needs of a system."""

    hits: ImageHits  # of each image
    statistic: str  # which of `STATISTICS` the column shows, perhaps divided by a number


@dataclass(frozen=True)
class MeasuredSystem:
    """One system, over its seeds.

    Attributes:
        origin: What it was measured on and with.
        systems: Its names in `results/metrics.json`, by seed.
        values: Column -> one number for each seed, in the order of `systems`: recalls (i2t_r1, …, t2i_r10) and rsum in
            percent, the other metrics of `METRICS` that were written, and mR of each language (en_mR).
        members: The heads behind the first seed's numbers; those of the other seeds differ in nothing but the seed.
        tested: Column -> what a paired test needs, of a single seed whose hits of each image were kept.
    """

    origin: Origin
    systems: tuple[str, ...]
    values: Mapping[str, tuple[float, ...]]
    members: tuple[HeadRecord, ...]
    tested: Mapping[str, TestedColumn] = field(default_factory=dict)

    def mean(self, column: str) -> float:
        """The mean over the seeds."""
        return fmean(self.values[column])

    def spread(self, column: str) -> float | None:
        """The sample standard deviation over the seeds, None for a single one."""
        values = self.values[column]
        return stdev(values) if len(values) > 1 else None


@dataclass(frozen=True)
class Results:
    """All that was measured here.

    Attributes:
        systems: What was evaluated.
        throughput: The parsed `results/throughput.json`, {} where nothing was timed.
        synthetic: Errors on synthetic pooling patterns, one mapping for each generator and pattern, with the columns of
            `vse_infty_table11.csv`.
        recorded: Systems of larger pools, and those whose heads were trained on other data. No other table has them.
    """

    systems: tuple[MeasuredSystem, ...]
    throughput: Mapping[str, Any] = field(default_factory=dict)
    synthetic: Sequence[Mapping[str, Any]] = ()
    recorded: tuple[MeasuredSystem, ...] = ()


def outside_benchmarks(systems: Sequence[MeasuredSystem]) -> list[list[MeasuredSystem]]:
    """The systems that repeat no benchmark, by test set.

    A system that was evaluated by several protocols is shown by `all`, else by the first. One that also has a
    benchmark's protocol is left out, as it stands under the benchmark's headings.
    """
    protocols: dict[Origin, list[MeasuredSystem]] = defaultdict(list)
    for system in systems:
        protocols[replace(system.origin, protocol="", images=0, captions=0)].append(system)
    test_sets: dict[tuple[str, str, str, str, int, int], list[MeasuredSystem]] = defaultdict(list)
    for measured in protocols.values():
        if not any(system.origin.benchmark for system in measured):
            chosen = next((system for system in measured if system.origin.protocol == "all"), measured[0])
            o = chosen.origin
            test_sets[o.dataset, o.split, o.manifest, o.protocol, o.images, o.captions].append(chosen)
    return list(test_sets.values())
