"""Hubs of each system: how unevenly candidates are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pipeline.report import names
from pipeline.retrieval.similarity import Direction
from pipeline.scores.similarity_store import SimilarityStore
from pipeline.settings import Evaluate
from pipeline.statistics.hubness import Hubness, hubness, occurrences

K = 10


class SystemHubs(NamedTuple):
    """Hubs of one system.

    Attributes:
        name: The system's title.
        captions: Of captions, as images find them.
        images: Of images, as captions find them.
    """

    name: str
    captions: Hubness
    images: Hubness


def hubs(stores: Mapping[str, SimilarityStore], settings: Evaluate,
         progress: Callable[[str], object] = lambda what: None) -> list[SystemHubs]:
    """Measure the hubs of systems.

    Args:
        stores: Name -> scores.
        settings: Seed and block size.
        progress: Called with each system's name before it is measured.

    Returns:
        An entry for each system.
    """
    found = []
    for name, store in stores.items():
        progress(f"hubs of {name}")

        def of(direction: Direction, store: SimilarityStore = store) -> Hubness:
            return hubness(occurrences(store.scores, direction, K, settings.seed, settings.block_megabytes))

        found.append(SystemHubs(names.system(store.made_from), of("i2t"), of("t2i")))
    return found
