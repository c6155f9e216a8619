"""Noisy correspondences: training captions that are paired with other images than their own.

As in NCR (Huang et al., NeurIPS 2021), DECL (Qin et al., ACM MM 2022) and CRCL (Qin et al., NeurIPS 2023): a share of
the training captions exchange their images at random. Val and test stay as they are.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from pipeline.manifest import Split
from pipeline.parts.errors import InputError
from pipeline.settings import Noise

DOMAIN = 3_141  # keeps these draws apart from those of batches
TOLERANCE = 0.02
"""Of the share of an index. Beside it, one shuffled caption of each I gets its own of I images again by chance."""


def mismatch(split: Split, noise: Noise | None) -> Split:
    """Pair captions with other images, as the setting says; None changes nothing."""
    if noise is None:
        return split
    own = split.caption_image
    if noise.index is None:
        return replace(split, caption_image=drawn(own, noise.share, noise.seed))
    pairs = indexed(split, Path(noise.index))
    found = float((pairs != own).mean())
    if abs(found - noise.share) > TOLERANCE + 2 / len(split.image_ids):
        raise InputError(f"{noise.index}: gives {found:.1%} of the captions another image, the recipe's noise says "
                         f"share {noise.share}; name the index of that share")
    return replace(split, caption_image=pairs)


def drawn(caption_image: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Shuffle the images, int64 [C], of a share of the captions among these captions, as NCR and CRCL do.

    The captions of a smaller share are among those of a larger one. A few get an image of their own again.
    """
    count = len(caption_image)
    chosen = np.random.default_rng((seed, DOMAIN)).permutation(count)[:int(share * count)]
    pairs = caption_image.copy()
    pairs[chosen] = np.random.default_rng((seed, DOMAIN, len(chosen))).permutation(caption_image[chosen])
    return pairs


def indexed(split: Split, path: Path) -> np.ndarray:
    """Read each caption's image, int64 [C], from an index file, as the released codes write it with numpy.

    It holds [C], each caption's image (NCR, CRCL); or [I], the image that takes each image's place with its captions
    (DECL).
    """
    try:
        index = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError):  # numpy's own text advises to load what a pickle holds
        raise InputError(f"{path}: not readable as an array of numbers") from None
    images, captions = len(split.image_ids), len(split.captions)
    if not isinstance(index, np.ndarray) or index.ndim != 1 or index.dtype.kind not in "iu" \
            or len(index) not in (images, captions):
        got = f"{index.dtype} {list(index.shape)}" if isinstance(index, np.ndarray) else "several arrays"
        raise InputError(f"{path}: expected integers [{captions}], an image for each training caption, or [{images}], "
                         f"one for each training image, got {got}")
    index = np.asarray(index, np.int64)
    if index.min() < 0 or index.max() >= images:
        raise InputError(f"{path}: expected images from 0 to {images - 1}, got {index.min()} to {index.max()}")
    return index if len(index) == captions else index[split.caption_image]
