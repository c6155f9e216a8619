"""What a head's images must offer."""

from pathlib import Path
from typing import Protocol

import numpy as np


class Sizes(Protocol):
    """The sizes of an image source."""

    @property
    def items(self) -> int:
        """N, the most items of an image."""

    @property
    def dimension(self) -> int:
        """D."""


class ItemReader(Protocol):
    """Images by their row, as a head reads them."""

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read images for `TwoTower.embed_images`.

        Args:
            rows: Int64 [B].

        Returns:
            Items [B, N, D] or pixels [B, S, S, 3], and counts int64 [B].
        """
        ...


class ImageSource(ItemReader, Protocol):
    """Images by their row in the manifest."""

    @property
    def path(self) -> Path:
        """Where they lie, for messages."""

    @property
    def identity(self) -> str:
        """Digest of all that a head trained on them depends on."""

    @property
    def layout(self) -> Sizes:
        """Their sizes."""

    @property
    def width(self) -> int:
        """The last dimension of items that `read` gives."""

    @property
    def done(self) -> np.ndarray:
        """Bool [I], False where an image has no features."""

    def require_extracted(self, images: np.ndarray) -> None:
        """Check that no image is still to be extracted.

        Args:
            images: Int64 [B].

        Raises:
            InputError: If one is.
        """
        ...

    def content(self, rows: np.ndarray, like: str = "") -> str:
        """Digest the bytes that `read` rests on.

        Args:
            rows: Int64 [B].
            like: A digest that was recorded; the result is made as it was, if it can be.

        Returns:
            SHA-256 of the bytes as they were written.
        """
        ...

    def check(self, rows: np.ndarray) -> None:
        """Check that these bytes are as they were written.

        Args:
            rows: Int64 [B].

        Raises:
            InputError: If they are not.
        """
        ...
