"""Check a feature store."""

from __future__ import annotations

from pathlib import Path

import click
from tqdm import tqdm

from pipeline.errors import InputError
from pipeline.store import exclusive, ledger, verify
from pipeline.store import layout as store_layout


@click.command
@click.argument("store", type=click.Path(path_type=Path))
@click.option("--repair", is_flag=True, help="Forget the damaged shards; the same `pipeline extract` then makes those "
              "again, and no others.")
def command(store: Path, repair: bool) -> None:
    """Check a feature store's ledger, checksums, shapes, counts and values; say what is wrong and where.

    Example: pipeline verify features/sample/region.zarr
    """
    shards = store_layout.describe(store)[0].shards
    damaged = []
    for shard, found in tqdm(verify.verify(store), total=shards, unit="shard", desc="verify"):
        for fault in found:
            tqdm.write(f"shard {shard}: {fault}")
        damaged += [shard] if found else []
    if damaged and repair:
        with exclusive(store):
            for shard in damaged:
                ledger.erase(store, shard)
        click.echo(f"{store}: {len(damaged)} of {shards} shards forgotten; run the same `pipeline extract` again")
    elif damaged:
        raise InputError(f"{store}: {len(damaged)} of {shards} shards are damaged; --repair forgets them, so that the "
                         "same `pipeline extract` makes them again")
    else:
        click.echo(f"{store}: {shards} shards, all as they were written")
