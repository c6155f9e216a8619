"""Which image an id of features or questions from elsewhere means."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pipeline.foundation.files import image_names
from pipeline.foundation.manifest.table import Manifest
from pipeline.foundation.parts.errors import InputError


def rows_of(ids: Sequence[str], manifest: Manifest, source: Path) -> list[int | None]:
    """The row of the manifest's image that each id of a source means; None for an id of no
    image.
    """
    find = finder(ids, manifest, source)
    return [find(text) for text in ids]


def finder(ids: Sequence[str], manifest: Manifest, source: Path) -> Callable[[str], int | None]:
    """Make a function that finds an image by its id."""
    # Code bases name images in three ways: by the file (`36979`, `COCO_val2014_000000000042.jpg`),
    # by the number in a COCO file's name (`42`; COCO 2017 names the same image `000000000042.jpg`),
    # or by the manifest's image_id (COCO's own, else Karpathy's imgid). A source uses one of them
    # throughout: the one that matches most of its ids.
    best_rows: list[int | None] = []
    files = manifest.images["file"].tolist()
    chosen_naming = None
    for naming in (image_names.by_name(files), image_names.by_number(files), by_image_id(manifest)):
        rows_of_ids = [_found(text, *naming) for text in ids]
        if best_rows and _known(rows_of_ids) == _known(best_rows) == len(ids):
            for text, row, best_row in zip(ids, rows_of_ids, best_rows, strict=True):
                if row is not None and row != best_row:
                    raise InputError(
                        f"{source}: its ids mean one image by file name and another by number or image "
                        f"id, the first {text!r}; name its images by their files with suffix, such as "
                        f"{files[row]}"
                    )
        if not best_rows or _known(rows_of_ids) > _known(best_rows):
            best_rows = rows_of_ids
            chosen_naming = naming
    if not _known(best_rows):
        first_id = next(iter(ids), None)
        image_id = manifest.images["image_id"][0]
        raise InputError(
            f"{source}: none of its {len(ids):,} ids is an image of {manifest.dataset} (the first is "
            f"{first_id!r}, the manifest's first image {files[0]}, id {image_id}); give the manifest of "
            "the images that it was made from"
        )
    assert chosen_naming is not None
    table, names = chosen_naming
    return lambda text: _found(text, table, names)


def _found(
    text: str, row_of_name: Mapping[str, int], names: Callable[[str], Iterable[str]]
) -> int | None:
    for name in names(text):
        if name in row_of_name:
            return row_of_name[name]
    return None


def _known(rows: list[int | None]) -> int:
    return sum(row is not None for row in rows)


def by_image_id(manifest: Manifest) -> tuple[dict[str, int], Callable[[str], Iterable[str]]]:
    """Match ids with the manifest's image_id: name -> row, and a function from an id to the names
    to look up.
    """
    row_of_id = {str(number): row for row, number in enumerate(manifest.images["image_id"])}
    return row_of_id, _as_number


def _as_number(text: str) -> tuple[str, ...]:
    """A whole number as it is written in full, or nothing for another text."""
    if re.fullmatch(r"-?\d{1,18}", text) is None:
        return ()
    return (str(int(text)),)
