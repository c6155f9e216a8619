"""The command line of `stages.extract`."""

from typing import Any

import click

from pipeline.settings.features import FEATURES
from stages import options


@click.command
@click.option(
    "--feature",
    metavar="NAME",
    required=True,
    help=f"Which feature of the data set's preset: "
    f"{', '.join(FEATURES)}, or one of captions that the settings add.",
)
@options.dataset
@click.option(
    "--engine",
    metavar="NAME",
    show_default="features.PRESET.FEATURE.engine",
    help="Another engine, with its default settings.",
)
@options.out(
    "features/DATASET/FEATURE.zarr",
    "The store; `pipeline store copy` brings it into an object store.",
    "feature store",
)
@options.images()
@options.device(
    "extract.device",
    "A torch device: cpu, cuda:0; or several, with a worker each: cuda:0,cuda:1 or cuda:*.",
)
@click.option(
    "--backend",
    type=click.Choice(["auto", "torch", "openvino"]),
    show_default="extract.backend",
    help="The library that runs the network: openvino is several times as fast on a CPU.",
)
@options.precision(
    "bf16 changes a CNN's features by 7 to 10 % of their norm; see docs/measured/extraction.md.",
    show_default="extract.precision",
)
@options.batch_size("Images", show_default="extract.batch_size")
@options.workers(show_default="extract.workers")
@options.scheduler
@options.on_error("extract.on_error", "an image that cannot be decoded")
@options.split("Only this split's images; the others can follow later.")
@click.option(
    "--only",
    type=options.FilePath(dir_okay=False),
    help="Only the images whose ids this file lists, one a line.",
)
@click.option(
    "--retry-failed", is_flag=True, help="Try the images again that failed in an earlier run."
)
@click.option(
    "--same-features",
    is_flag=True,
    help="Confirm that code which changed since the store was made makes "
    "the same features; the store is kept.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what it would take: images, bytes, and time from a "
    "short probe. A photograph that was replaced since `pipeline manifest` is found by the run alone.",
)
@options.if_changed
@options.with_settings
def extract_command(**given: Any) -> None:
    """Extract features of images, clips or captions into a store. Running again does nothing,
    resumes, or extracts the images that are new in the manifest.

    Example: pipeline extract --feature region --workers 2
    """
    from stages.extract import extract

    options.refuse_workers_of_both()
    extract(**given)
