"""The command line of `stages.manifest`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from stages import declared, options, values


@dataclass(frozen=True, kw_only=True)
class ManifestOptions(declared.Options):
    """Turn annotations and a folder of images or clips into one checked table, the manifest of data
    set NAME.

    NAME is one of manifests/*.yaml (coco, flickr30k, flickr8k, multi30k, msrvtt, msrvtt_1ka, vatex,
    sample, sample_video) or your own; default: run.dataset.

    Example: pipeline manifest flickr8k --images photos --annotations dataset_flickr8k.json
    """

    name: Annotated[
        str | None, click.argument("name", required=False, shell_complete=options.names("dataset"))
    ] = None
    images: Annotated[
        Path | None,
        click.option(
            "--images",
            type=options.FilePath(in_store=True),
            show_default="the data set's card",
            help="Folder of images.",
        ),
    ] = None
    videos: Annotated[
        Path | None,
        click.option(
            "--videos", type=options.FilePath(), help="Folder of video files, instead of --images."
        ),
    ] = None
    annotations: Annotated[
        Path | None,
        click.option(
            "--annotations",
            type=options.FilePath(in_store=True),
            show_default="the data set's card",
            help="A CSV or TSV, a list in JSON, JSON Lines or Parquet with columns image,caption[,split][,language] "
            "or video,caption[,split][,start,end]; Karpathy's or COCO's .json; img2dataset's folder; or the files of "
            "Multi30K, MSR-VTT, VATEX, HGR or SCAN.",
        ),
    ] = None
    form: Annotated[str | None, options.annotation_format("as it looks")] = None
    caption_inputs: Annotated[
        tuple[tuple[str, Path], ...],
        click.option(
            "--caption-input",
            "caption_inputs",
            multiple=True,
            type=values.ColumnFile(),
            metavar="COLUMN=FILE",
            show_default="the data set's card",
            help="A file of what some heads read of captions besides their text: role_graph=FILE with HGR's "
            "sent2rolegraph.augment.json, which the recipe hgr needs; HGR's own folder has it.",
        ),
    ] = ()
    without_images: Annotated[
        bool,
        declared.flag(
            "--without-images",
            help="Do not look for the image files, if features are imported and there are no photographs.",
        ),
    ] = False
    fetch: Annotated[
        bool,
        declared.flag(
            "--fetch",
            help="Download images that are named by http(s) addresses into the folder "
            "--images, from public addresses alone.",
        ),
    ] = False
    draw_splits: Annotated[
        bool,
        declared.flag(
            "--draw-splits",
            help="Where the annotations name no splits, draw 80 % of the images for "
            "train, 10 % for val and 10 % for test, the same each time, instead of test for all.",
        ),
    ] = False
    on_error: Annotated[
        str | None,
        options.on_error(
            "manifest.on_error", "a caption or image that cannot be used, within manifest.left_out,"
        ),
    ] = None
    out: Annotated[
        Path | None,
        options.out("data/NAME.parquet", "The manifest.", endings=(".parquet",), in_store=True),
    ] = None
    examples: Annotated[
        Path | None,
        click.option(
            "--examples",
            type=options.OutputPath(dir_okay=True, file_okay=False),
            help="Write small annotations with images in every layout that is read into this new folder, and print "
            "the command that reads each. Does nothing else.",
        ),
    ] = None


manifest_command = declared.command(
    ManifestOptions, "manifest.make_manifest", declared.with_settings_or_shipped
)
