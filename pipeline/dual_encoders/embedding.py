"""Embed some images and their captions with a dual encoder."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pipeline.dual_encoders.base import DualEncoder, Pixels
from pipeline.files import images
from pipeline.files.gallery_file import GalleryFile
from pipeline.parts.errors import InputError


class Piece(NamedTuple):
    """Some images with their captions."""

    images: np.ndarray  # unit vectors, float32 [I, d]
    captions: np.ndarray  # unit vectors, float32 [C, d]
    cut: np.ndarray  # bool [C], whether the encoder read only the beginning
    photographs: np.ndarray  # [I], SHA-256 of the images' files in hexadecimal digits


def embed_part(encoder: DualEncoder, files: Sequence[Path], captions: Sequence[str], batch_size: int,
               wanted: Callable[[], bool] = lambda: True) -> Piece:
    """Embed some images and their captions."""
    vectors, photographs = [], []
    with ThreadPoolExecutor() as threads:  # decoding and resizing let go of Python's lock
        for start in range(0, len(files), batch_size):
            if not wanted():
                raise InputError("the run that wanted these images is over")
            found = list(threads.map(lambda file: prepared(encoder, file), files[start:start + batch_size]))
            vectors.append(encoder.embed_images([pixels for pixels, _ in found]))
            photographs += [photograph for _, photograph in found]
    return Piece(np.concatenate(vectors), embed_captions(encoder, captions, batch_size),
                 np.array(encoder.is_cut(captions)), np.array(photographs))


def prepared(encoder: DualEncoder, file: Path) -> tuple[Pixels, str]:
    """Read and prepare an image: the network's inputs, and SHA-256 of the file."""
    try:
        content = GalleryFile(file).content()
        return encoder.prepare(images.decode(file, content)), hashlib.sha256(content).hexdigest()
    except (OSError, images.ImageError) as error:
        said = error.strerror or error if isinstance(error, OSError) else error
        raise InputError(f"{file}: {said}; mend it, or leave the image out of the manifest") from None


def embed_captions(encoder: DualEncoder, captions: Sequence[str], batch_size: int) -> np.ndarray:
    """Embed captions: unit vectors, float32 [C, d]. Those of like length go together, with less padding."""
    order = sorted(range(len(captions)), key=lambda row: len(captions[row]))
    found = np.concatenate([encoder.embed_captions([captions[row] for row in order[start:start + batch_size]])
                            for start in range(0, len(order), batch_size)])
    vectors = np.empty_like(found)
    vectors[order] = found
    return vectors
