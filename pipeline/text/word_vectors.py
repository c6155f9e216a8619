"""First vectors of words, from a text file as GloVe's: a line a word, the word and its numbers with blanks between."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.parts.errors import InputError

LONGEST = 1 << 17
"""Bytes of a line, at most: more than 10,000 numbers have."""


class WordVectors(NamedTuple):
    """The vectors of those words of a vocabulary that a file has."""

    numbers: npt.NDArray[np.int64]  # int64 [F], the numbers of the words
    values: npt.NDArray[np.float32]  # float32 [F, W]
    digest: str  # SHA-256 of the file


def read(path: Path, words: Mapping[str, int], width: int) -> WordVectors:
    """Read the vectors of words, W numbers each, from a file in UTF-8.

    Of a word that has several lines the first counts.
    """
    wanted = {word.encode(): number for word, number in words.items()}
    found: dict[int, npt.NDArray[np.float32]] = {}
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for place, line in enumerate(_lines(file, path), start=1):
                digest.update(line)
                number = wanted.get(line[:line.find(b" ")])
                if number is None and place > 1:
                    continue
                values = line.split()[1:]
                if place == 1 and len(values) == 1 and line.replace(b" ", b"").strip().isdigit():
                    raise InputError(f"{path}: line 1 is a header as word2vec and fastText write it, not a word; take "
                                     "it out")
                if len(values) < width or (place == 1 and len(values) != width):
                    raise InputError(f"{path}: has vectors of {len(values)} numbers in line {place}; set "
                                     f"training.NAME.word_dimension to that, it is {width}")
                # GloVe has a few words with a blank inside, whose first part is another word.
                if number is not None and len(values) == width:
                    found.setdefault(number, _vector(values, path, place))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; training.NAME.word_vectors names it") from None
    if not found:
        raise InputError(f"{path}: has a vector of none of the {len(words)} words of the training captions")
    return WordVectors(np.array([*found], np.int64), np.stack([*found.values()]), digest.hexdigest())


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    while line := file.readline(LONGEST):
        if len(line) == LONGEST and not line.endswith(b"\n"):
            raise InputError(f"{path}: is no file of word vectors, a line is longer than {LONGEST:,} bytes")
        yield line


def _vector(values: list[bytes], path: Path, place: int) -> npt.NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # infinite in float32, refused below
            vector = np.array([float(value) for value in values], np.float32)
    except ValueError:
        raise InputError(f"{path}: line {place} does not hold numbers alone behind its word") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{path}: line {place} holds a number that is not finite")
    return vector
