"""Words and their numbers, learned from the training captions, or read from SCAN's vocabulary files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.files.digest import digest
from pipeline.files.parsing import from_json
from pipeline.parts.errors import InputError

_WORDS = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
_ENDINGS = r"(?:s|m|d|ll|re|ve)\b"
_TREEBANK = re.compile(rf"\w+(?=n't\b)|n't\b|'{_ENDINGS}|\w+(?:(?:[-./]|'(?!{_ENDINGS}))\w+)*|\.{{2,}}|[^\w\s]")
_OPENING = re.compile(r'(?<![^\s(\[{<])"')


def words(caption: str) -> list[str]:
    """Split into lower-case words, with apostrophes kept inside words, and punctuation marks."""
    return _WORDS.findall(caption.lower())


def treebank(caption: str) -> list[str]:
    """Split in lower case as the Penn Treebank does: "dog", "'s"; "ca", "n't"; "t-shirt"; quotes as `` and ''.

    For vocabularies made with NLTK's tokenizer, such as SCAN's. On Flickr8k 15 of 35,000 captions differ from NLTK's
    result, most of them at abbreviations ("mr.").
    """
    quoted = _OPENING.sub(" `` ", caption.lower()).replace('"', " '' ")
    return [part for chunk in quoted.split()
            for part in ([chunk] if chunk in ("``", "''") else _TREEBANK.findall(chunk))]


SPLITTINGS = {"words": words, "treebank": treebank}


PAD, START, END, UNKNOWN, MASK = "<pad>", "<start>", "<end>", "<unk>", "<mask>"
SPECIAL = (PAD, START, END, UNKNOWN, MASK)


@dataclass(frozen=True)
class Vocabulary:
    """Words by number; the first are <pad>, <start>, <end>, <unk> and <mask>."""

    words: tuple[str, ...]  # the words in the order of their numbers
    splitting: str = "words"  # how captions are split, a key of `SPLITTINGS`
    vectors: str | None = None  # SHA-256 of the file with the words' first vectors; None for drawn ones

    @classmethod
    def of(cls, captions: Iterable[str], minimum_count: int = 1) -> Vocabulary:
        """Learn the words of captions."""
        counts = Counter(word for caption in captions for word in words(caption))
        kept = sorted((word for word, count in counts.items() if count >= minimum_count),
                      key=lambda word: (-counts[word], word))
        return cls((*SPECIAL, *kept))

    @classmethod
    def of_scan(cls, path: Path) -> Vocabulary:
        """Read SCAN's `*_vocab.json`, which was made with NLTK's tokenizer."""
        return cls((*SPECIAL, *(word for word in scan_words(path) if word not in SPECIAL)), "treebank")

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Word -> its number."""
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def number(self, word: str) -> int:
        """Look up a word's number."""
        return self.numbers.get(word, self.numbers[UNKNOWN])

    def split(self, caption: str) -> list[int]:
        """Convert a caption to numbers."""
        return [self.number(word) for word in SPLITTINGS[self.splitting](caption)]

    @property
    def digest(self) -> str:
        """SHA-256 over the words in order, how captions are split, and first vectors. Checkpoints hold it."""
        words = digest([self.splitting, *self.words])
        return words if self.vectors is None else digest({"words": words, "vectors": self.vectors})

    def to_json(self) -> str:
        """Write the vocabulary as JSON."""
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        return json.dumps({"splitting": self.splitting, **vectors, "words": list(self.words)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Read what `to_json` wrote."""
        try:
            tree = from_json(text)
            found, splitting, vectors = tree["words"], tree["splitting"], tree.get("vectors")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError("vocabulary: not JSON of words and their splitting") from None
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found) \
                or tuple(found[:len(SPECIAL)]) != SPECIAL or len(set(found)) != len(found):
            raise InputError(f"vocabulary: expected different words that begin with {', '.join(SPECIAL)}")
        if splitting not in SPLITTINGS:
            raise InputError(f"vocabulary: splitting {splitting!r}, expected one of {', '.join(SPLITTINGS)}")
        if not isinstance(vectors, str | None):
            raise InputError("vocabulary: vectors are named by the SHA-256 of their file")
        return cls(tuple(found), splitting, vectors)


def scan_words(path: Path) -> list[str]:
    """Read the words of SCAN's `*_vocab.json`, {"word2idx": {word: number}, …}."""
    try:
        numbers = from_json(path.read_text(encoding="utf-8"))["word2idx"]
        if any(type(number) is not int for number in numbers.values()) \
                or sorted(numbers.values()) != list(range(len(numbers))) or not {*SPECIAL} - {MASK} <= set(numbers):
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"vocabulary {path}: no such file; set training.NAME.vocabulary to SCAN's JSON or to null, "
                         "for the words of the training captions") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f'{path}: not a vocabulary as SCAN\'s, JSON with "word2idx": {{word: number}} for all numbers '
                         "from 0") from None
    ordered = sorted(numbers, key=numbers.__getitem__)
    return ordered if MASK in numbers else [*ordered, MASK]
