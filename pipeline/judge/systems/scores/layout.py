"""Stores of systems on disk: ids, scores or vectors, what made them, and digests of the arrays.

    NAME.zarr/
      record.json     the request, what it was made from, digests of the arrays, and as facts
                      `Made`, with `matrices` where several are stored
      zarr.json       the group, without attributes
      image_ids/      [I] int64
      caption_ids/    [C] int64
      caption_image/  [C] int64, each caption's image as a row of the matrix
      similarity/     [I, C] float32, or float64 where that is given; images x captions, in chunks
                      of at most ROWS x COLUMNS
      similarity_1/ … [I, C] the further matrices of an ensemble that is fused query by query: one
                      for each member, two for one with a matrix for each direction; the fact
                      `matrices` says how many each has
      image_embeddings/, caption_embeddings/   [I, d], [C, d] float32, unit vectors of a head or
                      dual encoder, in one chunk without a codec, to be memory-mapped; with a matrix
                      beside them or alone

A reranked system has its candidates instead of a matrix, see `reranked.py`. A z-score or a rank
depends on the candidates, which a protocol may divide into folds. Such an ensemble therefore keeps
its members' matrices, and fuses them when it is read.

A digest is over an array's files, including its metadata. The arrays are stored without a codec,
written once and never divided again. So equal files mean equal values, and comparing digests is
enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from pydantic import Field

from pipeline.foundation import artefacts, files
from pipeline.foundation.evaluation import retrieval
from pipeline.foundation.evaluation.retrieval import (
    Collection as Items,
    Progress,
    Scores,
    Side,
    Similarity,
)
from pipeline.foundation.evaluation.retrieval.blocks import TILE_WIDTH, Ids, cut
from pipeline.foundation.evaluation.retrieval.owners import NO_IMAGE
from pipeline.foundation.evaluation.retrieval.similarity import Directions
from pipeline.foundation.files import atomic, digest
from pipeline.foundation.parts.errors import ANYTHING, InputError, first_line, refusing, similar
from pipeline.judge import systems
from pipeline.judge.systems.scores import made as of_systems
from pipeline.judge.systems.scores.made import Facts, Made

if TYPE_CHECKING:
    import zarr

    from pipeline.foundation.artefacts import Artefact, Draft, Record
    from pipeline.foundation.manifest import Split

IDS = ("image_ids", "caption_ids", "caption_image")
HEADER = "zarr.json"
UNSCORED = "no similarity store there; make it with `pipeline score` or `pipeline ensemble`"
# What `Matrices` names as the method of a store with two matrices, one for each direction: no
# fusion.
DIRECTIONS = "directions"
# The fact of a store's record that is of its matrices, not of its system.
MATRICES = "matrices"
# Images and captions in a chunk: 8 MB, read and counted at once, whatever the size of the pool.
ROWS, COLUMNS = 256, TILE_WIDTH
Digests: TypeAlias = Callable[[Iterable[Path]], Iterable[str]]


class Matrices(Facts):
    """How several stored matrices are read as one system's scores."""

    method: str  # The fusion; or `DIRECTIONS`, one matrix for each direction
    weights: list[float]  # One for each member
    # How many of the matrices each member has; [] for one
    each: list[int] = Field(default_factory=list)

    @property
    def of_each(self) -> list[int]:
        """How many of the matrices each member has: 1, or 2 for one for each direction."""
        return self.each or [1] * len(self.weights)


def holds_scores(path: Path) -> bool:
    """Recognise a store of similarities or candidates, which holds the ids of its images and
    captions.
    """
    return (path / "similarity").is_dir() or (path / "i2t_candidates").is_dir()


def holds_vectors_alone(path: Path) -> bool:
    """Recognise a store that holds embeddings and no matrix of similarities."""
    return (path / "image_embeddings").is_dir() and not (path / "similarity").exists()


def is_store(path: Path) -> bool:
    """Recognise a store of either kind."""
    return holds_scores(path) or holds_vectors_alone(path)


@contextmanager
def reading(path: Path, otherwise: str) -> Iterator[tuple[zarr.Group, Artefact]]:
    """Open a store's group with its record; if the block finds something missing, `otherwise` is
    the message.
    """
    if not path.exists():
        raise InputError(f"{path}: {otherwise}{similar(path)}")
    archive = files.archives.named(path)
    if archive:
        raise InputError(f"{path}: is {archive}")
    with (
        refusing((FileNotFoundError, KeyError, ValueError, TypeError), f"{path}: {otherwise}"),
        refusing(RecursionError, f"{path}: its metadata are nested too deeply; make it again"),
    ):
        yield group(path), finished(path)


def finished(path: Path) -> Artefact:
    """A store with its record, which its command finished; no array is read."""
    store = artefacts.Artefact.open(path, HEADER)
    if not store.record.finished:
        raise InputError(
            f"{path}: is not finished, because the command that wrote it was killed; run it again"
        )
    return store


