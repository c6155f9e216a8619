"""The columns of a table of results: its labels, and metrics by test set and direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipeline.evaluation.metrics import parse
from pipeline.report.published import RECALLS
from pipeline.report.table import Column

MetricKey = tuple[str, str]
"""A test set and a column of `results/metrics.json`, e.g. ("f30k_1k", "t2i_r1")."""
HEADINGS = {"r1": "R@1", "r5": "R@5", "r10": "R@10", "median_rank": "Median rank", "mean_rank": "Mean rank"}
"""Metric of one direction, as `results/metrics.json` names it -> how it is printed."""
RANKS = ("median_rank", "mean_rank")
"""Those of `HEADINGS` of which less is better."""


@dataclass(frozen=True)
class NumberColumn:
    """One column of numbers: its test set and metric, its headings, and whether its smallest value is the best one."""

    key: MetricKey
    heading: str = ""
    above: tuple[str, ...] = ()
    less_is_better: bool = False
    kind: Literal["text", "number"] = "number"


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table of results.

    Attributes:
        labels: Headings of the label columns.
        blocks: (test set, heading) pairs, one block of columns each.
        directions: (t2i or i2t, heading) pairs, in printed order.
        metrics: The metrics of each direction, in printed order: keys of `HEADINGS`, or names that
            `pipeline.evaluation.metrics` knows, such as nDCG@10.
        rsum: Whether RSUM is shown.
        ratio: Heading of a last column of throughput ratios, "" for none.
        labels_above: A heading that spans the label columns, "" for none.
        single: Columns of each block that are of no direction; what stands for their test set is not read.
        by_mean: Whether a measured and a published row are compared by the mean of the columns, not by their sum.
    """

    labels: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...]
    directions: tuple[tuple[str, str], ...] = ()
    metrics: tuple[str, ...] = ("r1", "r5", "r10")
    rsum: bool = True
    ratio: str = ""
    labels_above: str = ""
    single: tuple[NumberColumn, ...] = ()
    by_mean: bool = False

    def choose(self, metrics: Sequence[str]) -> TableColumns:
        """The same columns with other metrics of each direction, R@1 for r1 too, and rsum; () changes none."""
        if not metrics or not self.directions:
            return self
        known = {heading: name for name, heading in HEADINGS.items()}
        each = [known.get(name, name) for name in metrics if name.lower() != "rsum"]
        whole = dict.fromkeys(name if name in HEADINGS else str(parse(name)) for name in each)
        return replace(self, metrics=tuple(whole), rsum=len(each) < len(metrics))

    @property
    def marked(self) -> int:
        """The label column that carries a row's footnote marks: the one that names what was measured."""
        return next((self.labels.index(name) for name in ("Features", "Feature Type", "Method") if name in self.labels),
                    len(self.labels) - 1)

    def block(self, test_set: str, title: str = "") -> list[NumberColumn]:
        """The columns of numbers of one test set, from left to right."""
        above = (title,) if title else ()
        columns = [_of_metric((test_set, f"{side}_{metric}"), metric, (*above, heading))
                   for side, heading in self.directions for metric in self.metrics]
        columns += [replace(each, key=(test_set, each.key[1])) for each in self.single]
        return [*columns, *[NumberColumn((test_set, "rsum"), "RSUM", above)] * self.rsum]

    def shown(self) -> tuple[str, ...]:
        """The metrics of one block, in printed order: t2i_r1, …, i2t_r10, rsum."""
        return tuple(column.key[1] for column in self.block(""))

    def compared(self) -> tuple[str, ...]:
        """The columns by which a row is compared: RSUM where it is shown, else the recalls; all, where by the mean."""
        if self.rsum or self.by_mean:
            return ("rsum",) if self.rsum else self.shown()
        return tuple(name for name in self.shown() if name in RECALLS)

    def numbers(self) -> list[NumberColumn]:
        """All columns of numbers of a row, block by block."""
        return [column for block in self.blocks for column in self.block(*block)]

    def columns(self, delta: bool) -> tuple[Column, ...]:
        """The columns of the rendered table, from left to right; delta: each block ends in one of differences."""
        level = ("",) * any(title for _, title in self.blocks)
        above_labels = (*level, self.labels_above) if self.labels_above else ()
        columns = [Column(label, above_labels, "text") for label in self.labels]
        for test_set, title in self.blocks:
            columns += [Column(each.heading, each.above, each.kind) for each in self.block(test_set, title)]
            columns += [Column("Δ", (title,) if title else ())] * delta
        return (*columns, *[Column(self.ratio)] * bool(self.ratio))


def _of_metric(key: MetricKey, metric: str, above: tuple[str, ...]) -> NumberColumn:
    if metric in HEADINGS:
        return NumberColumn(key, HEADINGS[metric], above, metric in RANKS)
    known = parse(metric)
    return NumberColumn(key, str(known), above, known.less_is_better)
