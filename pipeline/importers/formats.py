"""The formats by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.importers.base import FeatureSource

FORMATS: lazy.LookupTable[Callable[..., FeatureSource]] = lazy.LookupTable({
    "scan": "pipeline.importers.scan:index",
    "butd-tsv": "pipeline.importers.butd_tsv:index",
    "folder": "pipeline.importers.folder:index",
    "hgr": "pipeline.importers.hgr:index",
}, "importers")
"""Format -> what makes a `FeatureSource` of (paths, manifest, on_found)."""
