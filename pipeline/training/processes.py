"""One process, or several that share a batch: on several GPUs, or on a CPU to try it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from pipeline.compute import products
from pipeline.errors import InputError


class Processes(Protocol):
    """count: how many there are. rank: which one this is, from 0; the first writes files and talks.

    All must call the same methods in the same order.
    """

    count: int
    rank: int

    def device(self, name: str) -> str:
        """This process's own device: its GPU where `name` is cuda."""
        ...

    def gather(self, part: Tensor) -> Tensor:
        """The parts of all, in order of rank: from [B / count, ...] to [B, ...]. Passes no gradient."""
        ...

    def add_up(self, parts: Iterable[Tensor]) -> None:
        """Replace each tensor in place by its sum over the processes."""
        ...

    def wait(self) -> None:
        """Until all are here."""
        ...


class Alone:
    """This process and no other."""

    count, rank = 1, 0

    def device(self, name: str) -> str:
        return name

    def gather(self, part: Tensor) -> Tensor:
        return part

    def add_up(self, parts: Iterable[Tensor]) -> None:
        pass

    def wait(self) -> None:
        pass


class Several:
    """The processes of a Lightning Fabric that was launched: NCCL on GPUs, gloo on a CPU."""

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
    """This process as the first of `count` on this machine: starts the others, each with this one's command line.

    Under torchrun or SLURM, which start all of them, it joins those.

    Raises InputError where there are fewer GPUs, or Lightning Fabric is not installed.
    """
    if count == 1:
        return Alone()
    try:
        kind = torch.device(device)
    except RuntimeError:
        raise InputError(f"device {device!r} is not here; cpu always is") from None
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
    return Several(fabric)
