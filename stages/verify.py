"""Check a feature store."""

from __future__ import annotations

from pathlib import Path

import click
from tqdm import tqdm

from pipeline.errors import InputError
from pipeline.store import layout as store_layout
from pipeline.store import verify


@click.command
@click.argument("store", type=click.Path(path_type=Path))
def command(store: Path) -> None:
    """Check a feature store's ledger, checksums, shapes, counts and values; say what is wrong and where.

    Example: pipeline verify features/sample/region.zarr
    """
    shards = store_layout.describe(store)[0].shards
    faults = 0
    for shard, found in tqdm(verify.verify(store), total=shards, unit="shard", desc="verify"):
        for fault in found:
            tqdm.write(f"shard {shard}: {fault}")
        faults += len(found)
    if faults:
        raise InputError(f"{store}: {faults} faults; extract again to mend what is missing")
    click.echo(f"{store}: {shards} shards, all as they were written")
