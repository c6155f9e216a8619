"""Files that hold one image's features. Nothing is unpickled except tensors.

    .npy  [n, D], or [1, n, D] as VATEX's organisers write I3D features
    .npz  as MILVLG/bottom-up-attention.pytorch writes it: x [n, D] ([D, n] in the files for MCAN), bbox, num_bbox,
          image_h, image_w; objects_id, objects_conf, attrs_id, attrs_conf where they are members. Its member `info`
          is a pickle and is not read.
    .pth  a tensor [n, D], or a map [C, H, W] or [1, C, H, W] as facebookresearch/grid-feats-vqa writes it: H * W
          items of C values, row by row
"""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from numpy.lib import format as npy_format

from pipeline.features.importers.base import UNKNOWN_SIZE, SourceItems, UnusableItems

# Member of an .npz -> what the BUTD engines call it.
EXTRAS = {"bbox": "boxes", "objects_id": "object", "objects_conf": "object_score", "attrs_id": "attribute",
          "attrs_conf": "attribute_score"}
FEATURES = ("x", "features")
# No network gives more; a damaged header may.
MOST_ITEMS, MOST_VALUES = 16_384, 65_536

Shape = tuple[int, ...]


def npy(path: Path) -> SourceItems:
    """Map an .npy."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return SourceItems(array[0] if array.ndim == 3 and len(array) == 1 else array)


def npz_shape(path: Path) -> Shape:
    """Read the shape of an .npz from its members' headers."""
    with np.load(path, allow_pickle=False) as members, members.zip.open(f"{_features(members)}.npy") as member:
        version = npy_format.read_magic(member)
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape: Shape = read(member)[0]
        return shape[::-1] if _lying(shape, members) else shape


def npz(path: Path) -> SourceItems:
    """Read an .npz."""
    with np.load(path, allow_pickle=False) as members:
        features = members[_features(members)]
        extras = {name: members[member] for member, name in EXTRAS.items() if member in members}
        size = (int(members["image_w"]), int(members["image_h"])) if "image_w" in members else UNKNOWN_SIZE
        return SourceItems(features.T if _lying(features.shape, members) else features, extras, size)


def _features(members: np.lib.npyio.NpzFile) -> str:
    found = [name for name in FEATURES if name in members]
    if len(found) != 1:
        raise ValueError(f"expected a member {' or '.join(FEATURES)}, got {', '.join(members)}")
    return found[0]


def _lying(shape: Shape, members: np.lib.npyio.NpzFile) -> bool:
    """Whether features are [D, n]: only the second axis is as long as there are boxes."""
    if len(shape) != 2 or not ("num_bbox" in members or "bbox" in members):
        return False
    boxes = int(members["num_bbox"]) if "num_bbox" in members else len(members["bbox"])
    if boxes not in shape:
        raise ValueError(f"expected features of {boxes} boxes, got shape {shape}")
    return shape[0] != boxes


def pth(path: Path) -> SourceItems:
    """Read a .pth."""
    return SourceItems(_items(_tensor(path)).float().numpy())


def _tensor(path: Path) -> torch.Tensor:
    mapped = zipfile.is_zipfile(path)  # older files are not, and cannot be mapped
    tensor = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        raise ValueError(f"expected a tensor of floats, got {getattr(tensor, 'dtype', type(tensor).__name__)}")
    return tensor.detach()


def _items(tensor: torch.Tensor) -> torch.Tensor:
    single = tensor[0] if tensor.ndim == 4 and len(tensor) == 1 else tensor
    if single.ndim == 3 and len(single) > 1:
        return single.flatten(1).T
    if single.ndim != 2:
        raise ValueError(f"expected a tensor [n, D], [C, H, W] or [1, C, H, W], got {list(tensor.shape)}")
    return single


# Suffix -> (the shape alone, everything).
READERS: dict[str, tuple[Callable[[Path], Shape], Callable[[Path], SourceItems]]] = {
    ".npy": (lambda path: npy(path).features.shape, npy), ".npz": (npz_shape, npz),
    ".pth": (lambda path: tuple(_items(_tensor(path)).shape), pth)}  # its data are mapped, not read, where torch can


def shape(path: Path) -> Shape:
    """Read the shape of a file's features, from its header where that is possible."""
    with _readable():
        shape = READERS[path.suffix][0](path)
    return possible(shape)


def possible(shape: Shape) -> Shape:
    """Refuse a shape that no features have."""
    if len(shape) != 2 or not all(shape):
        raise UnusableItems(f"expected features [n, D], got shape {shape}")
    if shape[0] > MOST_ITEMS or shape[1] > MOST_VALUES:
        raise UnusableItems(f"expected at most {MOST_ITEMS} items of {MOST_VALUES} values, got shape {shape}")
    return shape


def load(path: Path) -> SourceItems:
    """Read a file's features and what is stored beside them."""
    with _readable():
        found = READERS[path.suffix][1](path)
    if found.features.dtype.kind != "f":
        raise UnusableItems(f"expected floats, got {found.features.dtype}")
    return SourceItems(np.ascontiguousarray(found.features, np.float32), found.extras, found.size)


@contextmanager
def _readable() -> Iterator[None]:
    """Turn what libraries raise for a damaged or a foreign file into one line."""
    try:
        yield
    except Exception as error:  # bytes made to break a reader may raise anything
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        if "pickle" in reason or "weights_only" in reason:
            reason = "it holds pickled objects, which are not read"  # the libraries' advice is to run them
        raise UnusableItems(f"not readable: {reason}") from None
