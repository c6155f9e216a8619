"""The command line of `stages.extract`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click

from pipeline.foundation.settings.features import FEATURES
from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class ExtractOptions(declared.Options):
    """Extract features of images, clips or captions into a store. Running again does nothing,
    resumes, or extracts the images that are new in the manifest.

    Example: pipeline extract --feature region --workers 2
    """

    feature: Annotated[
        str,
        click.option(
            "--feature",
            metavar="NAME",
            required=True,
            help=f"Which feature of the data set's preset: "
            f"{', '.join(FEATURES)}, or one of captions that the settings add.",
        ),
    ]
    dataset: Annotated[str | None, options.dataset] = None
    engine: Annotated[
        str | None,
        click.option(
            "--engine",
            metavar="NAME",
            show_default="features.PRESET.FEATURE.engine",
            help="Another engine, with its default settings.",
        ),
    ] = None
    out: Annotated[
        Path | None,
        options.out(
            "features/DATASET/FEATURE.zarr",
            "The store; `pipeline store copy` brings it into an object store.",
            "feature store",
        ),
    ] = None
    images: Annotated[Path | None, options.images()] = None
    device: Annotated[
        str | None,
        options.device(
            "extract.device",
            "A torch device: cpu, cuda:0; or several, with a worker each: cuda:0,cuda:1 or cuda:*.",
        ),
    ] = None
    backend: Annotated[
        str | None,
        click.option(
            "--backend",
            type=click.Choice(["auto", "torch", "openvino"]),
            show_default="extract.backend",
            help="The library that runs the network: openvino is several times as fast on a CPU.",
        ),
    ] = None
    precision: Annotated[
        str | None,
        options.precision(
            "bf16 changes a CNN's features by 7 to 10 % of their norm; see docs/measured.md.",
            show_default="extract.precision",
        ),
    ] = None
    batch_size: Annotated[
        int | None, options.batch_size("Images", show_default="extract.batch_size")
    ] = None
    processes: Annotated[int | None, options.workers(show_default="extract.workers")] = None
    scheduler: Annotated[str | None, options.scheduler] = None
    on_error: Annotated[
        Literal["fail", "skip"] | None,
        options.on_error("extract.on_error", "an image that cannot be decoded"),
    ] = None
    split: Annotated[
        str | None, options.split("Only this split's images; the others can follow later.")
    ] = None
    only: Annotated[
        Path | None,
        click.option(
            "--only",
            type=options.FilePath(dir_okay=False),
            help="Only the images whose ids this file lists, one a line.",
        ),
    ] = None
    retry_failed: Annotated[
        bool,
        declared.flag(
            "--retry-failed",
            help="Try the images again that failed in an earlier run.",
        ),
    ] = False
    same_features: Annotated[
        bool,
        declared.flag(
            "--same-features",
            help="Confirm that code which changed since the store was made makes "
            "the same features; the store is kept.",
        ),
    ] = False
    dry_run: Annotated[
        bool,
        declared.flag(
            "--dry-run",
            help="Print what it would take: images, bytes, and time from a "
            "short probe. A photograph that was replaced since `pipeline manifest` is found by the run alone.",
        ),
    ] = False
    if_changed: Annotated[Literal["refuse", "redo"], options.if_changed] = "refuse"

    def check(self) -> None:
        options.refuse_workers_of_both()


extract_command = declared.command(ExtractOptions, "extract.extract", declared.with_settings)
