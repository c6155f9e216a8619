"""Where and how a network runs. Torch is imported when it is needed, not with this module."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Runtime:
    """Where and how a network runs."""

    # A torch device of the process that loads the network; on a cluster that is another process
    # than this one.
    device: str = "cpu"
    precision: str = "fp32"  # "fp32", "bf16" or "fp16"
    backend: str = "torch"  # The library that runs it, see `backend.chosen`

    def checked(self) -> Runtime:
        """The same runtime with the backend's name and version; InputError for what is unknown or
        not available.
        """
        from pipeline.foundation.compute import device
        from pipeline.make.features.extractors import backend

        device.require(self.device)
        if self.precision not in device.PRECISIONS:
            raise InputError(
                f"precision {self.precision!r}: expected one of {', '.join(device.PRECISIONS)}"
            )
        return replace(self, backend=backend.chosen(self.backend, self.device, self.precision))

    @property
    def on_cpu(self) -> bool:
        """Whether the network runs on a CPU."""
        import torch

        return torch.device(self.device).type == "cpu"

    def autocast(self) -> torch.autocast:
        """The context manager in whose block torch computes in the runtime's precision."""
        from pipeline.foundation.compute import device

        return device.autocast(self.device, self.precision)

    def send(self, values: torch.Tensor) -> torch.Tensor:
        """The values on the device. A CUDA device copies them itself, from pinned memory, while it
        computes others.
        """
        import torch

        if torch.device(self.device).type == "cuda":
            values = values.pin_memory()
        return values.to(self.device, non_blocking=True)
