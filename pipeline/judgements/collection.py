"""The images and captions of a pool, by their ids, for those who judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from pipeline.errors import InputError
from pipeline.retrieval.blocks import Ids

Side = Literal["image", "caption"]


@dataclass(frozen=True, eq=False)
class Collection:
    """I images and C captions in the order of a matrix.

    Attributes:
        image_ids: int64 [I].
        caption_ids: int64 [C].
        owner: int64 [C], the row of the image that each caption was written for; -1 for none.
        captions: The captions' text, where it is known.
    """

    image_ids: Ids
    caption_ids: Ids
    owner: Ids
    captions: Sequence[str] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions."""
        return len(self.image_ids), len(self.caption_ids)

    def ids(self, side: Side) -> Ids:
        """Choose one side's ids.

        Args:
            side: Images or captions.

        Returns:
            Int64 [I] or [C].
        """
        return self.image_ids if side == "image" else self.caption_ids

    @cached_property
    def _sorted(self) -> dict[str, tuple[Ids, Ids]]:
        orders = {"image": np.argsort(self.image_ids), "caption": np.argsort(self.caption_ids)}
        return {side: (self.ids(side)[order], order) for side, order in orders.items()}  # type: ignore[arg-type]

    def places(self, side: Side, ids: Ids) -> Ids:
        """Find where ids stand among the images or captions.

        Args:
            side: Images or captions.
            ids: Int64 [n].

        Returns:
            Int64 [n], -1 for one that is not here.
        """
        known, order = self._sorted[side]
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[at] == ids, order[at], -1)

    def require(self, side: Side, ids: Ids, where: str, rows: Ids | None = None) -> Ids:
        """Find where ids stand, all of which must be here.

        Args:
            side: Images or captions.
            ids: Int64 [n].
            where: With what the message of an error begins.
            rows: Int64 [n], the row of each in its file, for the message; None where there are none.

        Returns:
            Int64 [n].

        Raises:
            InputError: For an id that is not here.
        """
        places = self.places(side, ids)
        if missing := int((places < 0).sum()):
            first = np.argmin(places)
            said = "" if rows is None else f" in row {rows[first]}"
            raise InputError(f"{where}: {missing} of {len(ids)} {side} ids are not in the pool, {ids[first]}{said} "
                             "for one")
        return places
