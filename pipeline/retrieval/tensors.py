"""From numpy arrays to torch tensors on the same memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy.typing as npt
import torch

from pipeline.retrieval.blocks import as_cells

# Files are mapped read-only, and these tensors are never written into. The filter is set once, because the warnings
# module cannot set and restore it for one thread alone.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


def to_tensor(values: npt.NDArray[Any]) -> torch.Tensor:
    """Make a tensor of an array; it must not be written into."""
    return torch.from_numpy(as_cells(values))
