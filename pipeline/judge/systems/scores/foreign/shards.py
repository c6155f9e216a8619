"""A folder of numbered `.npy` files, such as clip-retrieval's img_emb_0.npy, img_emb_1.npy: one
array.
"""

import re
from collections import Counter
from pathlib import Path

from pipeline.foundation.parts.errors import InputError, counted, refusing
from pipeline.judge.systems.scores.foreign.arrays import Array, Arrays, joined
from pipeline.judge.systems.scores.foreign.numpy_files import read_npy
from pipeline.judge.systems.scores.foreign.words import SIDES, Name

NUMBERED = re.compile(r"(?P<name>.*?)(?P<number>\d{1,9})\.npy")
# Names that a message lists.
LISTED = 5


def read(path: Path) -> Arrays:
    """Join the shards of a folder in the order of their numbers."""
    files = by_number(path)
    numbers = [*files]
    # One that is missing would move the rows of those that follow.
    for number in range(min(numbers[0], 1), numbers[-1] + 1):
        if number not in files:
            raise InputError(
                f"{path}: shard {number} is missing of those up to {numbers[-1]}, and its rows with it"
            )
    title = f"a folder of {counted(len(files), 'shard')}"
    return Arrays(title, {"": joined([array(each) for each in files.values()], str(path))})


def by_number(path: Path) -> dict[int, Path]:
    """The shards of a folder by their numbers, in order; some numbers may be missing."""
    with refusing(OSError, lambda error: f"cannot read {path}: {error.strerror or error}"):
        listed = sorted(path.iterdir())
    entries = [each for each in listed if not each.name.startswith(".")]
    files = [each for each in entries if each.suffix == ".npy"]
    if not files:
        raise _without_shards(path, entries)
    matches = {each: NUMBERED.fullmatch(each.name) for each in files}
    other = next((each for each, match in matches.items() if match is None), None)
    names = {match["name"] for match in matches.values() if match}
    if other is not None or len(names) > 1:
        shown = ", ".join(each.name for each in files[:LISTED])
        raise InputError(
            f"{path}: is a folder of {counted(len(files), '.npy file')}, {shown}, which are no shards "
            f"of one array, NAME_0.npy, NAME_1.npy; name one of them, {files[0]}"
        )
    found: dict[int, Path] = {}
    for each, match in matches.items():
        number = int(match["number"]) if match else 0
        if number in found:
            raise InputError(f"{path}: has two shards of the number {number}")
        found[number] = each
    return dict(sorted(found.items()))


def array(file: Path) -> Array:
    """The array of one shard."""
    held = read_npy(file).arrays
    if [*held] != [""]:
        raise InputError(
            f"{file}: holds {counted(len(held), 'array')} by name, expected one of rows"
        )
    return held[""]


def _without_shards(path: Path, entries: list[Path]) -> InputError:
    """The error for a folder without shards: what it holds, and what may be meant."""
    inside = [each for each in entries if each.is_dir() and any(each.glob("*.npy"))]
    of_side = {Name.of(each.name).side: each for each in inside}
    if all(side in of_side for side in SIDES):
        return InputError(
            f"{path}: is a folder of shards of both sides; name them, images first: "
            f"{of_side['image']}:{of_side['caption']}"
        )
    if not entries:
        return InputError(f"{path}: is an empty folder; expected a zarr array or a store of scores")
    endings = Counter(each.suffix for each in entries if each.is_file())
    if endings:
        ending, count = endings.most_common(1)[0]
        held = counted(count, f"{ending or 'other'} file")
    else:
        held = counted(len(entries), "folder")
    return InputError(
        f"{path}: is a folder of {held}, and no zarr array, store of scores or shards NAME_0.npy, "
        "NAME_1.npy; name one file, or join them: numpy.save('scores.npy', numpy.concatenate(arrays))"
    )
