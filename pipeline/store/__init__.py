"""Feature stores: sharded zarr with one owner a shard, a ledger of what is whole, and a fingerprint."""

from pipeline.store.layout import Extra, Layout, StoreError
from pipeline.store.reader import FeatureStore, provenance
from pipeline.store.writer import Shard, exclusive, prepare, write_failures, write_shard

__all__ = ["Extra", "FeatureStore", "Layout", "Shard", "StoreError", "exclusive", "prepare", "provenance",
           "write_failures", "write_shard"]
