"""The options of `pipeline lab study`."""

from dataclasses import dataclass
from typing import Annotated

import click

from stages import declared, options


@dataclass(frozen=True, kw_only=True)
class StudyOptions(declared.Options):
    """Test the papers' claims of manifests/claims.yaml on run.dataset, with every seed of
    run.seeds.

    Missing heads are trained, on the first feature of run.features; those of ensembles on the
    ensemble's features. An interrupted run resumes. A head whose training fails is left out, and
    named. Claims about features that the run does not have are not tested. The schedule is that of
    training.DATASET; the papers have 25 epochs.

    Example: pipeline lab study -S run.dataset=flickr8k -S run.seeds=[0,1,2] -S
        training.light.epochs=25
    """

    split: Annotated[
        str,
        click.option(
            "--split",
            type=click.Choice(["val", "test"]),
            show_default=True,
            help="Where systems are measured. Look at val as often as you like; test is read once, at the end.",
        ),
    ] = "val"
    no_training: Annotated[
        bool,
        declared.flag(
            "--no-training",
            help="Test the claims with the seeds whose heads are finished, and train nothing.",
        ),
    ] = False
    # The keys of the settings that are changed for this run, as for `train`.
    changed: Annotated[tuple[str, ...], options.changed_settings] = ()


study_command = declared.command(
    StudyOptions, "pipeline.extensions.claims.stage:study", declared.with_settings
)
