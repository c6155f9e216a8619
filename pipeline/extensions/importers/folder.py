"""A folder with one file of features for each image, named after it:
`COCO_val2014_000000000042.npz`, `42.pth`.

Nothing is unpickled except tensors.

    .npy  [n, D], [1, n, D] as VATEX's organisers write I3D features, or [n, D, 1]
    .npz  as MILVLG/bottom-up-attention.pytorch writes it: x [n, D] ([D, n] in the files for MCAN),
          bbox, num_bbox, image_h, image_w; objects_id, objects_conf, attrs_id, attrs_conf where
          they are members. Its member `info` is a pickle and is not read. Other tools call x feat
          or features, and bbox boxes. Which axis is n is known by the boxes; where n is D, it is
          what it is in the other files.
    .pth  a tensor [n, D], or a map [C, H, W] or [1, C, H, W] as facebookresearch/grid-feats-vqa
          writes it: H * W items of C values, row by row
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.extensions.importers.base import (
    UNKNOWN_SIZE,
    FeatureSource,
    OnFound,
    Place,
    SourceItems,
    UnusableItems,
)
from pipeline.foundation.files import torch_save, unfetched
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.files.npy import mapped
from pipeline.foundation.files.npz import Arrays
from pipeline.foundation.files.regular import opened
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.manifest.image_ids import rows_of
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import ANYTHING, InputError, first_line, refusing
from pipeline.make.features.extractors.butd.extras import EXTRAS

if TYPE_CHECKING:
    import torch

# Member of an .npz -> what the BUTD engines call it.
MEMBERS = {
    "bbox": "boxes",
    "boxes": "boxes",
    "objects_id": "object",
    "objects_conf": "object_score",
    "attrs_id": "attribute",
    "attrs_conf": "attribute_score",
}
FEATURES = ("x", "features", "feature", "feat", "feats")
# What says how many boxes there are.
COUNTS = ("num_bbox", "num_boxes")
BOXES = ("bbox", "boxes")
# No network gives more; a damaged header may.
MOST_ITEMS = 16_384
MOST_VALUES = 65_536

Shape = tuple[int, ...]


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Find the files of the manifest's images below the folders, and read their shapes."""
    files: list[tuple[str, Path]] = []  # an id is the path below the folder without suffix
    for folder in paths:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of features")
        for file in sorted(folder.rglob("*")):
            if _is_of_features(file):
                files.append((file.relative_to(folder).with_suffix("").as_posix(), file))
    if not files:
        raise InputError(
            f"{', '.join(map(str, paths))}: expected files {', '.join(READERS)}, found none"
        )
    rows = rows_of([name for name, _ in files], manifest, paths[0])
    suffixes = sorted({file.suffix for _, file in files})
    if ".pth" in suffixes:
        extras.require("training", ".pth", "torch")
    files_of: dict[int, list[Path]] = {}
    for (_, file), row in zip(files, rows, strict=True):
        if row is not None:
            files_of.setdefault(row, []).append(file)
    files_used: list[Path] = []
    for row in sorted(files_of):
        files_used += files_of[row]
    lying = _are_lying(files_used)
    title = f"a file an image, {', '.join(suffixes)}"
    if lying:
        title += ", its arrays [D, n]"
    source = FeatureSource(
        manifest,
        lambda place: load(place.file, lying),
        files=[file for file in files_used if file.is_file()],  # others are links to nothing
        left_out=LeftOut("file"),
        entries=len(files),
        title=title,
    )
    for row in sorted(files_of):
        several = [Place(file) for file in files_of[row]]
        if len(several) == 1 or not source.dimension:
            source.add(row, several[0], partial(_first_shape, source, several[0].file, lying))
        if len(several) > 1:
            source.faults.pop(row, None)
            source.add_whole(row, several, "damaged file")
        on_found(1)
    source.count_others(rows, "files")
    if source.counts.any() and source.counts.max() > source.dimension:
        source.notes.append(
            f"{source.counts.max():,} items of {source.dimension:,} values an image: if it is the "
            "other way round, save the arrays transposed, [n, D]"
        )
    return source


def _is_of_features(file: Path) -> bool:
    if file.suffix not in READERS or file.name.startswith("."):
        return False
    return file.is_file() or file.is_symlink()


def _are_lying(files: Sequence[Path]) -> bool | None:
    """Whether the files' features are [D, n], by the first whose boxes tell; None if none does."""
    for file in files:
        if file.suffix != ".npz":
            continue
        # A damaged one is reported when it is read.
        with suppress(Exception), opened(file) as content:
            arrays = Arrays(content)
            shape = arrays.shape(_features(arrays))
            if len(shape) == 2 and shape[0] != shape[1]:
                return _lying(shape, arrays, None)
    return None


def _first_shape(source: FeatureSource, file: Path, lying: bool | None) -> tuple[int, ...]:
    """The shape of a file's features. The first readable file says what else the files hold."""
    shape = shape_of(file, lying)
    if not source.dimension:
        beside = load(file, lying).extras
        source.extras = {name: extra for name, extra in EXTRAS.items() if name in beside}
    return shape


def npy(path: Path, lying: bool | None = None) -> SourceItems:
    """Map an .npy."""
    array = mapped(path)
    if array.ndim == 3 and len(array) == 1:
        array = array[0]
    elif array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    return SourceItems(array)


