"""Which captions are trained on, and in which order an epoch takes them."""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from pipeline.manifest import Split
from pipeline.parts.errors import InputError


def subset(split: Split, images: int | None, seed: int) -> Split:
    """Keep some images (sample efficiency: Geigle et al., figure 3), chosen by a hash of the seed and the image's id.

    The choice does not depend on the images' order, and a smaller subset lies within a larger one of the same seed.
    """
    if images is None:
        return split
    if images > len(split.image_ids):
        raise InputError(f"training.NAME.images: expected at most the {len(split.image_ids)} images of {split.name}, "
                         f"got {images}")
    hashes = np.array([int.from_bytes(blake2b(f"{seed} {image}".encode(), digest_size=8).digest(), "big")
                       for image in split.image_ids.tolist()], np.uint64)
    keep = np.zeros(len(hashes), dtype=bool)
    keep[np.argsort(hashes, kind="stable")[:images]] = True
    return split.only(keep)


def require_languages(split: Split, sampling: str) -> None:
    """Check that a split's captions can be balanced."""
    languages = [] if split.languages is None else np.unique(split.languages).tolist()
    if sampling == "balanced" and len(languages) < 2:
        raise InputError(f"sampling balanced needs training captions in several languages, there are: "
                         f"{', '.join(languages) or 'none that the manifest names'}; set the recipe's sampling to "
                         "uniform")


def order(split: Split, sampling: str, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw an epoch's order.

    `uniform`: every caption once, as Geigle et al. train on Multi30K, so a language counts as much as it has captions.
    `balanced`: as many captions in all, equally many of each language, of one with few captions all of them several
    times.
    """
    if sampling == "uniform":
        return rng.permutation(len(split.captions))
    assert split.languages is not None
    names, code = np.unique(split.languages, return_inverse=True)
    share = -(-len(code) // len(names))
    drawn = [np.resize(rng.permutation(np.flatnonzero(code == each)), share) for each in range(len(names))]
    return rng.permutation(np.concatenate(drawn))


def stretch(split: Split, sampling: str, seed: int, start: int, count: int) -> npt.NDArray[np.int64]:
    """Draw a part of an endless order that takes all captions again and again, each time in another order."""
    length = len(order(split, sampling, np.random.default_rng((seed, 0))))
    passes = range(start // length, (start + count - 1) // length + 1)
    drawn = np.concatenate([order(split, sampling, np.random.default_rng((seed, number))) for number in passes])
    return drawn[start - passes.start * length:][:count]
