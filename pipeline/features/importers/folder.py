"""A folder with one file of features for each image, named after it: `COCO_val2014_000000000042.npz`, `42.pth`.

Nothing is unpickled except tensors.

    .npy  [n, D], or [1, n, D] as VATEX's organisers write I3D features
    .npz  as MILVLG/bottom-up-attention.pytorch writes it: x [n, D] ([D, n] in the files for MCAN), bbox, num_bbox,
          image_h, image_w; objects_id, objects_conf, attrs_id, attrs_conf where they are members. Its member `info`
          is a pickle and is not read.
    .pth  a tensor [n, D], or a map [C, H, W] or [1, C, H, W] as facebookresearch/grid-feats-vqa writes it: H * W
          items of C values, row by row
"""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import torch

from pipeline.features.extractors import butd
from pipeline.features.importers.base import FeatureSource, OnFound, Place, SourceItems, UnusableItems, rows_of
from pipeline.files.npy import mapped, opened
from pipeline.files.npz import Arrays
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError

# Member of an .npz -> what the BUTD engines call it.
MEMBERS = {"bbox": "boxes", "objects_id": "object", "objects_conf": "object_score", "attrs_id": "attribute",
           "attrs_conf": "attribute_score"}
FEATURES = ("x", "features")
# No network gives more; a damaged header may.
MOST_ITEMS, MOST_VALUES = 16_384, 65_536

Shape = tuple[int, ...]


def index(paths: Sequence[Path], manifest: Manifest, on_found: OnFound) -> FeatureSource:
    """Find the files of the manifest's images below the folders, and read their shapes."""
    files: list[tuple[str, Path]] = []  # an id is the path below the folder without suffix
    for folder in paths:
        if not folder.is_dir():
            raise InputError(f"{folder}: no such folder of features")
        files += [(file.relative_to(folder).with_suffix("").as_posix(), file) for file in sorted(folder.rglob("*"))
                  if file.suffix in READERS and not file.name.startswith(".") and file.is_file()]
    if not files:
        raise InputError(f"{', '.join(map(str, paths))}: expected files {', '.join(READERS)}, found none")
    rows = rows_of([name for name, _ in files], manifest, paths[0])
    file_of: dict[int, Path] = {}
    for (_, file), row in zip(files, rows, strict=True):
        if row in file_of:
            raise InputError(f"{file}: is of the image {manifest.images['file'][row]}, as is {file_of[row]}; take one "
                             "of them out")
        if row is not None:
            file_of[row] = file
    source = FeatureSource.empty(manifest, lambda place: load(place.file))
    for row in sorted(file_of):
        source.add(row, Place(file_of[row]), partial(_first_shape, source, file_of[row]))
        on_found(1)
    source.files = [file_of[row] for row in sorted(file_of)]
    source.count_others(rows, "files", manifest)
    return source


def _first_shape(source: FeatureSource, file: Path) -> tuple[int, ...]:
    """The shape of a file's features. The first readable file says what else the files hold."""
    found = shape_of(file)
    if not source.dimension:
        beside = load(file).extras
        source.extras = {name: extra for name, extra in butd.EXTRAS.items() if name in beside}
    return found


def npy(path: Path) -> SourceItems:
    """Map an .npy."""
    array = mapped(path)
    return SourceItems(array[0] if array.ndim == 3 and len(array) == 1 else array)


def npz_shape(path: Path) -> Shape:
    """Read the shape of an .npz from its members' headers."""
    with opened(path) as file:
        arrays = Arrays(file)
        shape = arrays.shape(_features(arrays))
        return shape[::-1] if _lying(shape, arrays) else shape


def npz(path: Path) -> SourceItems:
    """Read an .npz."""
    with opened(path) as file:
        arrays = Arrays(file)
        features = arrays.array(_features(arrays))
        extras = {name: arrays.array(member) for member, name in MEMBERS.items() if member in arrays.members}
        sized = {"size": (int(arrays.array("image_w")), int(arrays.array("image_h")))} \
            if "image_w" in arrays.members else {}
        return SourceItems(features.T if _lying(features.shape, arrays) else features, extras, **sized)


def _features(arrays: Arrays) -> str:
    found = [name for name in FEATURES if name in arrays.members]
    if len(found) != 1:
        raise ValueError(f"expected a member {' or '.join(FEATURES)}, got {', '.join(arrays.members)}")
    return found[0]


def _lying(shape: Shape, arrays: Arrays) -> bool:
    """Whether features are [D, n]: only the second axis is as long as there are boxes."""
    if len(shape) != 2 or not ("num_bbox" in arrays.members or "bbox" in arrays.members):
        return False
    boxes = int(arrays.array("num_bbox")) if "num_bbox" in arrays.members else arrays.shape("bbox")[0]
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


# Suffix -> (reads only the shape, reads everything).
READERS: dict[str, tuple[Callable[[Path], Shape], Callable[[Path], SourceItems]]] = {
    ".npy": (lambda path: npy(path).features.shape, npy), ".npz": (npz_shape, npz),
    ".pth": (lambda path: tuple(_items(_tensor(path)).shape), pth)}  # its data are mapped, not read, where torch can


def shape_of(path: Path) -> Shape:
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
    return SourceItems(np.require(found.features, np.float32, ("C", "A")), found.extras, found.size)


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
