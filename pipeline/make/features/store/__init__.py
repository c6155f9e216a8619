"""Feature stores: sharded zarr with one owner for each shard, a ledger of finished shards, and a
fingerprint.
"""

from typing import TYPE_CHECKING

from pipeline.foundation.parts import lazy

if TYPE_CHECKING:
    from pipeline.foundation.files.atomic import exclusive
    from pipeline.make.features.store import boxes
    from pipeline.make.features.store.item_format import ItemFormat
    from pipeline.make.features.store.layout import Extra, StoreError, StoreLayout, read_header
    from pipeline.make.features.store.planning import Plan, Wanted, making, plan
    from pipeline.make.features.store.reader import FeatureStore, provenance
    from pipeline.make.features.store.writer import Shard, write_failures, write_shard

lazy.imports(__name__)
