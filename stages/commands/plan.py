"""The command line of `stages.plan`."""

from typing import Any

import click

from stages.declared import CheckedCommand, with_settings


@click.command(cls=CheckedCommand)
@with_settings
def plan_command(**given: Any) -> None:
    """Write results/plan: for each step of the run a file of its settings and of the versions of
    its parts.

    Settings are resolved: a recipe with what its base says, features and training by the data set's
    preset. The stages of dvc.yaml depend on these files, so a changed recipe reruns its own heads
    alone.

    Example: pipeline lab plan
    """
    from stages.plan import write_plan

    write_plan(**given)
