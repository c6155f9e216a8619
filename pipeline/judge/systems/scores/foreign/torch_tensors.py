"""Tensors that `torch.save` wrote, read by torch."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.foundation.files import torch_save
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign.arrays import BFLOAT16, Array, Arrays, of_tree

if TYPE_CHECKING:
    import torch


def read(path: Path) -> Arrays:
    """List the tensors in plain containers; without torch, NumPy's arrays in them."""
    return of_tree("a file of torch", _of_tensors(torch_save.load(path), path), path)


def _of_tensors(tree: Any, path: Path) -> Any:
    """The same containers, with an `Array` for each tensor."""
    if isinstance(tree, dict):
        return {key: _of_tensors(each, path) for key, each in tree.items()}
    if isinstance(tree, list | tuple):
        return [_of_tensors(each, path) for each in tree]
    return _array(tree, path) if hasattr(tree, "untyped_storage") else tree


def _array(tensor: "torch.Tensor", path: Path) -> Array:
    stored = str(tensor.dtype).removeprefix("torch.")
    if stored.startswith("float8"):
        raise InputError(f"{path}: holds float8 values ({stored}): save .float()")
    return Array(tuple(tensor.shape), stored, partial(_values, tensor))


def _values(tensor: "torch.Tensor") -> np.ndarray:
    """The values of a tensor, of which those of the file are mapped; bfloat16 as float32."""
    exact = tensor.float() if str(tensor.dtype) == f"torch.{BFLOAT16}" else tensor
    values: np.ndarray = exact.detach().numpy()
    return values
