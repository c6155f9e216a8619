"""The images of a manifest that are to be extracted alone: a split, or those that a file lists."""

from pathlib import Path

from pipeline.manifest import Manifest
from pipeline.parts.errors import InputError


def chosen(manifest: Manifest, split: str | None, only: Path | None) -> frozenset[int]:
    """The ids of the images of a split that a file lists, an id a line; None takes all splits, or all ids."""
    images = manifest.images["image_id"].tolist()
    found = frozenset(images if split is None else manifest.split(split).image_ids.tolist())
    if only is not None:
        found &= _listed(only, frozenset(images))
    if not found:
        raise InputError(f"{only}: lists no image of the split {split}")
    return found


def _listed(file: Path, known: frozenset[int]) -> frozenset[int]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read as a text file with an image id a line ({error})") from None
    ids = set()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text and not (text.removeprefix("-").isdecimal() and int(text) in known):
            raise InputError(f"{file}, line {number}: expected the id of an image of the manifest, got {text[:40]!a}")
        ids |= {int(text)} if text else set()
    return frozenset(ids)
