"""The base class of poolings: it checks shapes, clears padding and sets the precision."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.compiler import is_exporting
from torch.func import functional_call

from pipeline.foundation.parts.errors import InputError
from pipeline.make.heads.pooling.cpu_sort import can_sort_fast


def valid_mask(items: Tensor, counts: Tensor) -> Tensor:
    """Check a padded batch [B, N, D] with counts [B], each in 1..N, and mark the valid slots: bool
    [B, N].
    """
    if items.dim() != 3 or not items.is_floating_point():
        raise InputError(
            f"items must be floating point [B, N, D], got {items.dtype} {list(items.shape)}"
        )
    batch, slots, _ = items.shape
    are_integers = not counts.is_floating_point() and not counts.is_complex()
    if list(counts.shape) != [batch] or not are_integers:
        raise InputError(
            f"counts must be integers [{batch}], got {counts.dtype} {list(counts.shape)}"
        )
    if batch and not is_exporting():
        least = int(counts.min())
        most = int(counts.max())
        if least < 1 or most > slots:
            raise InputError(f"counts must be 1 to {slots} items, got {least} to {most}")
    number = torch.arange(slots, device=items.device)
    return number < counts.to(items.device).unsqueeze(1)


HALF = (torch.bfloat16, torch.float16)


class Pooling(nn.Module, ABC):
    """A function from a padded set of items to one vector, both of dimension `dim`.

    A subclass implements `pool`, and its docstring names its source. Random draws are by nn.Dropout
    alone: without one, training on a CPU computes both sides of a head at the same time. `pool`
    receives checked input; padding holds zeros that pass no gradient back, and items have the dtype
    of the parameters (without any: float32, or float64 for float64 items). Parameters in half
    precision are used as float32.
    """

    # False for a pooling that neither reads finite values in padding nor passes a gradient to them:
    # its padding is not cleared where `cpu_sort` sorts.
    reads_padding = True

    def __init__(self, dim: int) -> None:
        super().__init__()
        if dim < 1:
            raise InputError(f"a pooling's dimension must be at least 1, got {dim}")
        self.dim = dim

    def forward(self, items: Tensor, counts: Tensor) -> Tensor:
        """Pool each sample's valid items.

        Args:
            items: [B, N, D], floating point; values in padding, NaN too, have no influence.
            counts: [B], integer in 1..N: how many of a sample's slots are valid.

        Returns:
            [B, D], in the items' dtype.

        Raises:
            InputError: For other shapes, or a count below 1 or above N.
        """
        valid = valid_mask(items, counts)
        if items.shape[2] != self.dim:
            raise InputError(
                f"this pooling was built for items [B, N, {self.dim}], got {list(items.shape)}"
            )
        if any(parameter.dtype in HALF for parameter in self.parameters()):
            parameters = self.state_dict(keep_vars=True)
            exact = {name: value.float() for name, value in parameters.items()}
            return functional_call(self, exact, (items, counts))
        # Half precision loses too much in sums, softmaxes and recurrences, so autocast is off.
        parameter = next(self.parameters(), None)
        dtype = torch.promote_types(items.dtype, torch.float32)
        if parameter is not None:
            dtype = parameter.dtype
        if is_exporting():  # where nothing is cast, and torch would make a graph of its own of this
            return self._pool(items.to(dtype), valid).to(items.dtype)
        with torch.autocast(items.device.type, enabled=False):
            return self._pool(items.to(dtype), valid).to(items.dtype)

    def _pool(self, items: Tensor, valid: Tensor) -> Tensor:
        if self._needs_zeros(items, valid):
            items = torch.where(valid.unsqueeze(2), items, 0.0)
        return self.pool(items, valid)

    def _needs_zeros(self, items: Tensor, valid: Tensor) -> bool:
        if is_exporting():
            return True
        if not self.reads_padding and can_sort_fast(items):
            return False
        return not bool(valid.all())

    @abstractmethod
    def pool(self, items: Tensor, valid: Tensor) -> Tensor:
        """The vectors [B, D] of checked items [B, N, D], zeros where not valid (bool [B, N]; see
        `reads_padding`).
        """


def by_size(counts: Tensor, slots: int) -> tuple[Tensor, Any, int]:
    """The different sizes of sets, int64 [U], which of them each of B sets has, and the largest.

    In an exported graph, which cannot depend on values, each set has a size of its own and the
    largest is `slots`.
    """
    if is_exporting():
        return counts, slice(None), slots
    sizes, which = counts.unique(return_inverse=True)
    return sizes, which, int(sizes[-1])


def masked_softmax(logits: Tensor, valid: Tensor, dim: int) -> Tensor:
    """Softmax over the valid positions alone; exactly zero elsewhere."""
    return logits.masked_fill(~valid, float("-inf")).softmax(dim)
