"""Words and their numbers, learned from the training captions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pipeline.errors import InputError
from pipeline.store.layout import digest

PAD, START, END, UNKNOWN, MASK = "<pad>", "<start>", "<end>", "<unk>", "<mask>"
SPECIAL = (PAD, START, END, UNKNOWN, MASK)
_TOKEN = re.compile(r"\w+(?:'\w+)?|[^\w\s]")


def tokens(caption: str) -> list[str]:
    """Lower-cased words, an apostrophe kept inside a word, and punctuation marks each on its own."""
    return _TOKEN.findall(caption.lower())


@dataclass(frozen=True)
class Vocabulary:
    """Words by number; the first are <pad>, <start>, <end>, <unk> and <mask>."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, captions: Iterable[str], minimum_count: int = 1) -> Vocabulary:
        """The words that `captions` hold at least `minimum_count` times, the most frequent first."""
        counts = Counter(token for caption in captions for token in tokens(caption))
        kept = sorted((word for word, count in counts.items() if count >= minimum_count),
                      key=lambda word: (-counts[word], word))
        return cls((*SPECIAL, *kept))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def number(self, word: str) -> int:
        return self._numbers.get(word, self._numbers[UNKNOWN])

    def encode(self, caption: str) -> list[int]:
        """<start>, the caption's words, <end>."""
        return [self.number(START), *map(self.number, tokens(caption)), self.number(END)]

    @property
    def digest(self) -> str:
        """SHA-256 over the words in order; checkpoints carry it."""
        return digest(list(self.words))

    def to_json(self) -> str:
        return json.dumps(list(self.words), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """Raises InputError unless it is a list of different words that begins with the special ones."""
        try:
            words = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"vocabulary: not JSON: {error}") from None
        if not isinstance(words, list) or tuple(words[:len(SPECIAL)]) != SPECIAL or len(set(words)) != len(words):
            raise InputError(f"vocabulary: expected a list of different words beginning with {', '.join(SPECIAL)}")
        return cls(tuple(words))
