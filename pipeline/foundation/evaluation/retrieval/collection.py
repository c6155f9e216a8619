"""Images and captions by their ids: which row and which column of a matrix each one is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.parts.errors import InputError

Side: TypeAlias = Literal["image", "caption"]


def rows_of(ids: Ids, wanted: Ids, missing: Callable[[int], str] | None = None) -> Ids:
    """The place of each wanted id, int64 [n], among ids [N], each once and in any order; -1 for
    none.

    Args:
        ids: Int64 [N].
        wanted: Int64 [n].
        missing: Makes a message of the first wanted id that is not among them; None where that is
            no error.

    Raises:
        InputError: With that message.
    """
    rows = np.full(len(wanted), -1, np.int64)
    if len(ids):
        order = np.argsort(ids, kind="stable")
        place = np.searchsorted(ids, wanted, sorter=order).clip(max=len(ids) - 1)
        at = order[place]
        rows = np.where(ids[at] == wanted, at, -1)
    if missing is not None and (rows < 0).any():
        raise InputError(missing(int(wanted[rows < 0][0])))
    return rows


@dataclass(frozen=True, eq=False)
class Collection:
    """I images and C captions in the order of a matrix."""

    image_ids: Ids  # int64 [I]
    caption_ids: Ids  # int64 [C]
    # int64 [C], the row of the image that each caption was written for; -1 for none.
    caption_image: Ids
    captions: Sequence[str] | None = None  # the captions' text, where it is known

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions."""
        return len(self.image_ids), len(self.caption_ids)

    def ids(self, side: Side) -> Ids:
        """The ids of a side, "image" or "caption": int64 [I] or [C]."""
        if side == "image":
            return self.image_ids
        return self.caption_ids

    def image_of_caption(self) -> dict[int, int]:
        """The id of each caption's image, by the caption's id."""
        owners = of_owners(self.image_ids, self.caption_image)
        return dict(zip(self.caption_ids.tolist(), owners.tolist(), strict=True))

    def require(self, side: Side, ids: Ids, where: str, rows: Ids | None = None) -> Ids:
        """The row or column of each of some ids, int64 [n], of a side.

        where, rows: the file that has them, and their rows there, for the message.

        Raises:
            InputError: For an id that the collection lacks.
        """
        rows_in_pool = rows_of(self.ids(side), ids)
        missing = int((rows_in_pool < 0).sum())
        if missing:
            first = np.argmin(rows_in_pool)
            in_row = ""
            if rows is not None:
                in_row = f" in row {rows[first]}"
            raise InputError(
                f"{where}: the pool lacks {missing} of {len(ids)} {side} ids, such as "
                f"{ids[first]}{in_row}"
            )
        return rows_in_pool
