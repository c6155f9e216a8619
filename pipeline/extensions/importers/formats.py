"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.extensions.importers.base import FeatureSource

# Format -> the function (paths, manifest, on_found) that makes a `FeatureSource`.
FORMATS: lazy.LookupTable[Callable[..., FeatureSource]] = lazy.LookupTable(
    {
        "scan": "pipeline.extensions.importers.scan:index",
        "butd-tsv": "pipeline.extensions.importers.butd_tsv:index",
        "folder": "pipeline.extensions.importers.folder:index",
        "hgr": "pipeline.extensions.importers.hgr:index",
    },
    "importers",
)
