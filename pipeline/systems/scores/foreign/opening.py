"""From what a user types to a system."""

from pathlib import Path

from pipeline.parts.errors import InputError
from pipeline.systems.scores import judged
from pipeline.systems.scores.judged import Columns
from pipeline.systems.scores.system import System


def open_system(text: str, columns: Columns = Columns(), normalise: bool = False, root: Path = Path()) -> System:
    """Open scores that a user names.

    Args:
        text: A path of a file, of a store or of a zarr array; or two files of vectors, `images.npy:captions.npy`.
        columns: Which images and captions the rows and columns are, for a file without ids.
        normalise: Whether vectors are divided by their lengths.
        root: The folder that relative paths are in.

    Raises:
        InputError: For what cannot be read as scores, or does not fit `columns`.
    """
    path = root / text
    if path.exists():
        if normalise:
            raise InputError(f"--normalise is for vectors; {text} holds similarities")
        return judged.of_matrix(path, columns)
    images, colon, captions = text.partition(":")
    if colon and (root / images).is_file() and (root / captions).is_file():
        return judged.of_vectors(root / images, root / captions, columns, normalise)
    raise InputError(f"{text}: no such file; expected a file of scores, a store, or two files of vectors, "
                     "images.npy:captions.npy")
