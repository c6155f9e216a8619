"""Compare SCAN's ids and captions with the manifest's. Nothing else shows that both describe the same images."""

import unicodedata
from pathlib import Path

import numpy as np

from pipeline.features.importers import ids as image_ids
from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError

CAPTIONS = 5  # an image


def lines(path: Path) -> list[str]:
    """Read the lines of a text file."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; SCAN's layout has it beside the features") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    return [line.strip() for line in text.rstrip("\r\n").split("\n")] if text else []


def bare(caption: str) -> str:
    """Reduce a caption to lower-case letters and digits without accents: the released files hold tokenised captions.

    It gives letters and digits.
    """
    return "".join(char for char in unicodedata.normalize("NFKD", caption).casefold() if char.isalnum())


class TextCheck:
    """Finds the manifest's images by id and compares their captions.

    More than half of an image's captions must be the manifest's. Not all: the tokeniser of the released COCO files
    changed the spelling of some words ("colour" occurs in none of the 25,000 test captions).

    Args:
        manifest: What is compared with.
    """

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest
        self.row_of, self.name_of = image_ids.by_image_id(manifest)
        self.captions = manifest.table.groupby("image_id", sort=False)["caption"].agg(list).tolist()
        self.compared = self.unlike = 0

    def rows(self, ids_file: Path, ids: list[str], captions_file: Path, captions: list[str]) -> np.ndarray:
        """Find the manifest's row of each image: int64 [n]."""
        n = len(captions) // CAPTIONS
        step = len(ids) // n
        rows = np.empty(n, np.int64)
        for image in range(n):
            here = ids[image * step:(image + 1) * step]
            row = next((self.row_of[name] for name in self.name_of(here[0]) if name in self.row_of), None)
            if row is None:
                raise InputError(f"{ids_file}, line {image * step + 1}: expected an image id of "
                                 f"{self.manifest.dataset}, got {here[0]!r}; give the manifest of these images")
            if any(text != here[0] for text in here):
                raise InputError(f"{ids_file}: has an id a caption, expected the lines {image * step + 1} to "
                                 f"{(image + 1) * step} to be equal, got {', '.join(here)}")
            first = image * CAPTIONS
            self._compare(captions_file, first, captions[first:first + CAPTIONS], row)
            rows[image] = row
        place = dict(reversed([(row, image) for image, row in enumerate(rows.tolist())]))
        twice = next((image for image, row in enumerate(rows.tolist()) if place[row] != image), None)
        if twice is not None:
            raise InputError(f"{ids_file}, line {twice * step + 1}: the id {ids[twice * step]} stands in line "
                             f"{place[rows[twice]] * step + 1} too; an image has one place")
        return rows

    def _compare(self, file: Path, line: int, captions: list[str], row: int) -> None:
        known = {bare(caption) for caption in self.captions[row]}
        unlike = [place for place, caption in enumerate(captions) if bare(caption) not in known]
        self.compared += len(captions)
        self.unlike += len(unlike)
        if len(unlike) > len(captions) // 2:
            raise InputError(f"{file}, line {line + unlike[0] + 1}: {captions[unlike[0]]!r} is no caption of image "
                             f"{self.manifest.images['image_id'][row]} in the manifest, which has "
                             f"{self.captions[row][0]!r}; give the manifest of the data set that the features are of")

    def notes(self) -> list[str]:
        """Report captions with another spelling."""
        return [f"{self.unlike:,} of {self.compared:,} captions are spelt otherwise than in the manifest"
                ] if self.unlike else []
