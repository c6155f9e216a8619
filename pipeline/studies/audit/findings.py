"""What an audit found, in numbers and in files' names."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from pipeline.studies.audit.collection import Collection
from pipeline.studies.audit.shared import NAME, EqualCaptions, Pair, Shared

TEXTS = 100
"""Equal captions that are written out, those of most images first."""


@dataclass(frozen=True)
class Findings:
    """What two collections have in common.

    Attributes:
        one: The first collection.
        other: The second collection, or the same object for one beside itself.
        shared: Their pairs of images.
        texts: Their equal captions.
        unread: Files of the first and of the second collection that could not be read, and were compared by name alone.
    """

    one: Collection
    other: Collection
    shared: Shared
    texts: EqualCaptions
    unread: tuple[int, int]

    @property
    def alone(self) -> bool:
        """Whether one collection was compared with itself."""
        return self.one is self.other

    @property
    def leaks(self) -> list[Pair]:
        """The certain pairs that matter: all of two collections; of one, those in two splits."""
        splits = self.one.splits
        return [pair for pair in self.shared.certain if not self.alone or splits[pair.one] != splits[pair.other]]

    def by_split(self, pairs: list[Pair]) -> dict[tuple[str, str], int]:
        """(split of the first, split of the second) -> how many images of the first are in pairs."""
        rows = Counter(splits for splits, _ in {(self._splits(pair), pair.one) for pair in pairs})
        return dict(sorted(rows.items()))

    def _splits(self, pair: Pair) -> tuple[str, str]:
        return str(self.one.splits[pair.one]), str(self.other.splits[pair.other])

    def lines(self) -> list[str]:
        """Say it in a few lines, one for each finding."""
        one, other = self.one, self.other
        said = []
        for (mine, theirs), count in self.by_split(self.shared.certain).items():
            of = int((one.splits == mine).sum())
            said.append(f"{count:,} of {of:,} images of {one.name} ({mine}) are images of {other.name} ({theirs})")
        if not said:
            said.append("no image occurs twice" if self.alone else "no image in common")
        unlike = sum(pair.by == NAME for pair in self.shared.doubtful)
        said.append(f"further pairs that look alike: {len(self.shared.doubtful) - unlike:,}")
        if unlike:
            said.append(f"pairs of one photo number that look different: {unlike:,}")
        where = "that several of its images have" if self.alone else f"that {other.name} has too"
        said.append(f"captions of {one.name} {where}: {self.texts.captions:,} of {len(one.captions):,}, "
                    f"different texts: {len(self.texts.texts):,}")
        if any(self.unread):
            said.append(f"files that could not be read, and are compared by their names alone: {sum(self.unread):,}")
        return said

    def as_json(self) -> dict[str, Any]:
        """JSON values: pairs of files with their splits and how they were found, equal captions, and numbers."""
        return {
            "collections": [self.one.name, self.other.name],
            "images": [len(self.one.files), len(self.other.files)],
            "unread": list(self.unread),
            "certain": [self._pair(pair) for pair in self.shared.certain],
            "doubtful": [self._pair(pair) | {"bits": pair.bits} for pair in self.shared.doubtful],
            "captions": {"texts": len(self.texts.texts), "captions": self.texts.captions, "first": [
                {"text": text, "images": [[self.one.files[row] for row in mine],
                                          [self.other.files[row] for row in theirs]]}
                for text, mine, theirs in self.texts.texts[:TEXTS]]},
        }

    def _pair(self, pair: Pair) -> dict[str, Any]:
        return {"files": [self.one.files[pair.one], self.other.files[pair.other]], "splits": list(self._splits(pair)),
                "by": pair.by}
