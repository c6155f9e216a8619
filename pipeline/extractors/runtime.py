"""Where and how a network runs. Torch is imported when it is asked, not before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    import torch

    from pipeline.compute.products import Setting

PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class Runtime:
    """Where and how a network runs: a torch device and fp32, bf16 or fp16, and what computes (see `backend.chosen`).

    The device is that of the process which loads the network: another than this one, on a cluster. So is the choice of
    float32 products, which each process makes for itself (`pipeline.compute.products`).
    """

    device: str = "cpu"
    precision: str = "fp32"
    backend: str = "torch"
    products: Setting = "default"

    def checked(self) -> Runtime:
        """The same with the backend by name and version.

        Raises:
            InputError: For a device, a precision or a backend that is not here or not known.
        """
        import torch

        from pipeline.extractors import backend

        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError):
            raise InputError(f"device {self.device!r} is not here; there is cpu"
                             + (", cuda" if torch.cuda.is_available() else "")) from None
        if torch.device(self.device).type == "meta":
            raise InputError("device 'meta' computes nothing; there is cpu")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision {self.precision!r}: expected one of {', '.join(PRECISIONS)}")
        return replace(self, backend=backend.chosen(self.backend, self.device, self.precision))

    @property
    def dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        import torch

        kind: torch.dtype = getattr(torch, PRECISIONS[self.precision])
        return kind
