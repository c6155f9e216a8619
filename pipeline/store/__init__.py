"""Feature stores: sharded zarr with one owner a shard, a ledger of what is whole, and a fingerprint."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.files.lock import exclusive
    from pipeline.store.layout import Extra, Layout, StoreError, describe
    from pipeline.store.reader import FeatureStore, provenance
    from pipeline.store.survey import survey
    from pipeline.store.writer import Shard, prepare, write_failures, write_shard

__all__ = ["Extra", "FeatureStore", "Layout", "Shard", "StoreError", "describe", "exclusive", "prepare", "provenance",
           "survey", "write_failures", "write_shard"]

lazy.offer(__name__)
