"""Which captions are trained on, with which images, and in which order an epoch takes them."""

import math
from collections.abc import Collection
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from pipeline.foundation.evaluation.retrieval import Ids
from pipeline.foundation.evaluation.retrieval.owners import of_owners
from pipeline.foundation.files import npy
from pipeline.foundation.manifest import Split
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Noise

DOMAIN = 3_141  # keeps these draws apart from those of batches
# How far the share of an index may be from the recipe's. In addition, with I images one in I
# shuffled captions gets its own image again by chance.
TOLERANCE = 0.02


def subset(split: Split, images: int | None, seed: int) -> Split:
    """Keep some images (sample efficiency: Geigle et al., figure 3), chosen by a hash of the seed
    and the image's id.

    The choice does not depend on the images' order, and a smaller subset is part of a larger one of
    the same seed.
    """
    if images is None:
        return split
    if images > len(split.image_ids):
        raise InputError(
            f"training.NAME.images: expected at most {len(split.image_ids)} of {split.name}, got {images}"
        )
    hashes = np.array([_hash(seed, image) for image in split.image_ids.tolist()], np.uint64)
    smallest = np.argsort(hashes, kind="stable")[:images]
    chosen = np.zeros(len(hashes), dtype=bool)
    chosen[smallest] = True
    return split.only(chosen)


def _hash(seed: int, image: int) -> int:
    digest = blake2b(f"{seed} {image}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def require_languages(split: Split, sampling: str) -> None:
    """Check that a split's captions can be balanced."""
    languages = []
    if split.languages is not None:
        languages = np.unique(split.languages).tolist()
    if sampling == "balanced" and len(languages) < 2:
        raise InputError(
            f"sampling balanced needs training captions in several languages, there are: "
            f"{', '.join(languages) or 'none that the manifest names'}; set the recipe's sampling to "
            "uniform"
        )


def order(split: Split, sampling: str, rng: np.random.Generator) -> Ids:
    """Draw an epoch's order.

    `uniform`: every caption once, as Geigle et al. train on Multi30K, so a language counts as much
        as it has captions.
    `balanced`: as many captions in all, equally many of each language; those of a language with few
        captions are repeated.
    """
    if sampling == "uniform":
        return rng.permutation(len(split.captions))
    assert split.languages is not None
    names, code = np.unique(split.languages, return_inverse=True)
    share = math.ceil(len(code) / len(names))
    drawn = []
    for number in range(len(names)):
        of_language = rng.permutation(np.flatnonzero(code == number))
        drawn.append(np.resize(of_language, share))
    return rng.permutation(np.concatenate(drawn))


def stretch(split: Split, sampling: str, seed: int, start: int, count: int) -> Ids:
    """Draw a part of an endless order that takes all captions again and again, each time in another
    order.
    """
    length = len(order(split, sampling, np.random.default_rng((seed, 0))))
    passes = range(start // length, (start + count - 1) // length + 1)
    drawn = []
    for number in passes:
        drawn.append(order(split, sampling, np.random.default_rng((seed, number))))
    first = start - passes.start * length
    return np.concatenate(drawn)[first:][:count]


def mismatch(split: Split, noise: Noise | None) -> Split:
    """Pair a share of the training captions with other images, as the recipe's noise says; None
    changes nothing.

    As in NCR (Huang et al., NeurIPS 2021), DECL (Qin et al., ACM MM 2022) and CRCL (Qin et al.,
    NeurIPS 2023).
    """
    if noise is None:
        return split
    owners = split.caption_image
    if noise.index is None:
        return replace(split, caption_image=drawn(owners, noise.share, noise.seed))
    pairs = indexed(split, Path(noise.index))
    share = float((pairs != owners).mean())
    if abs(share - noise.share) > TOLERANCE + 2 / len(split.image_ids):
        raise InputError(
            f"{noise.index}: gives {share:.1%} of the captions another image, the recipe's noise says "
            f"share {noise.share}; name the index of that share"
        )
    return replace(split, caption_image=pairs)


def drawn(caption_image: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Shuffle the images, int64 [C], of a share of the captions among these captions, as NCR and
    CRCL do.

    The captions of a smaller share are among those of a larger one. A few get their own image
    again.
    """
    count = len(caption_image)
    choosing = np.random.default_rng((seed, DOMAIN))
    chosen = choosing.permutation(count)[: int(share * count)]
    shuffling = np.random.default_rng((seed, DOMAIN, len(chosen)))
    pairs = caption_image.copy()
    pairs[chosen] = shuffling.permutation(caption_image[chosen])
    return pairs


def indexed(split: Split, path: Path) -> np.ndarray:
    """Read each caption's image, int64 [C], from an index file, as the released codes write it with
    numpy.

    It holds [C], each caption's image (NCR, CRCL); or [I], for each image another one that gets its
    captions instead (DECL).
    """
    with (
        refusing(OSError, lambda error: f"{path}: {error.strerror or error}"),
        # numpy's own message advises to allow pickles
        refusing((ValueError, EOFError), f"{path}: not readable as an array of numbers"),
    ):
        index = npy.mapped(path)
    images = len(split.image_ids)
    captions = len(split.captions)
    if not _is_index(index, (images, captions)):
        got = "several arrays"
        if isinstance(index, np.ndarray):
            got = f"{index.dtype} {list(index.shape)}"
        raise InputError(
            f"{path}: expected integers [{captions}], an image for each training caption, or [{images}], "
            f"one for each training image, got {got}"
        )
    index = np.asarray(index, np.int64)
    if index.min() < 0 or index.max() >= images:
        raise InputError(
            f"{path}: expected images from 0 to {images - 1}, got {index.min()} to {index.max()}"
        )
    if len(index) == captions:
        return index
    return of_owners(index, split.caption_image)


def _is_index(index: object, lengths: Collection[int]) -> bool:
    """Whether it is one row of integers of one of these lengths."""
    if not isinstance(index, np.ndarray) or index.ndim != 1:
        return False
    return index.dtype.kind in "iu" and len(index) in lengths
