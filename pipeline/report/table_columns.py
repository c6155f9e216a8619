"""The columns of a retrieval table: its labels, and metrics by test set and direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.metrics import parse
from pipeline.report.published import RECALLS
from pipeline.report.table import Column

MetricKey = tuple[str, str]
"""A test set and a column of `results/metrics.json`, e.g. ("f30k_1k", "t2i_r1")."""


@dataclass(frozen=True)
class PrintedMetric:
    """A metric as tables print it.

    Attributes:
        heading: Heading of its column.
        less_is_better: Whether the smallest value of a column is the best one.
    """

    heading: str
    less_is_better: bool = False


METRICS = {
    "r1": PrintedMetric("R@1"),
    "r5": PrintedMetric("R@5"),
    "r10": PrintedMetric("R@10"),
    "median_rank": PrintedMetric("Median rank", less_is_better=True),
    "mean_rank": PrintedMetric("Mean rank", less_is_better=True),
}
"""Metric of one direction, as `results/metrics.json` names it -> how it is printed."""
RSUM = PrintedMetric("RSUM")


def named(name: str) -> PrintedMetric:
    """Look up how a metric of one direction is printed.

    Args:
        name: A key of `METRICS`, or a name that `pipeline.metrics` knows: `nDCG@10`.

    Returns:
        The metric.
    """
    if name in METRICS:
        return METRICS[name]
    metric = parse(name)
    return PrintedMetric(str(metric), metric.less_is_better)


@dataclass(frozen=True)
class NumberColumn:
    """One column of numbers.

    Attributes:
        key: Its test set and metric.
        less_is_better: Whether its smallest value is the best one.
    """

    key: MetricKey
    less_is_better: bool = False


@dataclass(frozen=True)
class TableColumns:
    """The columns of a retrieval table.

    Attributes:
        labels: Headings of the label columns.
        blocks: (test set, heading) pairs, one block of columns each.
        directions: (t2i or i2t, heading) pairs, in printed order.
        metrics: The metrics of each direction, in printed order: names that `named` takes.
        rsum: Whether RSUM is shown.
        ratio: Heading of a last column of throughput ratios, "" for none.
        labels_above: A heading that spans the label columns, "" for none.
    """

    labels: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...]
    directions: tuple[tuple[str, str], ...]
    metrics: tuple[str, ...] = ("r1", "r5", "r10")
    rsum: bool = True
    ratio: str = ""
    labels_above: str = ""

    def choose(self, metrics: Sequence[str]) -> TableColumns:
        """The same columns with other metrics.

        Args:
            metrics: Names that `named` takes, R@1 for r1 too, and rsum; () for those that the paper prints.

        Returns:
            The columns.

        Raises:
            InputError: If there is no such metric.
        """
        if not metrics:
            return self
        known = {metric.heading: name for name, metric in METRICS.items()}
        each = [known.get(name, name) for name in metrics if name.lower() != "rsum"]
        whole = dict.fromkeys(name if name in METRICS else str(parse(name)) for name in each)
        return replace(self, metrics=tuple(whole), rsum=len(each) < len(metrics))

    def shown(self) -> tuple[str, ...]:
        """The metrics of one block, in printed order.

        Returns:
            For example t2i_r1, …, i2t_r10, rsum.
        """
        return (*(f"{side}_{metric}" for side, _ in self.directions for metric in self.metrics), *["rsum"] * self.rsum)

    def summed(self) -> tuple[str, ...]:
        """The columns whose sum a measured and a published row are compared by.

        Returns:
            RSUM where the table shows it, else the recalls that it shows.
        """
        return ("rsum",) if self.rsum else tuple(name for name in self.shown() if name in RECALLS)

    def numbers(self) -> tuple[NumberColumn, ...]:
        """All number columns of a row, block by block.

        Returns:
            One for each test set and shown metric.
        """
        return tuple(NumberColumn((test_set, name), name != "rsum" and named(name[4:]).less_is_better)
                     for test_set, _ in self.blocks for name in self.shown())

    def columns(self, delta: bool) -> tuple[Column, ...]:
        """The columns with their headings.

        Args:
            delta: Whether each block ends in a column of differences.

        Returns:
            The columns of the rendered table, from left to right.
        """
        level = ("",) * any(title for _, title in self.blocks)
        above_labels = (*level, self.labels_above) if self.labels_above else ()
        columns = [Column(label, above_labels, "text") for label in self.labels]
        for _, title in self.blocks:
            above = (title,) if title else ()
            columns += [Column(named(metric).heading, (*above, side))
                        for _, side in self.directions for metric in self.metrics]
            columns += [Column(RSUM.heading, above)] * self.rsum + [Column("Δ", above)] * delta
        return (*columns, *[Column(self.ratio)] * bool(self.ratio))
