"""One process, or several that share a batch: on the GPUs of one or several machines, or on
CPUs.
"""

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import Tensor

from pipeline.foundation.compute import machine
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import InputError, refusing

Shared = TypeVar("Shared")


class Processes:
    """The processes that train together. This class is for one process, a subclass for several.

    All must call the same methods in the same order.
    """

    count: int = 1  # how many there are
    rank: int = 0  # this one's number, from 0; the first writes files
    # This one's number on its machine, from 0; the first there says why it ends.
    local_rank: int = 0

    def device(self, name: str) -> str:
        """Choose this process's device: its own GPU for cuda, else the device of the settings."""
        return name

    def gather(self, part: Tensor) -> Tensor:
        """Concatenate the parts [B / count, ...] of all processes in order of rank: [B, ...].
        Passes no gradient.
        """
        return part

    def add_up(self, parts: Iterable[Tensor]) -> None:
        """Replace each tensor in place by its sum over the processes."""

    def wait(self) -> None:
        """Wait until all processes are here."""

    def shared(self, value: Shared) -> Shared:
        """Take a value of rank 0, which can be pickled."""
        return value

    def differing(self, seen: Mapping[str, object]) -> list[str]:
        """Name the values, of JSON, that are not the same in all processes."""
        return []


class SeveralProcesses(Processes):
    """The processes of a launched Lightning Fabric: NCCL on GPUs, gloo on a CPU."""

    def __init__(self, fabric: Any) -> None:
        self.fabric = fabric
        self.count = fabric.world_size
        self.rank = fabric.global_rank
        self.local_rank = fabric.local_rank

    def device(self, name: str) -> str:
        return str(self.fabric.device)

    def gather(self, part: Tensor) -> Tensor:
        with _all_are_here():
            return self.fabric.all_gather(part.detach().contiguous()).flatten(0, 1)

    def add_up(self, parts: Iterable[Tensor]) -> None:
        tensors = list(parts)
        flat = torch.cat([part.flatten() for part in tensors])
        with _all_are_here():  # in one message: each has its own latency
            sums = self.fabric.all_reduce(flat, reduce_op="sum")
        sizes = [part.numel() for part in tensors]
        for part, total in zip(tensors, sums.split(sizes), strict=True):
            part.copy_(total.view_as(part))

    def wait(self) -> None:
        with _all_are_here():
            self.fabric.barrier()

    def shared(self, value: Shared) -> Shared:
        with _all_are_here():
            return self.fabric.broadcast(value)  # type: ignore[no-any-return]

    def differing(self, seen: Mapping[str, object]) -> list[str]:
        numbers = [int(digest(value)[:15], 16) for value in seen.values()]  # of 60 bits each
        digests = torch.tensor([numbers], device=self.fabric.device)
        alike = (self.gather(digests) == digests).all(dim=0).tolist()
        return [name for name, same in zip(seen, alike, strict=True) if not same]


def _all_are_here() -> AbstractContextManager[None]:
    return refusing(
        RuntimeError,
        lambda error: f"another training process has ended ({error}); run again to resume",
    )


def _started() -> tuple[int, int]:
    """How many processes torchrun started, and how many of them on this machine."""
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
    variables = {name: os.environ.get(name, "") for name in names}
    listed = ", ".join(f"{name}={value}" for name, value in variables.items())
    with refusing(
        ValueError,
        f"{listed} are not what torchrun sets; start the training as docs/clusters.md says, as "
        "many processes on each machine",
    ):
        rank, started, local, here = map(int, variables.values())
        if not (0 <= rank < started and 0 <= local < here and started % here == 0):
            raise ValueError
    return started, here


def launch(count: int, device: str) -> Processes:
    """Start the other processes on this machine, each with this one's command line; this one is the
    first.

    Under torchrun, which starts all of them on one machine or several, it joins those, and takes
    the GPU of its LOCAL_RANK.

    Args:
        count: How many; under torchrun it may be 1, for as many as that started.
        device: The device in the settings.

    Returns:
        The processes.

    Raises:
        InputError: If there are fewer GPUs, if Lightning Fabric is not installed, or if the
            processes do not meet.
    """
    machines = 1
    here = count
    if torch.distributed.is_torchelastic_launched():
        started, here = _started()
        if count not in (1, started):
            raise InputError(
                f"torchrun started {started} processes, not {count}; leave out --processes"
            )
        machines = started // here
        count = started
    if count == 1:
        return Processes()
    machine.refuse_processes(here)
    with refusing(RuntimeError, f"device {device!r} is not available; use cpu"):
        kind = torch.device(device)
    if kind.type == "cuda" and (torch.cuda.device_count() < here or kind.index is not None):
        raise InputError(
            f"training on {here} GPUs of this machine: expected device cuda and as many of them, got "
            f"{device} and {torch.cuda.device_count()}; set training.NAME.processes"
        )
    extras.require("gpu", "training in several processes")
    from lightning_fabric import Fabric

    with refusing(
        (RuntimeError, ValueError),
        lambda error: f"the {count} training processes do not meet: {error}",
    ):
        fabric = Fabric(accelerator=kind.type, devices=here, num_nodes=machines, strategy="ddp")
        fabric.launch()
    return SeveralProcesses(fabric)
