"""One process, or several that share a batch: on several GPUs, or on a CPU for trials."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from pipeline.compute import products
from pipeline.parts.errors import InputError


class Processes:
    """The processes that train together: this one alone, or in a subclass several.

    All must call the same methods in the same order.
    """

    count: int = 1  # how many there are
    rank: int = 0  # this one's number, from 0; the first writes files and messages

    def device(self, name: str) -> str:
        """Choose this process's device: its own GPU for cuda, else the device of the settings."""
        return name

    def gather(self, part: Tensor) -> Tensor:
        """Concatenate the parts [B / count, ...] of all processes in order of rank: [B, ...]. Passes no gradient."""
        return part

    def add_up(self, parts: Iterable[Tensor]) -> None:
        """Replace each tensor in place by its sum over the processes."""

    def wait(self) -> None:
        """Wait until all processes are here."""


class SeveralProcesses(Processes):
    """The processes of a launched Lightning Fabric: NCCL on GPUs, gloo on a CPU."""

    def __init__(self, fabric: Any) -> None:
        self.fabric = fabric
        self.count, self.rank = fabric.world_size, fabric.global_rank

    def device(self, name: str) -> str:
        return str(self.fabric.device)

    def gather(self, part: Tensor) -> Tensor:
        with _all_are_here():
            return self.fabric.all_gather(part.detach().contiguous()).flatten(0, 1)

    def add_up(self, parts: Iterable[Tensor]) -> None:
        whole = list(parts)
        with _all_are_here():  # in one message: each has its own latency
            flat = self.fabric.all_reduce(torch.cat([part.flatten() for part in whole]), reduce_op="sum")
        for part, total in zip(whole, flat.split([part.numel() for part in whole]), strict=True):
            part.copy_(total.view_as(part))

    def wait(self) -> None:
        with _all_are_here():
            self.fabric.barrier()


@contextmanager
def _all_are_here() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise InputError(f"another of the training processes has ended ({error}); run again to go on") from None


def launch(count: int, device: str) -> Processes:
    """Start the other processes on this machine, each with this one's command line; this one is the first.

    Under torchrun or SLURM, which start all of them, it joins those.

    Args:
        count: How many.
        device: The device in the settings.

    Returns:
        The processes.

    Raises:
        InputError: If there are fewer GPUs, or Lightning Fabric is not installed.
    """
    if count == 1:
        return Processes()
    try:
        kind = torch.device(device)
    except RuntimeError:
        raise InputError(f"device {device!r} is not available; use cpu") from None
    if kind.type == "cuda" and (torch.cuda.device_count() < count or kind.index is not None):
        raise InputError(f"training on {count} GPUs: expected device cuda and as many of them, got {device} and "
                         f"{torch.cuda.device_count()}; set training.NAME.processes")
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise InputError("training in several processes needs Lightning Fabric: pip install 'vse-pipeline[gpu]'"
                         ) from None
    if kind.type != "cpu":
        products.use("default")  # Lightning asks for torch's one precision of all devices, which there is no more
    fabric = Fabric(accelerator=kind.type, devices=count, strategy="ddp")
    fabric.launch()
    return SeveralProcesses(fabric)