def facts(store: Artefact) -> Made:
    """Read what is known of a store's system."""
    with _refusing_other_facts(store):
        return facts_of(store.record)


def facts_of(record: Record) -> Made:
    """Read what is known of a system from its store's record; a ValueError if that is none."""
    facts = {key: value for key, value in record.facts.items() if key != MATRICES}
    return of_systems.read(facts)


def how_read(store: Artefact) -> Matrices | None:
    """Read how a store's matrices are read as one; None for one matrix."""
    recorded = store.record.facts.get(MATRICES)
    if recorded is None:
        return None
    with _refusing_other_facts(store):
        return Matrices.model_validate(recorded)


def _refusing_other_facts(store: Artefact) -> AbstractContextManager[None]:
    return refusing(
        ValueError,
        f"{store.folder}: its record.json has facts that are not a system's; make it again",
    )


def group(path: Path) -> zarr.Group:
    """Open a store's group by its arrays' own metadata, whatever other libraries have consolidated
    in zarr.json.
    """
    import zarr

    from pipeline.foundation.files.zarr_arrays import refuse_metadata

    for folder in (path, *path.glob("*/")):
        refuse_metadata(folder)
    return zarr.open_group(path, mode="r", zarr_format=3, use_consolidated=False)


def read_ids(path: Path, group: zarr.Group) -> tuple[Ids, Ids, Ids]:
    """Read the arrays of `IDS`, completely."""
    image_ids, caption_ids, owner = (_line(path / name, group[name]) for name in IDS)
    return image_ids, caption_ids, owner


def _line(path: Path, array: zarr.Array | zarr.Group) -> Ids:
    ids = whole(path, array)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(
            f"{path}: expected integers [n], received {ids.dtype} {list(ids.shape)}; make it again"
        )
    return ids.astype(np.int64, copy=False)


def whole(path: Path, array: zarr.Array | zarr.Group) -> np.ndarray:
    """Read an array of a store completely, after its sizes and files were checked; KeyError if it
    is none.
    """
    import zarr

    from pipeline.foundation.evaluation.retrieval.zarr_matrix import refuse_missing
    from pipeline.foundation.files.zarr_arrays import checked

    if not isinstance(array, zarr.Array):
        raise KeyError(path.name)
    array = checked(array, str(path))
    with refusing(
        ANYTHING,
        lambda error: (
            f"{path}: is damaged or cut short ({first_line(error)}); make the store again"
        ),
    ):
        refuse_missing(array, f"array {path.name}")
        return np.asarray(array[:])


def matrices(group: zarr.Group) -> tuple[zarr.Array, ...]:
    """Find the stored matrices, of which there is one or more."""
    import zarr

    arrays: list[zarr.Array] = []
    for number in count():
        name = _matrix_name(number)
        if number and name not in group:
            break
        array = group[name]
        if not isinstance(array, zarr.Array):
            raise KeyError(name)
        arrays.append(array)
    return tuple(arrays)


def _matrix_name(number: int) -> str:
    """The name of a store's matrix of that number, from 0 on."""
    return f"similarity_{number}" if number else "similarity"


def vectors(
    store: Artefact, side: Side, length: int, digests: Digests = digest.of_files
) -> np.ndarray:
    """Map the vectors of one side, float32 [length, d], after comparing them and the ids with their
    digests.
    """
    import zarr

    from pipeline.foundation.evaluation.retrieval.zarr_matrix import refuse_missing
    from pipeline.foundation.files.zarr_arrays import checked

    name = f"{side}_embeddings"
    path = store.folder
    with refusing(
        (FileNotFoundError, ValueError),
        f"{path}: holds no embeddings; name the store of a single head",
    ):
        array = checked(zarr.open_array(path / name, mode="r", zarr_format=3), f"{path}/{name}")
    if array.shape[0] != length:
        raise InputError(f"{path}/{name}: {array.shape[0]} vectors for {length} ids; make it again")
    refuse_missing(array, f"embeddings {name}")
    for stored in (*IDS, name):
        if store.record.contents.get(stored) != digest.of_folder(path / stored, digests):
            raise InputError(
                f"{path}/{stored}: has changed since it was written; put it back, or delete {path} and make "
                "it again"
            )
    return np.memmap(_bytes_of(path / name), array.dtype, "r", shape=array.shape)


def divided(scores: Scores, method: str = "mean") -> tuple[list[Similarity], Matrices | None]:
    """Divide scores into the matrices that a store holds, and how they are fused when they are
    read.
    """
    if isinstance(scores, systems.fusion.combining.PerQuery):
        stored: list[Any] = []
        counts: list[int] = []
        for member in scores.sources:
            of_member = _of_directions(member)
            stored += of_member
            counts.append(len(of_member))
        if max(counts, default=1) == 1:
            counts = []
        return stored, Matrices(method=method, weights=list(scores.weights), each=counts)
    stored = _of_directions(scores)
    if len(stored) == 1:
        return stored, None
    return stored, Matrices(method=DIRECTIONS, weights=[1.0, 1.0])


