"""What answers questions: anything that embeds images and captions in one space."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    from pipeline.manifest import Manifest


class System(Protocol):
    """A trained head (`of_head.OfHead`), or a dual encoder as it comes (`of_encoder.OfEncoder`)."""

    def find(self, files: Sequence[str], place: Path) -> np.ndarray:
        """Look for images, which `images` then embeds.

        Args:
            files: I files.
            place: Where they are named, for messages.

        Returns:
            Bool [I], whether each is there.

        Raises:
            InputError: If none is.
        """
        ...

    def images(self) -> np.ndarray:
        """Embed the images that were found.

        Returns:
            Unit vectors, float32 [I, d].
        """
        ...

    def captions(self, captions: Sequence[str]) -> np.ndarray:
        """Embed captions.

        Args:
            captions: C captions.

        Returns:
            Unit vectors, float32 [C, d].
        """
        ...

    def reads(self, captions: Sequence[str]) -> list[Any]:
        """Convert captions to what is read; with unknown words two of them can be equal.

        Args:
            captions: C captions.

        Returns:
            What is read of each, to be compared.
        """
        ...

    def cut(self, captions: Sequence[str]) -> tuple[int, int]:
        """Count captions that are longer than what is read.

        Args:
            captions: C captions.

        Returns:
            How many are cut, and the most words or word pieces that are read.
        """
        ...

    @property
    def made_from(self) -> dict[str, Any]:
        """What makes the vectors, as it is recorded beside scores."""

    def trained_on(self, own: Manifest) -> int | None:
        """Count the images that it was trained on.

        Args:
            own: What it was trained on.

        Returns:
            How many of the images that were found; None where that is not known.
        """
        ...
