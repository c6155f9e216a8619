"""The options of commands whose tasks run on several processes or machines, and where they run then."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from pipeline.parts.errors import InputError

if TYPE_CHECKING:
    from pipeline.compute.tasks import Executor

Command = TypeVar("Command", bound=Callable[..., Any])
scheduler = click.option("--scheduler", metavar="ADDRESS", help="A running dask cluster instead: tcp://host:8786.")


def on_workers(command: Command) -> Command:
    """Add --workers and --scheduler to a command.

    Args:
        command: The function behind the command.

    Returns:
        The function with these options.
    """
    workers = click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True,
                           help="Processes on this machine.")
    return workers(scheduler(command))


def check(address: str | None) -> None:
    """Check the address of a cluster, and that processes of this machine were not asked for as well.

    Args:
        address: Where the cluster's scheduler listens; None for this machine.

    Raises:
        InputError: If it was given both, or no address.
    """
    if address is not None and not re.fullmatch(r"(\w+://)?[^/\s]+:\d+/?", address):
        raise InputError(f"--scheduler {address}: expected an address such as tcp://host:8786")
    source = click.get_current_context().get_parameter_source("workers")
    if address is not None and source is not ParameterSource.DEFAULT:
        raise InputError("--workers are processes of this machine, --scheduler is a cluster with its own; give one")


@contextmanager
def executor(workers: int, address: str | None) -> Iterator[Executor | None]:
    """Open the place where tasks run.

    Args:
        workers: Processes on this machine.
        address: Where the scheduler of a cluster listens, which is used instead.

    Yields:
        What runs tasks there; None for this process.

    Raises:
        InputError: If no cluster answers.
    """
    if address is None and workers == 1:
        yield None
        return
    from pipeline.compute import cluster

    with cluster.local(workers) if address is None else cluster.running(address) as place:
        yield place