def npz_shape(path: Path, lying: bool | None = None) -> Shape:
    """Read the shape of an .npz from its members' headers."""
    with opened(path) as file:
        arrays = Arrays(file)
        shape = arrays.shape(_features(arrays))
        return shape[::-1] if _lying(shape, arrays, lying) else shape


def npz(path: Path, lying: bool | None = None) -> SourceItems:
    """Read an .npz."""
    with opened(path) as file:
        arrays = Arrays(file)
        features = arrays.array(_features(arrays))
        beside = {}
        for member, name in MEMBERS.items():
            if member in arrays.members:
                beside[name] = arrays.array(member)
        size = UNKNOWN_SIZE
        if "image_w" in arrays.members:
            size = (_number(arrays, "image_w"), _number(arrays, "image_h"))
        if _lying(features.shape, arrays, lying):
            features = features.T
        return SourceItems(features, beside, size)


def _boxes(arrays: Arrays) -> str | None:
    """The member of boxes, [n, 4]; None without any."""
    named = [name for name in BOXES if name in arrays.members]
    if len(named) > 1:
        raise UnusableItems(f"has both {' and '.join(named)}; leave the right one")
    for name in named:
        shape = arrays.shape(name)
        if len(shape) != 2 or shape[1] != 4:
            raise UnusableItems(f"expected {name} [n, 4], got shape {shape}")
    return named[0] if named else None


def _number(arrays: Arrays, name: str) -> int:
    """The only number of a member."""
    value = arrays.array(name)
    if value.size != 1 or value.dtype.kind not in "iuf":
        raise UnusableItems(f"expected {name} to be one number, got shape {value.shape}")
    return int(value.item())


def _features(arrays: Arrays) -> str:
    named = [name for name in FEATURES if name in arrays.members]
    if len(named) != 1:
        raise ValueError(
            f"expected one member of {', '.join(FEATURES)}, got {', '.join(arrays.members)}"
        )
    return named[0]


def _lying(shape: Shape, arrays: Arrays, otherwise: bool | None) -> bool:
    """Whether features are [D, n]: only the second axis is as long as there are boxes. otherwise:
    where n is D.
    """
    count = next((name for name in COUNTS if name in arrays.members), None)
    boxes = _boxes(arrays)
    if len(shape) != 2 or not (count or boxes):
        return False
    number = _number(arrays, count) if count else arrays.shape(str(boxes))[0]
    if number not in shape:
        raise ValueError(f"expected features of {number} boxes, got shape {shape}")
    if shape[0] == shape[1]:
        return bool(otherwise)
    return shape[0] != number


def pth(path: Path, lying: bool | None = None) -> SourceItems:
    """Read a .pth."""
    return SourceItems(_items(_tensor(path)).float().numpy())


def _tensor(path: Path) -> "torch.Tensor":
    import torch

    def why(error: InputError) -> str:
        return f"not readable: {str(error).removeprefix(f'{path}: ')}"

    with refusing(InputError, why, UnusableItems):
        tensor = torch_save.load(path)
        if isinstance(tensor, torch.Tensor):  # it becomes float32
            Expansion(path, "save the features themselves, [n, D]").require(4 * tensor.numel())
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        raise ValueError(
            f"expected a tensor of floats, got {getattr(tensor, 'dtype', type(tensor).__name__)}"
        )
    return tensor.detach()


def _items(tensor: "torch.Tensor") -> "torch.Tensor":
    single = tensor[0] if tensor.ndim == 4 and len(tensor) == 1 else tensor
    if single.ndim == 3 and len(single) > 1:
        return single.flatten(1).T
    if single.ndim != 2:
        raise ValueError(
            f"expected a tensor [n, D], [C, H, W] or [1, C, H, W], got {list(tensor.shape)}"
        )
    return single


# Suffix -> (reads only the shape, reads everything).
READERS: dict[
    str, tuple[Callable[[Path, bool | None], Shape], Callable[[Path, bool | None], SourceItems]]
] = {
    ".npy": (lambda path, lying: npy(path).features.shape, npy),
    ".npz": (npz_shape, npz),
    ".pth": (lambda path, lying: tuple(_items(_tensor(path)).shape), pth),
}  # its data are mapped where torch can


def shape_of(path: Path, lying: bool | None = None) -> Shape:
    """Read the shape of a file's features, from its header where that is possible."""
    with _readable(path):
        shape = READERS[path.suffix][0](path, lying)
    return possible(shape)


def possible(shape: Shape) -> Shape:
    """Refuse a shape that no features have."""
    if len(shape) != 2 or not all(shape):
        raise UnusableItems(f"expected features [n, D], got shape {shape}")
    if shape[0] > MOST_ITEMS or shape[1] > MOST_VALUES:
        raise UnusableItems(
            f"expected at most {MOST_ITEMS} items of {MOST_VALUES} values, got shape {shape}"
        )
    return shape


def load(path: Path, lying: bool | None = None) -> SourceItems:
    """Read a file's features and what is stored beside them."""
    with _readable(path):
        items = READERS[path.suffix][1](path, lying)
    if items.features.dtype.kind != "f":
        raise UnusableItems(f"expected floats, got {items.features.dtype}")
    features = np.require(items.features, np.float32, ("C", "A"))
    return SourceItems(features, items.extras, items.size)


def _readable(path: Path) -> AbstractContextManager[None]:
    """Turn what libraries raise for a damaged or a foreign file into one line."""

    def why(error: Exception) -> str:
        what = unfetched.stand_in(path)
        return f"is {what}" if what else f"not readable: {first_line(error)}"

    return refusing(ANYTHING, why, UnusableItems)
