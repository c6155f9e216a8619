"""A similarity matrix as a source of blocks, read or computed one after another, so that any pool
fits in memory.

Rows are images, columns are captions. `blocks.py` and `zarr_matrix.py` read, `embeddings.py`
multiplies, `combining.py` sums.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from pipeline.foundation.evaluation.retrieval.blocks import (
    Cells,
    Direction,
    Ids,
    Index,
    Matrix,
    as_slice,
)
from pipeline.foundation.files import npy, regular
from pipeline.foundation.parts.errors import InputError, refusing


class EqualRows(NamedTuple):
    """Groups of identical embeddings: two rows have the same label if and only if their vectors are
    equal.
    """

    images: Ids  # int64 [I], the label of each image
    captions: Ids  # int64 [C], the label of each caption


def first_equal(labels: Ids) -> Ids | None:
    """Find the first row with the label of each, int64 [N]; None if all labels differ."""
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    if len(first) == len(labels):
        return None
    return first[group]


@runtime_checkable
class Similarity(Protocol):
    """A matrix [I images, C captions] that is read in blocks; larger values are more similar, and
    all are finite.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions."""

    @property
    def equal(self) -> EqualRows | None:
        """Which rows and columns must get equal similarities; None if a cell always has the same
        value.

        A computed cell may differ by rounding from one block to another. Then ranking uses these
        labels to keep ties.
        """

    def block(self, images: Index, captions: Index) -> Cells:
        """The cells of some rows (images) and columns (captions).

        Returns:
            Float32 or float64 [rows, columns]. If `equal` is None it may be a view of the storage:
            do not write into it.
        """

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """The cells (images[k], captions[k]), float32 or float64 [n], of int64 rows and columns."""

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """The rows and columns of blocks that this source reads efficiently.

        Args:
            shape: Images and captions, of the whole matrix or of a selection.
            block_bytes: The most memory that one block takes, where the storage allows it.
        """


class WholeQueries:
    """A matrix [I, C] for one direction whose grid has blocks of whole queries, each with all its
    candidates.

    by_image: whether queries are images, and blocks some rows; else they are captions, and blocks
        some columns. All scores that a candidate is compared with are then in one block.
    """

    by_image: bool


@runtime_checkable
class PerDirection(Protocol):
    """Scores that depend on the query's candidates, such as ranks: one matrix for each
    direction.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Images and captions."""

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """The scores [I, C] of the direction of this name: "i2t" ranks captions for images, "t2i"
        images for captions.

        block_bytes: the most memory that one block takes.
        """

    def select(self, images: Ids, captions: Ids) -> "PerDirection":
        """The scores among some images and captions, int64 rows and columns in the order that they
        get.
        """


Scores: TypeAlias = Similarity | PerDirection
# Memory for a block of scores, unless the caller says how much.
BLOCK_BYTES = 32_000_000


def of_direction(source: Scores, name: Direction, block_bytes: int = BLOCK_BYTES) -> Similarity:
    """The matrix [I, C] by which one direction is ranked."""
    if isinstance(source, PerDirection):
        return source.direction(name, block_bytes)
    return source


class Selection:
    """Some rows and columns of another source, in any order: a fold, a split, or the order of
    another system's ids.
    """

    def __init__(self, source: Similarity, images: Ids, captions: Ids) -> None:
        self.source = source
        self.images = images
        self.captions = captions
        self.shape = (len(images), len(captions))

    @property
    def equal(self) -> EqualRows | None:
        """The source's labels of the selected rows and columns."""
        rows = self.source.equal
        if rows is None:
            return None
        return EqualRows(rows.images[self.images], rows.captions[self.captions])

    def block(self, images: Index, captions: Index) -> Cells:
        """Read a block, see `Similarity.block`."""
        rows = as_slice(self.images[images])
        columns = as_slice(self.captions[captions])
        return self.source.block(rows, columns)

    def pairs(self, images: Ids, captions: Ids) -> Cells:
        """Read single cells, see `Similarity.pairs`."""
        return self.source.pairs(self.images[images], self.captions[captions])

    def grid(self, shape: tuple[int, int], block_bytes: int) -> Iterator[tuple[slice, slice]]:
        """Cut a shape into blocks, rows and columns each, as the source is best read."""
        return self.source.grid(shape, block_bytes)


class OfVectors:
    """Scores that are the inner products of vectors."""

    images: np.ndarray  # [I, D]
    captions: np.ndarray  # [C, D]


def vectors_of(source: Scores) -> tuple[np.ndarray, np.ndarray] | None:
    """The vectors [I, D] and [C, D] of which scores are the inner products; None for other
    scores.
    """
    if isinstance(source, OfVectors):
        return source.images, source.captions
    if isinstance(source, Selection):
        whole = vectors_of(source.source)
        if whole is not None:
            images, captions = whole
            return images[source.images], captions[source.captions]
    return None


def select(source: Scores, images: Ids, captions: Ids) -> Scores:
    """The scores of a source among some images and captions (int64); the source itself if all are
    selected in order.
    """
    rows, columns = source.shape
    if np.array_equal(images, np.arange(rows)) and np.array_equal(captions, np.arange(columns)):
        return source
    if isinstance(source, PerDirection):
        return source.select(images, captions)
    return Selection(source, images, captions)


def of_queries(matrix: Similarity, direction: Direction, which: Index) -> Cells:
    """All scores of some queries: [queries, candidates]."""
    images, captions = matrix.shape
    if direction == "i2t":
        return matrix.block(which, slice(0, captions))
    return matrix.block(slice(0, images), which).T


