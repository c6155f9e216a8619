"""The columns of a retrieval table."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.report.table import Column

Key = tuple[str, str]
"""A number's test set and column, e.g. ("f30k_1k", "t2i_r1")."""


@dataclass(frozen=True)
class Layout:
    """Which columns a retrieval table has.

    Attributes:
        labels: headings of the label columns; `labels_above`: a heading that spans them, '' for none.
        blocks: (test set, heading) pairs, one block of columns each.
        directions: (t2i or i2t, heading) pairs, in printed order.
        ranks: the K of R@K that are shown.
        rsum: whether RSUM is shown.
        ratio: heading of a last column of throughput ratios, '' for none.
    """

    labels: tuple[str, ...]
    blocks: tuple[tuple[str, str], ...]
    directions: tuple[tuple[str, str], ...]
    ranks: tuple[int, ...] = (1, 5, 10)
    rsum: bool = True
    ratio: str = ""
    labels_above: str = ""

    def recalls(self) -> tuple[str, ...]:
        """The recalls of one block in printed order, e.g. t2i_r1 ... i2t_r10."""
        return tuple(f"{side}_r{k}" for side, _ in self.directions for k in self.ranks)

    def shown(self) -> tuple[str, ...]:
        """All numbers of one block: the recalls and, where it is shown, rsum."""
        return self.recalls() + ("rsum",) * self.rsum

    def numbers(self) -> tuple[Key, ...]:
        """All numbers of a row."""
        return tuple((test_set, column) for test_set, _ in self.blocks for column in self.shown())

    def columns(self, delta: bool) -> tuple[Column, ...]:
        """The table's columns; with `delta` each block ends in a column of differences."""
        level = ("",) * any(title for _, title in self.blocks)
        above_labels = (*level, self.labels_above) if self.labels_above else ()
        columns = [Column(label, above_labels, "l") for label in self.labels]
        for _, title in self.blocks:
            above = (title,) if title else ()
            columns += [Column(f"R@{k}", (*above, side)) for _, side in self.directions for k in self.ranks]
            columns += [Column("RSUM", above)] * self.rsum + [Column("Δ", above)] * delta
        return (*columns, *[Column(self.ratio)] * bool(self.ratio))
