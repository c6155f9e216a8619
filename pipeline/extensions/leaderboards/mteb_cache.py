"""The folder in which mteb keeps the vectors of a task, found by the content of texts and images.

query/, document/     what was encoded as queries, and as documents
    vectors.npy       float32 [rows, D] without NumPy's header; rows that are not used yet are zeros
    index.json        SHA-256 of a text or of an image's pixels -> its row
    dimension         D, as text
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.foundation.evaluation.retrieval import Collection, Direction, Embeddings, Side
from pipeline.foundation.evaluation.retrieval.similarity import Directions
from pipeline.foundation.files import parsing, regular
from pipeline.foundation.parts.errors import InputError, first_line, refusing
from pipeline.judge.systems.scores.foreign.file_sets import FileSet, Typed
from pipeline.judge.systems.scores.foreign.identified import SIDES, Scores, in_words
from pipeline.judge.systems.scores.judged import Columns
from stages.progress import Progress

if TYPE_CHECKING:
    from PIL import Image

    from pipeline.foundation.manifest import Manifest, Split

ROLES = ("query", "document")
VECTORS = "vectors.npy"
INDEX = "index.json"
DIMENSION = "dimension"
BYTES = 4  # of a float32
# Direction -> what is encoded as images and as captions.
WAYS: dict[Direction, dict[Side, str]] = {
    "t2i": {"image": "document", "caption": "query"},
    "i2t": {"image": "query", "caption": "document"},
}
ENCODED = {"query": "queries", "document": "documents"}
QUERIES = {"t2i": "captions are queries", "i2t": "images are queries"}
# Side -> why its content may be another one than the cache's.
REASONS = {
    "image": "the data set's image files were resized or saved anew, or are of another split",
    "caption": "the texts were changed, mteb adds an instruction, or they are of another split",
}


@dataclass(frozen=True)
class Cache:
    """The vectors of queries or of documents."""

    vectors: np.ndarray  # float32 [rows, D], memory-mapped
    row_of: dict[str, int]  # by the hash of the content

    @classmethod
    def read(cls, folder: Path) -> "Cache":
        """Read a folder and check its sizes."""
        for name in (VECTORS, INDEX, DIMENSION):
            if not (folder / name).is_file():
                raise InputError(
                    f"{folder}: holds no {name}; expected what mteb's NumpyCache writes, of queries and of documents"
                )
        vectors = _vectors(folder / VECTORS, _dimension(folder / DIMENSION))
        return cls(vectors, _rows(folder / INDEX, len(vectors)))

    def of(self, hashes: Sequence[str]) -> np.ndarray:
        """The vectors of some contents, all of which are there."""
        return self.vectors[[self.row_of[content] for content in hashes]]


class EmbeddingCache(FileSet):
    """mteb's vectors of a task; which text and which image belong together, the manifest says."""

    @classmethod
    def recognises(cls, typed: Typed) -> bool:
        path, _ = typed[0]
        if len(typed) > 1:
            return False
        return _is_one_side(path) or any((path / role / INDEX).is_file() for role in ROLES)

    def scores(self, typed: Typed, columns: Columns, normalise: bool) -> Scores:
        ((path, parts),) = typed
        if parts:
            raise InputError(f"{path}: holds one set of vectors; leave out :{':'.join(parts)}")
        if _is_one_side(path):
            raise InputError(
                f"{path}: is one side of mteb's embedding cache; name the folder that it is in, {path.parent}"
            )
        if columns.manifest is None:
            raise InputError(
                f"{path}: is mteb's embedding cache, which has no ids; name the --manifest of its images and "
                "captions"
            )
        # Every kind of file set is imported to recognise one, also where Pillow is not installed.
        from pipeline.foundation.manifest import Manifest

        caches = {role: Cache.read(path / role) for role in ROLES}
        manifest = Manifest.load(columns.manifest)
        manifest.require_photographs("mteb's embedding cache")
        split = manifest.split(columns.split or "test")
        hashes = _hashes(manifest, split, columns.images)
        lacking = {way: _lacking(caches, way, hashes[way]) for way in WAYS}
        complete = [way for way in WAYS if not any(lacking[way].values())]
        if not complete:
            raise InputError(f"{path}: {_in_words(lacking, split)}")
        products = {}
        with refusing(InputError, lambda error: f"{path}: {error}"):
            for way in complete:
                of_images, of_captions = (
                    caches[WAYS[way][side]].of(hashes[way][side]) for side in SIDES
                )
                products[way] = Embeddings(of_images, of_captions, normalise=normalise)
        source: Any = products[complete[0]]
        if len(complete) > 1:
            source = Directions(products["i2t"], products["t2i"])
        read_as = in_words(
            f"mteb's embedding cache: {len(split.image_ids):,} images and {len(split.caption_ids):,} captions, found "
            "by their content, inner products in float32",
            " and ".join(QUERIES[way] for way in complete),
        )
        pool = Collection(split.image_ids, split.caption_ids, split.caption_image)
        return Scores(source, pool, True, read_as, of_vectors=True)