def _of_directions(scores: Any) -> list[Any]:
    """The matrices of both directions, or the one that is of both."""
    if isinstance(scores, Directions):
        return [scores.both["i2t"], scores.both["t2i"]]
    return [scores]


def begin(
    draft: Draft, arrays: Mapping[str, np.ndarray], made: Made, fusion: Matrices | None = None
) -> zarr.Group:
    """Write the facts and the first arrays of a store; `fusion` is that of `divided`. More arrays
    may follow.
    """
    import zarr

    draft.facts |= made.recorded()
    if fusion is not None:
        draft.facts[MATRICES] = fusion.recorded()
    group = zarr.create_group(draft.folder, zarr_format=3)
    for name, values in arrays.items():
        array = group.create_array(
            name,
            shape=values.shape,
            dtype=values.dtype,
            chunks=values.shape,
            compressors=None,
            filters=None,
            config={"write_empty_chunks": True},
        )
        array[:] = values
    return group


def ids_of(pool: Split | Items) -> dict[str, Ids]:
    """The arrays of `IDS` of a pool."""
    return {name: np.asarray(getattr(pool, name), np.int64) for name in IDS}


def write_products(
    draft: Draft,
    images: np.ndarray,
    captions: np.ndarray,
    pool: Split | Items,
    made: Made,
    progress: Progress = lambda rows: None,
) -> None:
    """Write unit vectors, float32 [I, d] and [C, d], and the matrix of their inner products.

    Products are summed in float64 and rounded once, so that equal vectors have equal similarities
    at any position.
    """
    write(
        draft,
        [retrieval.Embeddings(images, captions, double=True)],
        pool,
        made,
        progress=progress,
        image_embeddings=images,
        caption_embeddings=captions,
    )


def write(
    draft: Draft,
    matrices: Sequence[Similarity],
    pool: Split | Items,
    made: Made,
    fusion: Matrices | None = None,
    progress: Progress = lambda rows: None,
    precision: npt.DTypeLike = np.float32,
    **embeddings: np.ndarray,
) -> None:
    """Write one matrix of a pool, or with `fusion` one or two for each member, and perhaps
    vectors.
    """
    if (fusion is None) != (len(matrices) == 1):
        raise ValueError(f"{len(matrices)} matrices with fusion {fusion}")
    shape = (len(pool.image_ids), len(pool.caption_ids))
    images, captions = shape
    for source in matrices:
        if source.shape != shape:
            raise InputError(
                f"a matrix of {source.shape} for {images} image and {captions} caption ids"
            )
    group = begin(draft, ids_of(pool) | embeddings, made, fusion)
    chunks = (min(ROWS, images), min(COLUMNS, captions))
    for number, source in enumerate(matrices):
        # A chunk that is missing reads back as NaN, which is refused.
        matrix = group.create_array(
            _matrix_name(number),
            shape=shape,
            dtype=precision,
            chunks=chunks,
            compressors=None,
            filters=None,
            fill_value=float("nan"),
        )
        for rows, columns in cut(shape, *chunks):
            matrix[rows, columns] = source.block(rows, columns)
            if columns.stop == captions:
                progress(number * images + rows.stop)


@contextmanager
def writing_vectors(
    draft: Draft, splits: Sequence[Split | Items], dimension: int, made: Made
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Write the vectors of splits: the block fills two memory-mapped arrays, float32 [I, d] and [C,
    d].
    """
    first = 0
    owner = []
    for split in splits:
        owner.append(np.where(split.caption_image < 0, NO_IMAGE, split.caption_image + first))
        first += len(split.image_ids)
    ids = {
        "image_ids": np.concatenate([split.image_ids for split in splits]),
        "caption_ids": np.concatenate([split.caption_ids for split in splits]),
        "caption_image": np.concatenate(owner),
    }
    ids = {name: values.astype(np.int64) for name, values in ids.items()}
    group = begin(draft, ids, made)
    maps = []
    for side in get_args(Side):
        name = f"{side}_embeddings"
        shape = (len(ids[f"{side}_ids"]), dimension)
        group.create_array(
            name, shape=shape, dtype="float32", chunks=shape, compressors=None, filters=None
        )
        file = _bytes_of(draft.folder / name)
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic.reserve(file, 4 * prod(shape))
        maps.append(np.memmap(file, np.float32, "r+", shape=shape))
    yield maps[0], maps[1]
    for embeddings in maps:
        embeddings.flush()


def _bytes_of(array: Path) -> Path:
    """The only chunk of a matrix: without a codec it is the array's bytes as they are."""
    return array / "c" / "0" / "0"
