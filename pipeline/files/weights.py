"""Where network weights come from: a named checkpoint, a local file, or none (a seeded, untrained network).

No pickled code is ever run: files are read as safetensors, or by torch with `weights_only`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import pickle
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ConfigDict

from pipeline.errors import InputError
from pipeline.files.digest import sha256

if TYPE_CHECKING:
    import torch

UNTRAINED = "untrained"


class Checkpoint(BaseModel):
    """One entry of manifests/weights.yaml."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    title: str
    package: str | None = None
    file: str | None = None
    timm: str | None = None
    hub: str | None = None
    layout: str | None = None
    sha256: str | None = None
    licence: str
    trained_on: str
    overlaps: str
    get: str


def checkpoints() -> dict[str, Checkpoint]:
    """Every named checkpoint."""
    text = (resources.files("manifests") / "weights.yaml").read_text(encoding="utf-8")
    return {name: Checkpoint.model_validate(entry) for name, entry in yaml.safe_load(text).items()}


def locate(name: str) -> tuple[Path, Checkpoint | None]:
    """The file of a named checkpoint, or `name` itself as a file, and what is known of it.

    Raises InputError, in one line that says how to get it, where the file is missing or not the known one.
    """
    known = checkpoints().get(name)
    if known is None:
        path = Path(name)
        if not path.is_file():
            raise InputError(f"weights {name!r}: neither a file nor a name of manifests/weights.yaml "
                             f"({', '.join(checkpoints())}, {UNTRAINED})")
        return path, None
    path = _package_file(known) if known.package else Path(known.file or "")
    if not path.is_file():
        raise missing(name, known)
    if known.sha256 and sha256(path) != known.sha256:
        raise InputError(f"weights {name!r}: {path} has another sha256 than {known.sha256}; get it again: {known.get}")
    return path, known


def missing(name: str, known: Checkpoint) -> InputError:
    """All that a user must know to get a named checkpoint, in one line."""
    return InputError(f"weights {name!r} ({known.title}; licence {known.licence}; trained on {known.trained_on}; "
                      f"overlap with test data: {known.overlaps}) are not here. To get them: {known.get}")


def _package_file(known: Checkpoint) -> Path:
    assert known.package
    found = importlib.util.find_spec(known.package)
    if found is None or not found.submodule_search_locations:
        return Path()
    return Path(next(iter(found.submodule_search_locations))) / (known.file or "")


def read_tree(path: Path) -> Any:
    """What a .safetensors file holds, or a torch file of nothing but tensors and plain containers of them.

    Raises InputError where the file is neither.
    """
    import torch
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError, Exception) as error:
        raise InputError(f"{path}: not readable as weights ({type(error).__name__}); expected safetensors or a "
                         "torch state dict") from None


def read(path: Path) -> dict[str, torch.Tensor]:
    """A state dict, by itself or under "state_dict" or "model". Raises InputError where the file holds none."""
    import torch

    state = read_tree(path)
    for key in ("state_dict", "model"):
        if isinstance(state, Mapping) and isinstance(state.get(key), Mapping):
            state = state[key]
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InputError(f"{path}: expected a state dict of tensors")
    return dict(state)


def digest(module: torch.nn.Module) -> str:
    """SHA-256 over a network's tensors, names and shapes: what it computes with, wherever it came from."""
    import torch

    total = hashlib.sha256()
    for name, value in module.state_dict().items():
        total.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        total.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()
