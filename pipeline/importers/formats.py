"""The formats by name."""

from __future__ import annotations

# Format -> the module whose `index` makes a FeatureSource of paths and a manifest.
FORMATS = {
    "scan": "pipeline.importers.scan",
    "butd-tsv": "pipeline.importers.butd_tsv",
    "folder": "pipeline.importers.folder",
}
