"""The command line of `stages.stores`."""

from typing import Any

import click

from stages import options, values


@click.command
@click.argument("store", type=options.FilePath())
@click.option(
    "--repair",
    is_flag=True,
    help="Remove what is damaged: the command that made the store then makes it again.",
)
@options.workers(
    "Shards that are read at the same time; each is held in memory.",
    show_default="a core each, at most 8",
)
@options.with_settings_or_shipped
def verify_command(**given: Any) -> None:
    """Check a feature store's ledger, checksums, shapes, counts and values; say what is wrong and
    where.

    Of a store of scores or vectors its files are compared with their digests, and so are the files
    that `pipeline add` was given.

    Example: pipeline store verify features/sample/region.zarr --repair
    """
    from stages.stores import verify_store

    verify_store(**given)


@click.command
@click.argument("store", type=options.FilePath())
@options.dtype("the store's own")
@click.option("--compressor", type=click.Choice(["none", "zstd"]), show_default="the store's own")
@click.option(
    "--shard-images",
    type=click.IntRange(min=1),
    show_default="the store's own",
    help="Images in a shard.",
)
@options.manifest(show_default="data/DATASET.parquet")
@options.with_settings_or_shipped
def rewrite_command(**given: Any) -> None:
    """Rewrite a feature store without unused rows, or with another dtype, compressor or shard size.

    Rows of images that are gone or were replaced are left out, and the others are put in order.
    Neither a network nor photographs are needed. The old store stays until the new one is whole;
    running again resumes, or does nothing.

    Example: pipeline store rewrite features/coco/region.zarr --compressor zstd --shard-images 512
    """
    from stages.stores import rewrite_store

    rewrite_store(**given)


@click.command
@click.argument("source", type=options.FilePath(in_store=True))
@click.argument("target", type=options.FilePath(in_store=True))
def copy_command(**given: Any) -> None:
    """Copy a feature store (NAME.zarr) or a manifest (NAME.parquet) into an object store, or from
    there.

    Each shard is checked by its checksum. An interrupted copy resumes.

    Example: pipeline store copy s3://bucket/region.zarr features/coco/region.zarr
    """
    from stages.stores import copy_store

    copy_store(**given)


@click.command
@click.argument("form", metavar="FORMAT", type=values.PartName("importers"))
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, type=options.FilePath())
@options.dataset
@options.manifest("The manifest of the images.", show_default="data/DATASET.parquet")
@options.feature("The feature that it is used as.")
@options.out("features/DATASET/FEATURE.zarr", kind="feature store")
@click.option(
    "--as",
    "reported_as",
    metavar="NAME",
    show_default="FORMAT-ITEMSxVALUES",
    help="The name under which the features are reported. Tables accept a paper's name, such as "
    "butd-36-proposals, and mark any other.",
)
@options.dtype("extract.dtype")
@options.on_error("extract.on_error", "a missing or damaged image")
@click.option(
    "--frames",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The most frames of a clip, evenly spaced; of photographs all items are kept.",
)
@options.if_changed
@options.with_settings_or_shipped
def import_command(**given: Any) -> None:
    """Import features of another code base into a store. Running again does nothing, or resumes.

    \b
    scan      a folder with {split}_ims.npy, {split}_ids.txt, {split}_caps.txt
    butd-tsv  one or several TSV files of bottom-up-attention or LXMERT
    folder    folders with one .npy, .npz or .pth an image or clip, named after it
    hgr       folders with HGR's {trn,val,tst}_ft.hdf5 or .npy

    Example: pipeline store import butd-tsv train.tsv val.tsv --dataset coco --feature region --as
    butd-36-proposals
    """
    from stages.stores import import_store

    import_store(**given)


@click.command
@click.argument("what", nargs=-1, required=True, metavar="[FORMAT] STORE")
@options.split("Which images; scan needs one, the others take all without it.")
@click.option(
    "--out",
    type=options.OutputPath(dir_okay=True, file_okay=False),
    required=True,
    help="The folder.",
)
@options.manifest(show_default="data/DATASET.parquet")
@options.with_settings_or_shipped
def export_command(**given: Any) -> None:
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
    from stages.stores import export_store

    export_store(**given)
