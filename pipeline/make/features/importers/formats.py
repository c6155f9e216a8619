"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.make.features.importers.base import FeatureSource

# Format -> the function (paths, manifest, on_found) that makes a `FeatureSource`.
FORMATS: lazy.LookupTable[Callable[..., FeatureSource]] = lazy.LookupTable(
    {
        "scan": "pipeline.make.features.importers.scan:index",
        "butd-tsv": "pipeline.make.features.importers.butd_tsv:index",
        "folder": "pipeline.make.features.importers.folder:index",
        "hgr": "pipeline.make.features.importers.hgr:index",
    },
    "importers",
)
