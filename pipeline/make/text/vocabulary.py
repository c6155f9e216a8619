"""Vocabularies, learned from the training captions or read from SCAN's vocabulary files, and
initial word vectors.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import IO, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, field_validator
from pydantic.dataclasses import dataclass

from pipeline.foundation.files import regular
from pipeline.foundation.files.digest import digest
from pipeline.foundation.files.parsing import from_json
from pipeline.foundation.parts.errors import InputError, refusing, unknown
from pipeline.make.text import TOKENIZERS
from pipeline.make.text.tokenizers import needs_unicode

# The most bytes of a line, enough for more than 10,000 numbers.
LONGEST_LINE = 1 << 17
PAD = "<pad>"
START = "<start>"
END = "<end>"
UNKNOWN = "<unk>"
MASK = "<mask>"
SPECIAL = (PAD, START, END, UNKNOWN, MASK)


@dataclass(frozen=True)
class Vocabulary:
    """Words by token id; the first are <pad>, <start>, <end>, <unk> and <mask>."""

    words: tuple[str, ...]  # the words in the order of their token ids
    tokenizer: str = "words"  # how captions are split, a key of `TOKENIZERS`
    # SHA-256 of the file with the words' initial vectors; None for random ones.
    vectors: str | None = None

    @field_validator("words")
    @classmethod
    def _different(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        are_different = len(set(words)) == len(words)
        if words[: len(SPECIAL)] != SPECIAL or not are_different:
            raise ValueError
        return words

    @field_validator("tokenizer")
    @classmethod
    def _known(cls, tokenizer: str) -> str:
        if tokenizer not in TOKENIZERS:
            raise InputError(f"vocabulary: {unknown('tokenizer', tokenizer, TOKENIZERS)}")
        return tokenizer

    @classmethod
    def of(
        cls, captions: Iterable[str], minimum_count: int = 1, tokenizer: str | None = None
    ) -> "Vocabulary":
        """Learn the words that occur at least `minimum_count` times in captions, the most frequent
        first.

        Without a `tokenizer`, captions are split into words, or by `tokenizers.unicode` where one
        of them needs it.
        """
        captions = [normalize("NFC", caption) for caption in captions]
        if tokenizer is None:
            tokenizer = "words"
            if any(map(needs_unicode, captions)):
                tokenizer = "unicode"
        split = TOKENIZERS.find(tokenizer)
        counts: Counter[str] = Counter()
        for caption in captions:
            counts.update(split(caption))
        frequent = [word for word, count in counts.items() if count >= minimum_count]
        frequent.sort(key=lambda word: (-counts[word], word))
        return cls((*SPECIAL, *frequent), tokenizer)

    @classmethod
    def of_scan(cls, path: Path, tokenizer: str | None = None) -> "Vocabulary":
        """Read SCAN's `*_vocab.json`, which was made with NLTK's tokenizer unless another one is
        named.
        """
        words = [word for word in scan_words(path) if word not in SPECIAL]
        return cls((*SPECIAL, *words), tokenizer or "treebank")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Word -> its token id."""
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def number(self, word: str) -> int:
        """Look up a word's token id, that of <unk> for an unknown word."""
        return self.numbers.get(word, self.numbers[UNKNOWN])

    def unknown(self, caption: str) -> tuple[list[str], int]:
        """Find a caption's unknown words, and count all. Punctuation marks do not count as
        words.
        """
        of_unknown = self.numbers[UNKNOWN]
        words = [word for word in self.tokens(caption) if any(map(str.isalnum, word))]
        unknown = [word for word in words if self.number(word) == of_unknown]
        return unknown, len(words)

    def split(self, caption: str) -> list[int]:
        """Convert a caption to token ids."""
        return [self.number(word) for word in self.tokens(caption)]

    def tokens(self, caption: str) -> list[str]:
        """Split a caption into words, known or not. Both Unicode forms of an accented letter are
        the same to it.
        """
        return self._tokenize(normalize("NFC", caption))

    @cached_property
    def _tokenize(self) -> Callable[[str], list[str]]:
        return TOKENIZERS.find(self.tokenizer)

    @property
    def digest(self) -> str:
        """SHA-256 over the words in order, how captions are split, and initial vectors. Checkpoints
        hold it.
        """
        words = digest([self.tokenizer, *self.words])
        if self.vectors is None:
            return words
        return digest({"words": words, "vectors": self.vectors})

    def to_json(self) -> str:
        """Write the vocabulary as JSON."""
        content: dict[str, object] = {"tokenizer": self.tokenizer}
        if self.vectors is not None:
            content["vectors"] = self.vectors
        content["words"] = list(self.words)
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """Read what `to_json` wrote."""
        with refusing(
            ValueError,
            f"vocabulary: expected JSON of different words that begin with {', '.join(SPECIAL)}; "
            "a tokenizer's name; first vectors are named by the SHA-256 of their file",
        ):
            return TypeAdapter(cls).validate_python(from_json(text))


