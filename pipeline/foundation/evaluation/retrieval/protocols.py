"""Evaluation protocols by name: which images and captions are used, and whether the test set is cut
into folds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from pipeline.foundation.evaluation.retrieval.blocks import Ids
from pipeline.foundation.evaluation.retrieval.owners import numbered
from pipeline.foundation.parts.errors import InputError, counted


@dataclass(frozen=True)
class Protocol:
    """How a matrix is evaluated.

    Attributes:
        name: For results.
        images: The number of images that the matrix must have; None for any.
        captions_per_image: Every image that has captions must have at least so many, and only the
            first so many, in the order of the columns, are ranked; None for all.
        folds: The images are cut, in their order, into so many consecutive parts of one size; each
            is ranked alone and the numbers are averaged.
        same_text: Captions with the same text are one query, for which all their images are right;
            the caller merges them (`pipeline.judge.systems.scores.judged`).
        unpaired: Whether captions that belong to no image and images that have no caption are
            candidates, or are refused. Such captions are in every fold, an image is in its own.
            They are never queries. Where captions of one text are merged, an image may have lost
            its own, and images are not refused.
        captions_by_language: With captions in several languages, `captions_per_image` of each; {}
            where it is the same.
    """

    name: str
    images: int | None = None
    captions_per_image: int | None = None
    folds: int = 1
    captions_by_language: Mapping[str, int] = field(default_factory=dict)
    same_text: bool = False
    unpaired: Literal["candidates", "refused"] = "candidates"

    def of_language(self, name: str) -> "Protocol":
        """The protocol for the captions of the language of a name; InputError for a language that
        it does not have.
        """
        if not self.captions_by_language:
            return self
        if name not in self.captions_by_language:
            raise InputError(
                f"protocol {self.name} is of {', '.join(self.captions_by_language)}, received captions "
                f"in {name}: use protocol all"
            )
        captions = self.captions_by_language[name]
        return replace(self, captions_per_image=captions, captions_by_language={})

    def parts(self, caption_image: Ids, images: int) -> list[tuple[Ids, Ids]]:
        """Return for each fold the rows of its images and the columns of its captions, in their
        order.

        caption_image: int64 [C], each caption's of so many images, -1 for none; already checked.

        Raises:
            InputError: Where the protocol's rules are broken.
        """
        if self.images is not None and images != self.images:
            raise InputError(
                f"protocol {self.name} is defined for {self.images} images, received {images}: use "
                "protocol all, or select that split"
            )
        if self.folds < 1 or images % self.folds:
            raise InputError(
                f"protocol {self.name}: {counted(images, 'image')} cannot be cut into {self.folds} folds of one size"
            )
        counts = np.bincount(caption_image[caption_image >= 0], minlength=images)
        if self.unpaired == "refused":
            self._require_pairs(caption_image, counts)
        ranked = self._first_captions(caption_image, counts)
        if self.folds == 1:
            return [(np.arange(images), ranked)]
        size = images // self.folds
        owner = caption_image[ranked]
        fold = np.where(owner < 0, -1, owner // size)
        parts = []
        for number in range(self.folds):
            captions = ranked[(fold < 0) | (fold == number)]
            parts.append((np.arange(size) + size * number, captions))
        return parts

    def _require_pairs(self, caption_image: Ids, counts: Ids) -> None:
        without_image = int((caption_image < 0).sum())
        if without_image:
            raise InputError(
                f"protocol {self.name} ranks captions of its images alone, and {without_image} of "
                f"{len(caption_image)} captions belong to none of them: use protocol all"
            )
        without_caption = int((counts == 0).sum())
        if without_caption and not self.same_text:
            raise InputError(
                f"protocol {self.name} ranks images that have captions, and {without_caption} of {len(counts)} "
                "images have none: use protocol all"
            )

    def _first_captions(self, caption_image: Ids, counts: Ids) -> Ids:
        """The columns that are ranked; counts: int64 [I], how many captions each image has."""
        if self.captions_per_image is None:
            return np.arange(len(caption_image))
        few = (counts > 0) & (counts < self.captions_per_image)
        if few.any():
            row = int(np.argmax(few))
            raise InputError(
                f"protocol {self.name} ranks {self.captions_per_image} captions of every image, but "
                f"image row {row} has {counts[row]}"
            )
        number = numbered(caption_image, len(counts))
        return np.flatnonzero(number < self.captions_per_image)


# Karpathy & Fei-Fei (CVPR 2015) set the splits; five captions an image since Hodosh et al. (JAIR
# 2013).
ALL = Protocol("all")
FLICKR30K_1K = Protocol("flickr30k_1k", images=1000, captions_per_image=5, unpaired="refused")
COCO_5K = Protocol("coco_5k", images=5000, captions_per_image=5, unpaired="refused")
# "1K" on COCO is the mean over five folds of the 5,000 test images, as in Faghri et al. (VSE++,
# BMVC 2018).
COCO_1K_5FOLD = Protocol(
    "coco_1k_5fold", images=5000, captions_per_image=5, folds=5, unpaired="refused"
)
# Multi30K's four languages and its test split of 2016 as Geigle et al. (TACL 2022, section 4) use
# them.
MULTI30K_2016 = Protocol(
    "multi30k_2016",
    images=1000,
    captions_per_image=12,
    unpaired="refused",
    captions_by_language={"en": 5, "de": 5, "fr": 1, "cs": 1},
)
# MSR-VTT and VATEX as HGR (Chen et al., CVPR 2020) and VSE∞'s Table 4 rank them: captions are a set
# of texts, and a text that several clips have is one query with several right clips. 1k-A: Yu et
# al., ECCV 2018.
MSRVTT_FULL = Protocol("msrvtt_full", images=2990, same_text=True, unpaired="refused")
MSRVTT_1KA = Protocol("msrvtt_1ka", images=1000, captions_per_image=1, unpaired="refused")
VATEX_1500 = Protocol("vatex_1500", images=1500, same_text=True, unpaired="refused")


def consecutive_captions(shape: tuple[int, int], captions_per_image: int = 5) -> Ids:
    """The image of each column, int64 [C], where each has `captions_per_image`, one after another
    in the images' order.

    shape: images and captions of the matrix.

    Raises:
        InputError: Unless C = I * captions_per_image.
    """
    images, captions = shape
    if not isinstance(captions_per_image, int | np.integer):
        raise InputError(
            f"captions_per_image: expected a whole number, received {type(captions_per_image).__name__}; "
            "vectors are given as one pair, (images, captions)"
        )
    if captions_per_image < 1 or captions != images * captions_per_image:
        what = "say how many captions each image has, or which image each caption is of"
        if images == captions * captions_per_image:
            what = "the matrix is transposed, save one row an image"
        raise InputError(
            f"{counted(captions_per_image, 'caption')} for each of {counted(images, 'image')} make "
            f"{images * captions_per_image} columns, received {captions}: {what}"
        )
    return np.repeat(np.arange(images), captions_per_image)
