"""Folders of torch's distributed checkpoints (`.metadata`, `*.distcp`), read without running what a
pickle may hold.
"""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from pipeline.files import regular, restricted_pickle
from pipeline.files.weights import DISTRIBUTED as METADATA
from pipeline.parts.errors import InputError, refusing


class _Fields:
    """The fields of an object of torch, of which nothing is called."""

    offset: tuple[int, ...] | None = None  # of an object that is no tensor

    def __init__(self, *_: Any) -> None:
        """Take an enumeration's value, which is not needed."""

    def __setstate__(self, state: dict[str, Any] | tuple[Any, ...]) -> None:
        fields = (
            state if isinstance(state, dict) else {"dtype": state[0]}
        )  # of TensorProperties a tuple
        vars(self).update(fields)


DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)
NAMES = {
    **{
        ("torch.distributed.checkpoint.metadata", name): _Fields
        for name in (
            "Metadata",
            "TensorStorageMetadata",
            "BytesStorageMetadata",
            "ChunkStorageMetadata",
            "TensorProperties",
            "_MEM_FORMAT_ENCODING",
            "MetadataIndex",
            "StorageMeta",
        )
    },
    ("torch.distributed.checkpoint.filesystem", "_StorageInfo"): _Fields,
    **{("torch", name): getattr(torch, name) for name in DTYPES},
    ("torch", "Size"): tuple,
    ("torch.serialization", "_get_layout"): lambda *_: None,
    **{
        ("pathlib", name): lambda *_: None for name in ("PosixPath", "WindowsPath", "PurePosixPath")
    },
}


def read(folder: Path, part: str = "model") -> dict[str, torch.Tensor]:
    """Read the tensors of one part of what was saved, by name; InputError for a damaged folder or
    other objects.
    """
    metadata = restricted_pickle.load(folder / METADATA, NAMES)
    with refusing(
        Exception,
        lambda error: (
            f"{folder}: not readable as a distributed checkpoint of torch "
            f"({type(error).__name__}); copy the whole folder again"
        ),
    ):  # it may hold anything
        pieces: dict[str, list[tuple[Any, Any]]] = {}
        for index, stored in metadata.storage_data.items():
            pieces.setdefault(index.fqn, []).append((index.offset, stored))
        tensors = {
            name.removeprefix(f"{part}."): _tensor(folder, tensor, pieces[name])
            for name, tensor in metadata.state_dict_metadata.items()
            if name.startswith(f"{part}.")
        }
    if not tensors:
        raise InputError(
            f"{folder}: holds no tensors of {part!r}, as OpenCLIP's training writes them"
        )
    return tensors


def _tensor(folder: Path, declared: Any, pieces: Iterable[tuple[Any, Any]]) -> torch.Tensor:
    """Join a tensor's pieces. Memory is taken for what the files hold, not for what the metadata
    say.
    """
    joined = torch.empty(declared.size, dtype=declared.properties.dtype, device="meta")
    values = [(offset, _piece(folder, stored)) for offset, stored in pieces]
    several = len({offset for offset, _ in values}) == len(values)
    if sum(value.numel() for _, value in values) != joined.numel() or not several:
        raise ValueError("pieces are missing")
    joined = torch.empty_like(joined, device="cpu")
    for offset, value in values:
        joined[
            tuple(
                slice(start, start + side) for start, side in zip(offset, value.shape, strict=True)
            )
        ] = value
    return joined


def _piece(folder: Path, stored: Any) -> torch.Tensor:
    if Path(stored.relative_path).name != stored.relative_path or getattr(
        stored, "transform_descriptors", None
    ):
        raise ValueError("its files are elsewhere, or are transformed")
    with regular.opened(folder / stored.relative_path) as file:
        file.seek(stored.offset)
        return torch.load(
            io.BytesIO(file.read(stored.length)), map_location="cpu", weights_only=True
        )