def scan_words(path: Path) -> list[str]:
    """Read the words of SCAN's `*_vocab.json`, {"word2idx": {word: number}, …}."""
    with (
        refusing(
            (OSError, ValueError, KeyError, TypeError, AttributeError),
            f"{path}: not a vocabulary as SCAN's, "
            'JSON with "word2idx": {word: number} for all numbers from 0',
        ),
        refusing(
            FileNotFoundError,
            f"vocabulary {path}: no such file; set training.NAME.vocabulary to SCAN's JSON "
            "or to null, for the words of the training captions",
        ),
    ):
        numbers = from_json(regular.text(path))["word2idx"]
        if any(type(number) is not int for number in numbers.values()):
            raise ValueError
        expected = list(range(len(numbers)))
        if sorted(numbers.values()) != expected:
            raise ValueError
        if not {*SPECIAL} - {MASK} <= set(numbers):
            raise ValueError
    ordered = sorted(numbers, key=numbers.__getitem__)
    if MASK not in numbers:
        ordered.append(MASK)
    return ordered


class WordVectors(NamedTuple):
    """The vectors of those words of a vocabulary that a file has."""

    numbers: npt.NDArray[np.int64]  # int64 [F], the token ids of the words
    values: npt.NDArray[np.float32]  # float32 [F, W]
    digest: str  # SHA-256 of the file


def read_vectors(path: Path, words: Mapping[str, int], width: int) -> WordVectors:
    """Read the initial vectors of words, W numbers each, from a UTF-8 text file in GloVe's format.

    A line has a word and its numbers with blanks between. If a word has several lines, the first
    one counts.
    """
    wanted = {word.encode(): number for word, number in words.items()}
    vector_of_number: dict[int, npt.NDArray[np.float32]] = {}
    hashed = hashlib.sha256()
    with (
        refusing(
            OSError,
            lambda error: f"{path}: {error.strerror or error}; training.NAME.word_vectors names it",
        ),
        regular.opened(path) as file,
    ):
        for place, line in enumerate(_lines(file, path), start=1):
            hashed.update(line)
            number = wanted.get(line[: line.find(b" ")])
            is_first = place == 1
            if number is None and not is_first:
                continue
            values = line.split()[1:]
            if is_first and _is_header(line):
                raise InputError(
                    f"{path}: line 1 is a header of word2vec or fastText, not a word; delete it"
                )
            is_odd = is_first and len(values) != width
            if is_odd or len(values) < width:
                raise InputError(
                    f"{path}: has vectors of {len(values)} numbers in line {place}; set "
                    f"training.NAME.word_dimension to that, it is {width}"
                )
            # GloVe has a few words with a blank inside, whose first part is another word.
            if number is not None and len(values) == width:
                vector_of_number.setdefault(number, _vector(values, path, place))
    if not vector_of_number:
        raise InputError(
            f"{path}: has a vector of none of the {len(words)} words of the training captions"
        )
    numbers = np.array([*vector_of_number], np.int64)
    vectors = np.stack([*vector_of_number.values()])
    return WordVectors(numbers, vectors, hashed.hexdigest())


def _is_header(line: bytes) -> bool:
    """Whether a line holds two whole numbers: how many words, and their width."""
    digits = line.replace(b" ", b"").strip()
    return digits.isdigit() and len(line.split()) == 2


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    for line in iter(lambda: file.readline(LONGEST_LINE), b""):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise InputError(
                f"{path}: is no file of word vectors, a line is longer than {LONGEST_LINE:,} bytes"
            )
        yield line


def _vector(values: list[bytes], path: Path, place: int) -> npt.NDArray[np.float32]:
    # What is infinite in float32 is refused below.
    with (
        refusing(ValueError, f"{path}: line {place} does not hold numbers alone behind its word"),
        np.errstate(over="ignore"),
    ):
        vector = np.array([float(value) for value in values], np.float32)
    if not np.isfinite(vector).all():
        raise InputError(f"{path}: line {place} holds a number that is not finite")
    return vector
