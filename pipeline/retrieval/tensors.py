"""From numpy arrays to torch tensors on the same memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy.typing as npt
import torch

from pipeline.retrieval.blocks import as_cells

# Files are mapped to be read alone, and no such tensor is written into. Once for all threads: the warnings module
# cannot put a filter back for one.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


def to_tensor(values: npt.NDArray[Any]) -> torch.Tensor:
    """Values as a tensor that must not be written into.

    Args:
        values: float16, float32 or float64, in memory or memory-mapped.

    Returns:
        float32, or float64 where the values are; a view where nothing changes.
    """
    return torch.from_numpy(as_cells(values))
