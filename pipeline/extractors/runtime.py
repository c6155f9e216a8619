"""Where and how a network runs. Torch is imported when it is asked, not before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import InputError

if TYPE_CHECKING:
    import torch

    from pipeline.compute.products import Setting

PRECISIONS = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True)
class Runtime:
    """Where and how a network runs: a torch device and fp32, bf16 or fp16.

    The device is that of the process which loads the network: another than this one, on a cluster. So is the choice of
    float32 products, which each process makes for itself (`pipeline.compute.products`).
    """

    device: str = "cpu"
    precision: str = "fp32"
    products: Setting = "default"

    def check(self) -> None:
        """Raises InputError where the device is not here or the precision unknown."""
        import torch

        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError):
            raise InputError(f"device {self.device!r} is not here; there is cpu"
                             + (", cuda" if torch.cuda.is_available() else "")) from None
        if torch.device(self.device).type == "meta":
            raise InputError("device 'meta' computes nothing; there is cpu")
        if self.precision not in PRECISIONS:
            raise InputError(f"precision {self.precision!r}: expected one of {', '.join(PRECISIONS)}")

    @property
    def dtype(self) -> torch.dtype:
        """The precision as torch names it."""
        import torch

        kind: torch.dtype = getattr(torch, PRECISIONS[self.precision])
        return kind
