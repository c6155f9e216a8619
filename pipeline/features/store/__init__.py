"""Feature stores: sharded zarr with one owner for each shard, a ledger of finished shards, and a
fingerprint.
"""

from typing import TYPE_CHECKING

from pipeline.parts import lazy

if TYPE_CHECKING:
    from pipeline.features.store import boxes
    from pipeline.features.store.item_format import ItemFormat
    from pipeline.features.store.layout import Extra, StoreError, StoreLayout, read_header
    from pipeline.features.store.planning import Plan, Wanted, making, plan
    from pipeline.features.store.reader import FeatureStore, provenance
    from pipeline.features.store.writer import Shard, write_failures, write_shard
    from pipeline.files.atomic import exclusive

lazy.imports(__name__)
