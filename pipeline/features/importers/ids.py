"""Match the ids of a source with the manifest's images.

Code bases name images in three ways: by the file (`36979`, `COCO_val2014_000000000042.jpg`), by the number in a COCO
file's name (`42`; COCO 2017 names the same image `000000000042.jpg`), or by the manifest's image_id (COCO's own,
else Karpathy's imgid). A source uses one of them throughout: the one that matches most of its ids.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePosixPath

from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError

NUMBERED = re.compile(r"(?:COCO_[a-z]+\d{4}_)?(\d{1,18})")


def rows_of(ids: Sequence[str], manifest: Manifest, source: Path) -> list[int | None]:
    """Find the image that each id means.

    It gives for each id a row of the manifest, None for an id of no image of the manifest.
    """
    best: list[int | None] = []
    by_name = _unshared(manifest, lambda path: (str(path), path.with_suffix("").as_posix(), path.name, path.stem)), \
        lambda text: (text, PurePosixPath(text).name)
    by_number = _unshared(manifest, lambda path: _number(path.stem)), _number
    for table, names in (by_name, by_number, by_image_id(manifest)):
        found = [next((table[name] for name in names(text) if name in table), None) for text in ids]
        if best and found != best and _known(found) == _known(best) == len(ids):
            at, meant = next((place, row) for place, row in enumerate(found)
                             if row is not None and row != best[place])
            raise InputError(f"{source}: its ids mean one image by file name and another by number or image id, the "
                             f"first {ids[at]!r}; name its images by their files with suffix, such as "
                             f"{manifest.images['file'][meant]}")
        if not best or _known(found) > _known(best):
            best = found
    if not _known(best):
        raise InputError(f"{source}: none of its {len(ids):,} ids is an image of {manifest.dataset} (the first is "
                         f"{next(iter(ids), None)!r}, the manifest's first image {manifest.images['file'][0]}, id "
                         f"{manifest.images['image_id'][0]}); give the manifest of the images that it was made from")
    return best


def _known(rows: list[int | None]) -> int:
    return sum(row is not None for row in rows)


def _unshared(manifest: Manifest, names_of: Callable[[PurePosixPath], Iterable[str]]) -> dict[str, int]:
    """Name -> row; a name that two files share names neither."""
    rows: dict[str, set[int]] = {}
    for row, file in enumerate(manifest.images["file"]):
        for name in names_of(PurePosixPath(file)):
            rows.setdefault(name, set()).add(row)
    return {name: found.pop() for name, found in rows.items() if len(found) == 1}


def by_image_id(manifest: Manifest) -> tuple[dict[str, int], Callable[[str], Iterable[str]]]:
    """Match ids with the manifest's image_id, as decimal digits.

    It gives name -> row, and a function from an id to the names to look up.
    """
    table = {str(number): row for row, number in enumerate(manifest.images["image_id"])}
    return table, lambda text: (str(int(text)),) if re.fullmatch(r"-?\d{1,18}", text) else ()


def _number(text: str) -> tuple[str, ...]:
    match = NUMBERED.fullmatch(PurePosixPath(text).name)
    return (str(int(match[1])),) if match else ()
