"""The hits of each image, which results store: systems can then be compared without their scores.

Systems are compared image by image: the sum of each recall's hits over an image's queries is all
that a paired test needs. It is kept exactly, also where ties make it a fraction.
"""

import base64
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pipeline.foundation.evaluation.metrics.base import RECALLS, STATISTICS, Statistic
from pipeline.foundation.evaluation.metrics.standard import Metrics, QueryValues
from pipeline.foundation.evaluation.retrieval import Floats, Ids, Marks, Ranks, Ties
from pipeline.foundation.parts.errors import refusing

# The largest value of each of `STATISTICS`, which have this order in every array here; after them
# come further metrics, of which each is at most 100.
MOST = np.array([100.0] * 6 + [600.0])
# The direction of each of the six recalls, as a column of an image's numbers of queries.
WAYS = (0, 0, 0, 1, 1, 1)
# For each image: the hits of six recalls, then its number of queries in both directions.
COLUMNS = 2 * len(RECALLS) + 2


@dataclass(frozen=True)
class FoldHits:
    """The hits and queries of each image of one fold; images without captions are left out."""

    # float64 [I, 6 + E], the image's expected number of hits for each recall of `STATISTICS`, and
    # the sum of its queries' values by each further metric
    hits: Floats
    queries: Ids  # int64 [I, 2], the image's number of queries, i2t and t2i
    further: tuple[Statistic, ...] = ()  # the further metrics

    @classmethod
    def of(
        cls, ranks: Ranks, ties: Ties, further: Mapping[Statistic, QueryValues] | None = None
    ) -> "FoldHits":
        """Sum the chances of a hit over each image's queries, and what else they have."""
        further = further or {}
        images = ranks.shape[0]
        hits = []
        queries = []
        for ranked, owner in (
            (ranks.i2t, ranks.i2t.query),
            (ranks.t2i, ranks.relevance.drawn_with[ranks.t2i.query]),
        ):
            for k in RECALLS:
                hits.append(np.bincount(owner, ranked.hits(k, ties), images))
            queries.append(np.bincount(owner, minlength=images))
        for each in further.values():
            hits.append(np.bincount(each.drawn_with, each.values, images))
        asking = drawn(ranks)
        hits_of_images = np.stack(hits, 1)[asking].astype(np.float64)
        return cls(hits_of_images, np.stack(queries, 1)[asking], tuple(further))

    @property
    def ways(self) -> list[int]:
        """The direction of each column of hits, as a column of `queries`."""
        return [*WAYS, *(("i2t", "t2i").index(name.direction) for name in self.further)]

    @property
    def total(self) -> Ids:
        """How many queries there are in each direction, 1 for none: int64 [2].

        Lists may rank one direction alone; the other's hits are all 0.
        """
        return np.maximum(self.queries.sum(0), 1)

    def minus(self, other: "FoldHits") -> "FoldHits":
        """Subtract another system's hits on the same queries."""
        return replace(self, hits=self.hits - other.hits)

    def recalls(self, weights: Floats) -> Floats:
        """Compute recalls with weighted images."""
        queries = (weights @ self.queries)[:, self.ways]
        hits = weights @ self.hits
        recalls: Floats = 100 * hits / np.maximum(queries, 1)
        return recalls

    def contributions(self) -> Floats:
        """Compute how far each image lies above or below the recalls.

        If all images have equally many queries, this is the image's own recall minus the overall
        recall. Otherwise it is the linear approximation of the ratio hits / queries.

        Source: Cochran, Sampling Techniques, 1977, section 6.4.
        """
        queries = self.queries[:, self.ways]
        total = self.total[self.ways]
        apart = self.hits - self.hits.sum(0) / total * queries
        contributions: Floats = 100 * apart / (total / len(queries))
        return contributions


def drawn(ranks: Ranks) -> Marks:
    """Find the images that test sets draw: those with queries. Other images are candidates only."""
    asking = np.zeros(ranks.shape[0], bool)
    asking[ranks.i2t.query] = True
    asking[ranks.relevance.drawn_with[ranks.t2i.query]] = True
    return asking


def gather(metrics: Metrics) -> list[FoldHits]:
    """Sum the hits of each fold by image."""
    return [FoldHits.of(ranks, metrics.ties) for ranks in metrics.ranks]


def gather_all(metrics: Metrics) -> list[FoldHits]:
    """The same, with what each image has by further metrics."""
    folds = []
    for number, ranks in enumerate(metrics.ranks):
        further = {name: of_folds[number] for name, of_folds in metrics.further.items()}
        folds.append(FoldHits.of(ranks, metrics.ties, further))
    return folds


def names(folds: Sequence[FoldHits]) -> list[Statistic]:
    """What the columns of every array here are: `STATISTICS`, then further metrics."""
    return [*STATISTICS, *folds[0].further]


def most(folds: Sequence[FoldHits]) -> Floats:
    """The largest value of each of `names`."""
    return np.concatenate([MOST, np.full(len(folds[0].further), 100.0)])


def contributions(folds: Sequence[FoldHits]) -> Floats:
    """Compute how far each image of all folds lies above or below the statistics.

    The variance of a statistic over test sets of other images is the variance of its column,
    divided by N.
    """
    images = sum(len(fold.hits) for fold in folds)
    six = []
    for fold in folds:
        # A statistic is the mean over folds, so an image of a smaller fold has more weight.
        weight = images / (len(folds) * len(fold.hits))
        six.append(fold.contributions() * weight)
    return _with_sum(np.concatenate(six))


def _with_sum(columns: Floats) -> Floats:
    """Six recalls and further metrics [..., 6 + E], with the sum of recalls after these."""
    six = columns[..., : len(WAYS)]
    return np.concatenate([six, six.sum(-1, keepdims=True), columns[..., len(WAYS) :]], -1)