def _is_one_side(path: Path) -> bool:
    """Whether a folder is that of queries or of documents alone."""
    return all((path / name).is_file() for name in (VECTORS, INDEX, DIMENSION))


def _dimension(file: Path) -> int:
    """The size of a vector."""
    text = _text(file).strip()
    if not re.fullmatch(r"[1-9]\d{0,6}", text, re.ASCII):
        raise InputError(f"{file}: is {text[:40]!a}, expected the size of a vector, such as 512")
    return int(text)


def _vectors(file: Path, dimension: int) -> np.ndarray:
    """Map the vectors of a file, whose size has to be whole rows."""
    with refusing(OSError, lambda error: f"cannot read {file}: {error.strerror or error}"):
        regular.require(file)
        size = file.stat().st_size
        if not size or size % (BYTES * dimension):
            raise InputError(
                f"{file}: has {size:,} bytes, no whole rows of {dimension:,} float32 numbers: it is cut short, or "
                f"{DIMENSION} is of another model"
            )
        return np.memmap(file, "<f4", "r", shape=(size // (BYTES * dimension), dimension))


def _rows(file: Path, count: int) -> dict[str, int]:
    """The row of each content, all of which have to be there."""
    with refusing(ValueError, lambda error: f"{file}: is damaged ({first_line(error)})"):
        index = parsing.from_json(_text(file))
    if not isinstance(index, dict) or not index:
        raise InputError(f"{file}: expected the row of each content by its hash")
    for content, row in index.items():
        if type(row) is not int or not 0 <= row < count:
            raise InputError(
                f"{file}: gives {content[:12]!a} the row {str(row)[:40]}, expected 0 to {count - 1:,}, the rows of "
                f"{VECTORS}"
            )
    return index


def _text(file: Path) -> str:
    with (
        refusing(OSError, lambda error: f"cannot read {file}: {error.strerror or error}"),
        refusing(UnicodeDecodeError, f"{file}: is damaged: it is no text"),
    ):
        return regular.text(file)


def _hashes(
    manifest: "Manifest", split: "Split", folder: Path | None
) -> dict[Direction, dict[Side, list[str]]]:
    """What a split's images and captions are called in a cache, by direction and side."""
    texts = split.captions.tolist()
    of_images = _of_files(manifest, split, folder)
    return {
        "t2i": {"image": of_images, "caption": [_of_text(text) for text in texts]},
        # mteb takes spaces from the ends of documents, and leaves queries as they are.
        "i2t": {"image": of_images, "caption": [_of_text(text.strip()) for text in texts]},
    }


def _of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _of_files(manifest: "Manifest", split: "Split", folder: Path | None) -> list[str]:
    """The hash of each image of a split."""
    hashes = []
    files = manifest.gallery(folder, split.store_rows.tolist())
    with Progress("hash the images", "image", len(files)) as bar:
        for each in files:
            hashes.append(_of_file(Path(each.place)))
            bar.update()
    return hashes


def _of_file(file: Path) -> str:
    from pipeline.foundation.files import images

    with refusing(images.ImageError, lambda error: f"{file}: {error}"):
        return of_image(images.upright(file))


def of_image(image: "Image.Image") -> str:
    """Hash the pixels of an image and what tells their colours, as mteb does."""
    transparency = image.info.get("transparency")
    if isinstance(transparency, bytes):
        transparency = list(transparency)
    described = [image.mode, image.size, image.getpalette("RGBA"), transparency]
    content = hashlib.sha256(json.dumps(described, separators=(",", ":")).encode())
    content.update(b"\0")
    content.update(image.tobytes())
    return content.hexdigest()


def _lacking(
    caches: Mapping[str, Cache], way: Direction, hashes: Mapping[Side, Sequence[str]]
) -> dict[Side, int]:
    """How many images and captions the caches lack, as which one direction has them."""
    lacking = {}
    for side in SIDES:
        row_of = caches[WAYS[way][side]].row_of
        lacking[side] = sum(content not in row_of for content in hashes[side])
    return lacking


def _in_words(lacking: Mapping[Direction, Mapping[Side, int]], split: "Split") -> str:
    """Say what the caches lack in the direction in which they lack less, and why that may be."""
    way = min(lacking, key=lambda each: sum(lacking[each].values()))
    sizes = {"image": len(split.image_ids), "caption": len(split.caption_ids)}
    missing = [side for side in SIDES if lacking[way][side]]
    counts = " and ".join(
        f"{lacking[way][side]:,} of the {sizes[side]:,} {side}s as {ENCODED[WAYS[way][side]]}"
        for side in missing
    )
    reasons = "; ".join(REASONS[side] for side in missing)
    return f"lacks {counts} of the manifest's {split.name} split ({QUERIES[way]}): {reasons}"
