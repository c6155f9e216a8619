"""The similarity of each query's best right candidate, to which all other candidates are compared."""

import numpy as np

from pipeline.evaluation.retrieval.blocks import Cells, Ids
from pipeline.evaluation.retrieval.relevance import Positives, Relevance
from pipeline.evaluation.retrieval.similarity import Direction, Similarity


class Levels:
    """One direction's similarities of right pairs.

    Attributes:
        positives: The right candidates of Q queries, P pairs.
        cells: [P], the similarity of each pair.
        best: [Q], the largest of each query; infinity if nothing is right for it, which no candidate reaches.
    """

    def __init__(self, positives: Positives, cells: Cells) -> None:
        """Find the best of each query."""
        self.positives, self.cells = positives, cells
        self.best = positives.best(cells)

    def reached(self) -> tuple[Ids, Ids]:
        """Find the pairs whose similarity is the best of their query."""
        query = self.positives.query
        here = np.flatnonzero(self.cells == self.best[query])
        return query[here], self.positives.candidate[here]

    def right(self) -> Ids:
        """Count the right candidates of each query that share its best similarity."""
        return np.bincount(self.reached()[0], minlength=len(self.best))


class Thresholds:
    """The best right similarity of each image [I] and of each caption [C], read before any block."""

    def __init__(self, source: Similarity, relevance: Relevance) -> None:
        """Read the similarities of all right pairs."""
        by_caption, by_image = relevance.t2i, relevance.i2t
        cells = source.pairs(by_caption.candidate, by_caption.query)
        same = relevance.order is not None
        self.levels: dict[Direction, Levels] = {
            "i2t": Levels(by_image, cells[relevance.order] if same else source.pairs(by_image.query,
                                                                                    by_image.candidate)),
            "t2i": Levels(by_caption, cells)}
        self.written: list[Direction] = ["t2i"] if same else ["t2i", "i2t"]
        self.image, self.caption = self.levels["i2t"].best, self.levels["t2i"].best
        equal = source.equal
        self.is_computed = equal is not None
        self.labels = None
        if equal is not None and any(len(np.unique(labels)) < len(labels) for labels in equal):
            self.labels = (equal.images, self._best_labels("i2t", equal.captions),
                           equal.captions, self._best_labels("t2i", equal.images))

    def _best_labels(self, direction: Direction, labels: Ids) -> Ids:
        """Find the label of each query's best right candidate: int64 [Q], -1 if nothing is right for it."""
        query, candidate = self.levels[direction].reached()
        found = np.full(len(self.levels[direction].best), -1, np.int64)
        found[query] = labels[candidate]
        return found

    def settle(self, block: Cells, rows: slice, columns: slice) -> None:
        """Overwrite cells of a computed block that must equal a threshold.

        Rounding may differ from one matrix product to another. Without this, an image could rank above itself or above
        its own duplicate.
        """
        if not self.is_computed:
            return
        for direction in self.written:
            self._settle_pairs(block, rows, columns, direction)
        if self.labels is not None:
            image, best_caption, caption, best_image = self.labels
            np.copyto(block, self.caption[None, columns], where=image[rows, None] == best_image[None, columns])
            np.copyto(block, self.image[rows, None], where=best_caption[rows, None] == caption[None, columns])

    def _settle_pairs(self, block: Cells, rows: slice, columns: slice, direction: Direction) -> None:
        level = self.levels[direction]
        queries, candidates = (columns, rows) if direction == "t2i" else (rows, columns)
        start = level.positives.start[queries.start:queries.stop + 1]
        part = slice(int(start[0]), int(start[-1]))
        query = np.repeat(np.arange(len(start) - 1), np.diff(start))
        candidate = level.positives.candidate[part]
        here = np.flatnonzero((candidate >= candidates.start) & (candidate < candidates.stop))
        place = query[here], candidate[here] - candidates.start
        block[place[::-1] if direction == "t2i" else place] = level.cells[part][here]


class OwnThresholds:
    """The best right similarity of each query, read from the block that holds the whole query.

    Cells are computed once, and none is computed beforehand. Several threads fill the arrays at once, each its own
    queries.
    """

    def __init__(self, source: Similarity, positives: Positives, by_image: bool) -> None:
        """Make room for the thresholds; they are unknown until `settle` has seen their queries."""
        self.positives = positives
        self.cells, self.best = np.full(len(positives.candidate), np.nan), np.full(len(positives), np.inf)
        equal = source.equal
        distinct = equal is None or all(len(np.unique(labels)) == len(labels) for labels in equal)
        self.labels = None if equal is None or distinct else equal.captions if by_image else equal.images

    def settle(self, scores: Cells, queries: slice) -> None:
        """Read the thresholds of some queries, and give candidates equal to a query's best the same value."""
        start = self.positives.start[queries.start:queries.stop + 1]
        part = slice(int(start[0]), int(start[-1]))
        mine = Positives(start - start[0], self.positives.candidate[part])
        query, candidate = mine.query, mine.candidate
        found = scores[query, candidate]
        best = mine.best(found)
        if self.labels is not None:
            reached = np.flatnonzero(found == best[query])
            label = np.full(len(scores), -1, np.int64)
            label[query[reached]] = self.labels[candidate[reached]]
            np.copyto(scores, best[:, None], where=label[:, None] == self.labels)
            found = scores[query, candidate]
        self.cells[part], self.best[queries] = found, best

    def right(self) -> Ids:
        """Count the right candidates of each query that share its best similarity."""
        query = self.positives.query
        return np.bincount(query[self.cells == self.best[query]], minlength=len(self.best))