def parts(folds: Sequence[FoldHits]) -> Floats:
    """Each image's part of the statistics, multiplied by N so that their mean is the statistics:
    float64 [N, 7 + E].
    """
    shares = [100 * fold.hits / fold.total[fold.ways] for fold in folds]
    columns = np.concatenate(shares)
    columns *= len(columns) / len(folds)
    return _with_sum(columns)


def weights(folds: Sequence[FoldHits]) -> Floats:
    """Each image's part of a value that all queries have, likewise: float64 [N, 7 + E]."""
    both = np.concatenate([fold.queries / fold.total for fold in folds])
    both *= len(both) / len(folds)
    columns = _with_sum(both[:, folds[0].ways])
    columns[:, len(WAYS)] /= len(WAYS)
    return columns


def statistics(folds: Sequence[FoldHits]) -> Floats:
    """Compute the statistics with each image counted once."""
    recalls = [fold.recalls(np.ones((1, len(fold.hits)))) for fold in folds]
    return mean(recalls)[0]


def mean(recalls: Sequence[Floats]) -> Floats:
    """Average recalls and further metrics [..., 6 + E] over folds, with the sum of recalls."""
    return _with_sum(np.mean(recalls, axis=0))


@dataclass(frozen=True)
class ImageHits:
    """The hits that `pack` wrote, decoded when they are first used."""

    packed: Mapping[str, Any]

    @property
    def queries(self) -> str:
        """A digest of the queries, the right answers and the rules; systems with the same one can
        be compared.
        """
        return str(self.packed.get("queries"))

    @cached_property
    def key(self) -> str:
        """Equal for equal hits on the same queries."""
        contents = [self.packed.get(name) for name in ("queries", "images", "values", "codes")]
        return hashlib.sha256(repr(contents).encode()).hexdigest()

    @cached_property
    def folds(self) -> list[FoldHits]:
        """The hits of each fold, decoded once; InputError if they cannot be read."""
        with refusing(
            (KeyError, TypeError, ValueError, IndexError, OverflowError, zlib.error),
            lambda error: (
                f"the hits of each image cannot be read ({error}); run `pipeline evaluate` again"
            ),
        ):
            values = np.array(self.packed["values"], np.float64)
            images = [int(size) for size in self.packed["images"]]
            dtype = _dtype(len(values))
            size = COLUMNS * sum(images) * dtype.itemsize
            compressed = base64.b64decode(self.packed["codes"], validate=True)
            # One byte more than is right: a text that holds more is refused before it fills the
            # memory.
            codes = zlib.decompressobj().decompress(compressed, size + 1)
            places = np.frombuffer(codes, dtype).reshape(COLUMNS, sum(images))
            table = values[places].T
        folds = []
        for part in np.split(table, np.cumsum(images)[:-1]):
            queries = part[:, -2:].astype(np.int64)
            folds.append(FoldHits(part[:, :-2], queries))
        return folds

    @cached_property
    def statistics(self) -> Floats:
        """The recalls and their sum, in the order of `STATISTICS`: float64 [7]."""
        return statistics(self.folds)

    def equals(self, other: "ImageHits") -> bool:
        """Whether the other system has the same hits on the same queries, but for rounding.

        Raises:
            InputError: If either cannot be read.
        """
        if self.queries != other.queries or len(self.folds) != len(other.folds):
            return False
        return all(map(_equal, self.folds, other.folds))


def _equal(one: FoldHits, other: FoldHits) -> bool:
    """Whether two folds have the same hits and queries, but for rounding."""
    if one.hits.shape != other.hits.shape or not np.array_equal(one.queries, other.queries):
        return False
    return np.allclose(one.hits, other.hits)


def pack(metrics: Metrics, image_ids: np.ndarray, caption_ids: np.ndarray) -> dict[str, Any]:
    """Write the hits of each image as plain JSON values: some 10 kB for 5,000 images with five
    captions each.

    Args:
        metrics: From `evaluate`.
        image_ids: [I], the ids of all ranked images in order.
        caption_ids: [C], of all captions.

    Returns:
        The digest of the queries, the number of images of each fold, the different values, and
        which of them each image
        has: [8, images] places among the values, compressed, as base64.
    """
    folds = gather(metrics)
    table = np.concatenate([np.hstack([fold.hits, fold.queries]) for fold in folds])
    values, places = np.unique(table, return_inverse=True)
    columns = places.reshape(table.shape).T.astype(_dtype(len(values)))
    packed = zlib.compress(columns.tobytes(), 9)
    return {
        "queries": _digest(metrics, image_ids, caption_ids),
        "images": [len(fold.hits) for fold in folds],
        "values": values.tolist(),
        "codes": base64.b64encode(packed).decode("ascii"),
    }


def _dtype(values: int) -> np.dtype:
    return np.min_scalar_type(max(values - 1, 0)).newbyteorder("<")


def _digest(metrics: Metrics, image_ids: Ids, caption_ids: Ids) -> str:
    """A digest of images and captions in their order, what is right, and the rules."""
    digest = hashlib.sha256(f"{metrics.protocol} {metrics.ties}".encode())
    for ids in (image_ids, caption_ids):
        digest.update("\n".join(map(str, ids.tolist())).encode())
    for ranks in metrics.ranks:
        truth = ranks.relevance
        for array in (
            truth.owner,
            truth.i2t.start,
            truth.i2t.candidate,
            truth.t2i.start,
            truth.t2i.candidate,
        ):
            digest.update(f" {len(array)} ".encode())
            digest.update(array.astype("<i8").tobytes())
    return digest.hexdigest()[:16]
