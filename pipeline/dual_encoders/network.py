"""What all libraries' networks need: files that may be damaged, a device and a precision, unit vectors."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError

from pipeline.dual_encoders.base import DualEncoder, Usage
from pipeline.parts.errors import InputError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
READING = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError, SafetensorError,
           pickle.UnpicklingError)
"""What a library raises on files that it did not write."""


def reading(folder: Path, what: str, read: Callable[[], Any]) -> Any:
    """Read a part of a model by a library."""
    try:
        return read()
    except ImportError as error:
        raise InputError(f"{folder}: its {what} needs a package that is not here ({_line(error)}); pip install "
                         "'vse-pipeline[encoders]'") from None
    except READING as error:
        raise InputError(f"{folder}: no {what} that can be read: {_line(error)}") from None


def placed(network: Any, usage: Usage) -> Any:
    """Move a network to its device, in its precision."""
    try:
        if torch.device(usage.device).type == "meta":
            raise ValueError
        return network.to(usage.device, PRECISIONS[usage.precision]).eval()
    except (RuntimeError, AssertionError, ValueError):
        raise InputError(f"device {usage.device!r} is not available; use cpu") from None


def try_image(place: str, encoder: DualEncoder) -> None:
    """Embed a grey image: a network and a preprocessing that do not fit are found before the first photograph."""
    try:
        encoder.embed_images([encoder.prepare(Image.new("RGB", (64, 64), "grey"))])
    except READING as error:
        raise InputError(f"{place}: its network does not take the images that its preprocessing prepares: "
                         f"{_line(error)}") from None


def unit(output: Any) -> np.ndarray:
    """Make unit vectors, float32 [B, d], of what a network gives.

    That is a tensor, or an object that has it as `pooler_output`, as newer versions of `transformers` do.
    """
    vectors = getattr(output, "pooler_output", output)
    if not torch.isfinite(vectors).all():
        precision = str(vectors.dtype).removeprefix("torch.")
        raise InputError(f"the encoder gives values that are not finite in {precision}; use --precision fp32, and if "
                         "it does so there its weights are damaged")
    return torch.nn.functional.normalize(vectors.float(), dim=-1).cpu().numpy()


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
