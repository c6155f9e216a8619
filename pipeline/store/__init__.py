"""Feature stores: sharded zarr with one owner for each shard, a ledger of finished shards, and a fingerprint."""

from typing import TYPE_CHECKING

from pipeline import lazy

if TYPE_CHECKING:
    from pipeline.files.lock import exclusive
    from pipeline.store.layout import Extra, StoreError, StoreLayout, read_header
    from pipeline.store.planning import Plan, Wanted, making, plan
    from pipeline.store.reader import FeatureStore, provenance
    from pipeline.store.writer import Shard, write_failures, write_shard

lazy.offer(__name__)
