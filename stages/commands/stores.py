"""The command line of `stages.stores`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(declared.Options):
    """Check a feature store's ledger, checksums, shapes, counts and values; say what is wrong and
    where.

    Of a store of scores or vectors its files are compared with their digests, and so are the files
    that `pipeline add` was given.

    Example: pipeline store verify features/sample/region.zarr --repair
    """

    store: Annotated[Path, click.argument("store", type=options.FilePath())]
    repair: Annotated[
        bool,
        declared.flag(
            "--repair",
            help="Remove what is damaged: the command that made the store then makes it again.",
        ),
    ] = False
    processes: Annotated[
        int | None,
        options.workers(
            "Shards that are read at the same time; each is held in memory.",
            show_default="a core each, at most 8",
        ),
    ] = None


verify_command = declared.command(
    VerifyOptions, "stores.verify_store", declared.with_settings_or_shipped
)


@dataclass(frozen=True, kw_only=True)
class RewriteOptions(declared.Options):
    """Rewrite a feature store with another dtype, compressor or shard size.

    Rows of images that are gone are left out, and the others are put in the manifest's order.
    Neither a network nor photographs are needed. The old store stays until the new one is whole;
    running again resumes, or does nothing.

    Example: pipeline store rewrite features/coco/region.zarr --compressor zstd --shard-images 512
    """

    store: Annotated[Path, click.argument("store", type=options.FilePath())]
    dtype: Annotated[str | None, options.dtype("the store's own")] = None
    compressor: Annotated[
        str | None,
        click.option(
            "--compressor", type=click.Choice(["none", "zstd"]), show_default="the store's own"
        ),
    ] = None
    shard_images: Annotated[
        int | None,
        click.option(
            "--shard-images",
            type=click.IntRange(min=1),
            show_default="the store's own",
            help="Images in a shard.",
        ),
    ] = None
    manifest_file: Annotated[Path | None, options.manifest(show_default="data/DATASET.parquet")] = (
        None
    )


rewrite_command = declared.command(
    RewriteOptions, "stores.rewrite_store", declared.with_settings_or_shipped
)


@dataclass(frozen=True, kw_only=True)
class CopyOptions(declared.Options):
    """Copy a feature store (NAME.zarr) or a manifest (NAME.parquet) into an object store, or from
    there.

    Each shard is checked by its checksum. An interrupted copy resumes.

    Example: pipeline store copy s3://bucket/region.zarr features/coco/region.zarr
    """

    source: Annotated[Path, click.argument("source", type=options.FilePath(in_store=True))]
    target: Annotated[Path, click.argument("target", type=options.FilePath(in_store=True))]


copy_command = declared.command(CopyOptions, "stores.copy_store")


@dataclass(frozen=True, kw_only=True)
class ExportOptions(declared.Options):
    """Write a split of a feature store as older code bases read it, or its card. Running again does
    nothing.

    scan: {split}_ims.npy, {split}_ids.txt, {split}_caps.txt. SCAN calls val `dev`, and COCO's 5K
    test split `testall`.
    butd-tsv: {split}.tsv with bottom-up-attention's columns, or LXMERT's where the store has
    objects and attributes.
    folder: an .npz an image, named after its file. FORMAT may be left out for scan.
    croissant: a card of the store, or of a manifest (NAME.parquet), in the JSON-LD that catalogues
    of data sets read.

    Example: pipeline store export features/coco/region.zarr --split val --out coco_precomp
    """

    what: Annotated[
        tuple[str, ...], click.argument("what", nargs=-1, required=True, metavar="[FORMAT] STORE")
    ]
    split: Annotated[
        str | None, options.split("Which images; scan needs one, the others take all without it.")
    ] = None
    out: Annotated[
        Path,
        click.option(
            "--out",
            type=options.OutputPath(dir_okay=True, file_okay=False),
            required=True,
            help="The folder.",
        ),
    ]
    manifest_file: Annotated[Path | None, options.manifest(show_default="data/DATASET.parquet")] = (
        None
    )


export_command = declared.command(
    ExportOptions, "stores.export_store", declared.with_settings_or_shipped
)
