"""One split: its images and captions, and parts of it by images or languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from pipeline.foundation.parts.errors import InputError

if TYPE_CHECKING:
    import numpy as np

SPLITS = ("train", "val", "test")


class SplitName(str):
    """The name of a split, or of several as one: train+test."""

    __slots__ = ("parts",)
    parts: tuple[str, ...]  # the splits

    def __new__(cls, name: str) -> Self:
        """Take a name; of several splits they are joined by +."""
        made = super().__new__(cls, name)
        made.parts = tuple(name.split("+"))
        return made

    @classmethod
    def of(cls, parts: Iterable[str]) -> Self:
        """The name of several splits, the parts, as one."""
        return cls("+".join(parts))


@dataclass(frozen=True)
class Split:
    """One split with I images and C captions."""

    # Texts are arrays of numpy's StringDType, which hold bytes: five million Python strings fill
    # 500 MB.

    name: str  # "train", "val" or "test"
    store_rows: np.ndarray  # int64 [I], the images' rows in the manifest and in each feature store
    image_ids: np.ndarray  # int64 [I]
    caption_ids: np.ndarray  # int64 [C]
    # int64 [C], each caption's image as a row of image_ids; -1 for no image
    caption_image: np.ndarray
    captions: np.ndarray  # StringDType [C], the texts
    # str [C], each caption's language; None if the manifest has none
    languages: np.ndarray | None = None
    # Their further inputs by column, StringDType [C] each, see `CAPTION_INPUTS`
    caption_inputs: Mapping[str, np.ndarray] = field(default_factory=dict)

    def pieces(self, images: int) -> Iterator[Split]:
        """The split in pieces of so many images in order, with their captions."""
        import numpy as np

        count = len(self.image_ids)
        image_of_caption = np.where(self.caption_image < 0, count - 1, self.caption_image)
        captions_by_image = np.argsort(image_of_caption, kind="stable")
        first_images = np.arange(0, count, images)
        caption_cuts = np.searchsorted(image_of_caption[captions_by_image], [*first_images, count])
        starts = caption_cuts[:-1]
        stops = caption_cuts[1:]
        for first, start, stop in zip(first_images.tolist(), starts, stops, strict=True):
            rows = np.arange(first, min(first + images, count))
            captions = np.sort(captions_by_image[start:stop])
            yield self._take(rows, captions)

    def only(self, keep: np.ndarray) -> Split:
        """The split with the images to keep, bool [I], and their captions."""
        from pipeline.foundation.evaluation.retrieval.owners import of_owners

        if keep.all():
            return self
        keep_caption = of_owners(keep, self.caption_image, missing=True)
        return self._take(keep.nonzero()[0], keep_caption.nonzero()[0])

    def with_images(self) -> Split:
        """The split without the captions that belong to no image."""
        return self.without_captions(self.caption_image < 0)

    @property
    def has_caption(self) -> np.ndarray:
        """Whether each image has a caption, bool [I]."""
        import numpy as np

        owners = self.caption_image[self.caption_image >= 0]
        captions_of_image = np.bincount(owners, minlength=len(self.image_ids))
        return captions_of_image > 0

    def of_pairs(self) -> Split:
        """The images that have a caption and the captions that belong to one: those from which
        heads learn.
        """
        return self.with_images().only(self.has_caption)

    def without_captions(self, leave_out: np.ndarray) -> Split:
        """The split without the captions to leave out, bool [C]; all images stay."""
        import numpy as np

        if not leave_out.any():
            return self
        return self._take(np.arange(len(self.image_ids)), (~leave_out).nonzero()[0])

    def in_languages(self, names: Sequence[str]) -> Split:
        """The captions in these languages, by their names, and their images; InputError if there
        are none in one.
        """
        import numpy as np

        if not names:
            return self
        languages = self.languages
        if languages is None:
            languages = np.array([], str)
        present_languages = sorted(set(languages.tolist()))
        missing_languages = [name for name in names if name not in present_languages]
        if missing_languages:
            language_choice = "its manifest has no column language"
            if present_languages:
                language_choice = f"there are: {', '.join(present_languages)}"
            raise InputError(
                f"the split {self.name} has no captions in the language {missing_languages[0]!r}; {language_choice}"
            )
        captions = np.flatnonzero(np.isin(languages, list(names)))
        images = np.unique(self.caption_image[captions])
        return self._take(images[images >= 0], captions)

    def _take(self, images: np.ndarray, captions: np.ndarray) -> Split:
        """Keep some images and some of their captions, both int64 and ascending."""
        from pipeline.foundation.evaluation.retrieval.owners import renumbered

        caption_image = renumbered(self.caption_image[captions], images, len(self.image_ids))
        inputs = {column: values[captions] for column, values in self.caption_inputs.items()}
        part_of_split = Split(
            self.name,
            self.store_rows[images],
            self.image_ids[images],
            self.caption_ids[captions],
            caption_image,
            self.captions[captions],
            caption_inputs=inputs,
        )
        if self.languages is not None:
            part_of_split = replace(part_of_split, languages=self.languages[captions])
        return part_of_split
