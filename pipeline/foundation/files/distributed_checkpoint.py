"""Folders of torch's distributed checkpoints (`.metadata`, `*.distcp`), read without running what a
pickle may hold.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from pipeline.foundation.files import pickled, regular, restricted_pickle, torch_save
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.files.pickled import Call, Name
from pipeline.foundation.files.weights import DISTRIBUTED as METADATA
from pipeline.foundation.parts.errors import InputError, refusing

TYPES = (
    *("float32", "float16", "bfloat16", "float64"),
    *("int64", "int32", "int16", "int8", "uint8", "bool"),
)
DTYPES = {Name("torch", name): getattr(torch, name) for name in TYPES}
CLASSES = "torch.distributed.checkpoint.metadata"
# What the metadata may name.
NAMES = {
    *DTYPES,
    torch_save.SIZE,
    Name("torch.serialization", "_get_layout"),
    Name("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
    *(Name("pathlib", name) for name in ("PosixPath", "WindowsPath", "PurePosixPath")),
    *(Name(CLASSES, name) for name in ("Metadata", "MetadataIndex", "StorageMeta")),
    *(Name(CLASSES, f"{kind}StorageMetadata") for kind in ("Tensor", "Bytes", "Chunk")),
    *(Name(CLASSES, name) for name in ("TensorProperties", "_MEM_FORMAT_ENCODING")),
}


def read(folder: Path, part: str = "model") -> dict[str, torch.Tensor]:
    """Read the tensors of one part of what was saved, by name; InputError for a damaged folder or
    other objects.
    """
    file = folder / METADATA
    with restricted_pickle.reading(file, "the metadata of a checkpoint"), regular.opened(file) as f:
        size = os.fstat(f.fileno()).st_size
        metadata = _fields(pickled.read(f, size, Expansion(file), NAMES).tree)

    def why(error: Exception) -> str:
        return (
            f"{folder}: not readable as a distributed checkpoint of torch "
            f"({type(error).__name__}); copy the whole folder again"
        )

    prefix = f"{part}."
    tensors = {}
    with refusing(Exception, why):  # it may hold anything
        pieces: dict[str, list[tuple[Any, Any]]] = {}
        all_stored: list[Mapping[str, Any]] = []
        for index, piece in metadata["storage_data"].items():
            where = _fields(index)
            if "offset" in where:  # another object has none
                offset = _sizes(where["offset"])
                stored = _fields(piece)
                pieces.setdefault(where["fqn"], []).append((offset, stored))
                all_stored.append(stored)
        _refuse_repeated(folder, all_stored)
        for name, tensor in metadata["state_dict_metadata"].items():
            if name.startswith(prefix):
                inner = name.removeprefix(prefix)
                tensors[inner] = _tensor(folder, _fields(tensor), pieces[name])
    if not tensors:
        raise InputError(
            f"{folder}: holds no tensors of {part!r}, as OpenCLIP's training writes them"
        )
    return tensors


def _refuse_repeated(folder: Path, pieces: Sequence[Mapping[str, Any]]) -> None:
    """Refuse pieces that are parts of the files more than once."""
    names = {str(piece["relative_path"]) for piece in pieces}
    files = [folder / Path(name).name for name in names]
    size = sum(file.stat().st_size for file in files)
    if sum(piece["length"] for piece in pieces) > size:
        raise ValueError("pieces overlap")


def _fields(value: Any) -> Mapping[str, Any]:
    """The fields of an object."""
    if not isinstance(value, Call) or not isinstance(value.state, dict):
        raise ValueError("it has an object without fields")
    return value.state


def _sizes(value: Any) -> tuple[int, ...]:
    """The whole numbers of a `torch.Size`."""
    if not isinstance(value, Call) or value.name != torch_save.SIZE:
        raise ValueError("it has a size that is none")
    (sizes,) = value.arguments
    return tuple(map(int, sizes))


def _tensor(
    folder: Path, declared: Mapping[str, Any], pieces: Iterable[tuple[Any, Any]]
) -> torch.Tensor:
    """Join a tensor's pieces. Memory is taken for what the files hold, not for what the metadata
    say.
    """
    dtype = DTYPES[declared["properties"].state[0]]
    joined = torch.empty(_sizes(declared["size"]), dtype=dtype, device="meta")
    values = [(offset, _piece(folder, stored)) for offset, stored in pieces]
    offsets = {offset for offset, _ in values}
    count = sum(value.numel() for _, value in values)
    if count != joined.numel() or len(offsets) < len(values):
        raise ValueError("pieces are missing")
    joined = torch.empty_like(joined, device="cpu")
    for offset, value in values:
        place = []
        for start, side in zip(offset, value.shape, strict=True):
            place.append(slice(start, start + side))
        joined[tuple(place)] = value
    return joined


def _piece(folder: Path, stored: Mapping[str, Any]) -> torch.Tensor:
    name = stored["relative_path"]
    if Path(name).name != name or stored.get("transform_descriptors"):
        raise ValueError("its files are elsewhere, or are transformed")
    with regular.opened(folder / name) as file:
        length = min(stored["length"], os.fstat(file.fileno()).st_size)
        file.seek(stored["offset"])
        piece = torch_save.load(folder / name, file.read(length))
    if not isinstance(piece, torch.Tensor):
        raise ValueError("a piece is no tensor")
    if piece.untyped_storage().nbytes() < piece.nbytes:
        raise ValueError("a piece repeats its values")
    return piece
