"""The options of `pipeline store import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click

from stages import declared, options, values


@dataclass(frozen=True, kw_only=True)
class ImportOptions(declared.Options):
    """Import features of another code base into a store. Running again does nothing, or resumes.

    \b
    scan      a folder with {split}_ims.npy, {split}_ids.txt, {split}_caps.txt
    butd-tsv  one or several TSV files of bottom-up-attention or LXMERT
    folder    folders with one .npy, .npz or .pth an image or clip, named after it
    hgr       folders with HGR's {trn,val,tst}_ft.hdf5 or .npy

    Example: pipeline store import butd-tsv train.tsv val.tsv --dataset coco --feature region
    --network butd-36-proposals
    """

    form: Annotated[
        str, click.argument("form", metavar="FORMAT", type=values.PartName("importers"))
    ]
    sources: Annotated[
        tuple[Path, ...],
        click.argument(
            "sources", metavar="SOURCE...", nargs=-1, required=True, type=options.FilePath()
        ),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    manifest_file: Annotated[
        Path | None,
        options.manifest("The manifest of the images.", show_default="data/DATASET.parquet"),
    ] = None
    feature: Annotated[str | None, options.feature("The feature that it is used as.")] = None
    out: Annotated[
        Path | None, options.out("features/DATASET/FEATURE.zarr", kind="feature store")
    ] = None
    reported_as: Annotated[
        str | None,
        click.option(
            "--network",
            metavar="NAME",
            show_default="FORMAT-ITEMSxVALUES",
            help="The name under which the features are reported. Tables accept a paper's name, such as "
            "butd-36-proposals, and mark any other.",
        ),
    ] = None
    dtype: Annotated[str | None, options.dtype("extract.dtype")] = None
    on_error: Annotated[
        Literal["fail", "skip"] | None,
        options.on_error("extract.on_error", "a missing or damaged image"),
    ] = None
    frames: Annotated[
        int,
        click.option(
            "--frames",
            type=click.IntRange(min=1),
            show_default=True,
            help="The most frames of a clip, evenly spaced; of photographs all items are kept.",
        ),
    ] = 20
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"


import_command = declared.command(
    ImportOptions,
    "pipeline.extensions.importers.stage:import_store",
    declared.with_settings_or_shipped,
)