def whole_queries(
    source: Scores, direction: Direction, block_bytes: int
) -> Iterator[tuple[slice, Cells]]:
    """Read whole queries, block by block: which ones, and their scores [queries, candidates]."""
    source = of_direction(source, direction, block_bytes)
    queries, candidates = source.shape
    if direction == "t2i":
        queries, candidates = candidates, queries
    at_once = max(1, block_bytes // (8 * candidates))
    for start in range(0, queries, at_once):
        part = slice(start, min(start + at_once, queries))
        yield part, of_queries(source, direction, part)


def as_similarity(source: object, name: str = "") -> Scores:
    """The similarity source of an array, a torch tensor, a zarr array, or the path of one: [images,
    captions].

    A path that ends in `.npy` is memory-mapped and never unpickled; another path is opened as a
    zarr array.
    name: what messages call it, such as its file.

    Raises:
        InputError: For anything else, for another shape, or for values that are not numbers.
    """
    if isinstance(source, PerDirection):
        return source
    if isinstance(source, str | Path):
        path = Path(source)
        name = name or str(source)
        if path.suffix == ".npy":
            source = open_npy(path)
        else:
            from pipeline.foundation.evaluation.retrieval.zarr_matrix import open_zarr

            source = open_zarr(path)
    if isinstance(source, np.ndarray) or _is(source, "torch", "Tensor"):
        return Matrix(to_array(source), name)  # type: ignore[arg-type]
    if _is(source, "zarr", "Array"):
        from pipeline.foundation.evaluation.retrieval.zarr_matrix import ZarrMatrix

        return ZarrMatrix(source, name)  # type: ignore[arg-type]
    if isinstance(source, Similarity):
        return source
    raise InputError(
        f"cannot read similarities from {type(source).__name__}: give an array, a .npy file or a zarr "
        "array; of a sparse matrix its .toarray()"
    )


def _is(source: object, library: str, kind: str) -> bool:
    """Whether a source is of a library's type; the library is not imported for it."""
    module = sys.modules.get(library)
    return module is not None and isinstance(source, getattr(module, kind))


def to_array(values: object) -> npt.NDArray[Any]:
    """Convert a user's array to a plain numpy array; bfloat16, which numpy lacks, becomes
    float32.
    """
    torch: Any = sys.modules.get("torch")  # if it is not imported, `values` is no tensor
    if torch is not None and isinstance(values, torch.Tensor):
        return _of_tensor(values)
    if isinstance(values, np.ma.MaskedArray):
        hidden = int(np.ma.count_masked(values))
        if hidden:
            raise InputError(
                f"{hidden} values of the array are masked, and all are ranked: give numbers for them, "
                "with .filled(), or leave their rows and columns out"
            )
        return np.asarray(values.data)
    if not isinstance(values, np.ndarray):
        raise InputError(
            f"expected an array, received {type(values).__name__}: give a numpy array or a tensor; of a "
            "sparse matrix its .toarray()"
        )
    if type(values) in (np.ndarray, np.memmap):
        return values
    return np.asarray(values)


def _of_tensor(tensor: Any) -> npt.NDArray[Any]:
    torch: Any = sys.modules["torch"]
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise InputError(
            f"expected a dense tensor, received layout {tensor.layout}: give its .to_dense()"
        )
    tensor = tensor.detach().cpu()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    array: npt.NDArray[Any] = tensor.numpy()
    return array


ARCHIVE = b"PK"


def open_npy(path: Path) -> npt.NDArray[Any]:
    """Map a `.npy` file into memory; it is never unpickled and may be larger than the memory."""
    with (
        refusing(ValueError, npy.damaged(path)),
        refusing(OSError, lambda error: f"cannot read {path}: {error.strerror or error}"),
    ):
        with regular.opened(path) as file:
            inode = os.fstat(file.fileno()).st_ino
            if file.read(len(ARCHIVE)) == ARCHIVE:
                raise InputError(
                    f"{path}: holds several arrays (.npz): save the one that is meant with numpy.save"
                )
            file.seek(0)
            if npy.read_header(file).dtype.hasobject:
                return _of_vse_infty(path)
        array: Any = npy.mapped(path)
        if isinstance(array, np.memmap):
            array.inode = inode  # type: ignore[attr-defined]  # see `compute.by_path`
        return array  # type: ignore[no-any-return]


def _of_vse_infty(path: Path) -> npt.NDArray[Any]:
    """Read the matrix `sims` [images, captions] in a file that VSE∞'s evaluation wrote."""
    from pipeline.foundation.files import restricted_pickle

    content = restricted_pickle.load(path, in_npy=True)
    if isinstance(content, list) and len(content) == 1:
        (content,) = content
        if isinstance(content, dict) and isinstance(content.get("sims"), np.ndarray):
            return content["sims"]
    raise InputError(
        f"{path}: holds objects, and not VSE∞'s {{'npts', 'sims'}}: write the matrix with numpy.save"
    )


class Directions:
    """One matrix [I, C] for each direction."""

    def __init__(self, of_images: Similarity, of_captions: Similarity) -> None:
        self.both: dict[Direction, Similarity] = {"i2t": of_images, "t2i": of_captions}
        self.shape = of_images.shape

    def direction(self, name: Direction, block_bytes: int) -> Similarity:
        """Give the matrix of one direction, see `PerDirection.direction`."""
        return self.both[name]

    def select(self, images: Ids, captions: Ids) -> PerDirection:
        """Restrict the candidates, whose corrections stay those of the whole split, see
        `PerDirection.select`.
        """
        of_images = select(self.both["i2t"], images, captions)
        of_captions = select(self.both["t2i"], images, captions)
        return Directions(of_images, of_captions)  # type: ignore[arg-type]
