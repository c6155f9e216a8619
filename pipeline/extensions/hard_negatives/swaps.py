"""Wrong captions made from a data set's own captions by controlled swaps of words.

    colour          the first colour becomes another one, which no caption of the image names
    number          the first of two, three, … six becomes another one, which no caption of the
                    image names
    order           the first two nouns of the list that are both alone in the singular, or both in
                    the plural, with more than "and" or "with" between them, change places
    left and right  every left becomes right, every right left

A caption gives one question of each kind that it allows. The new word is chosen by the digest of
the caption, so the same captions give the same questions. A swapped caption that is another caption
of the image is left out. A swapped caption can still be true of something that no caption mentions;
nobody has looked at the images.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from importlib import resources

from pipeline.extensions.hard_negatives.questions import Question
from pipeline.foundation.files.parsing import from_yaml

WORDS_FILE = resources.files("pipeline.extensions.hard_negatives") / "words.yaml"
WORDS = from_yaml(WORDS_FILE.read_text(encoding="utf-8"))
COLOURS = WORDS["colours"]
SAME_COLOUR = WORDS["same_colour"]
NUMBERS = WORDS["numbers"]
# Singular -> plural.
NOUNS = WORDS["irregular"] | {noun: f"{noun}s" for noun in WORDS["nouns"]}
BEFORE_A_NOUN = {*WORDS["before_a_noun"], *NUMBERS, *COLOURS, *SAME_COLOUR}
JOINING = {*WORDS["joining"], *NUMBERS}
WORD = re.compile(r"[A-Za-z]+")
Swap = Callable[[str, Sequence[str]], str | None]


def of_captions(images: Iterable[tuple[str, Sequence[str]]]) -> list[Question]:
    """Make questions of images' files with their captions, grouped by kind of swap."""
    captions_of = [(image, list(captions)) for image, captions in images]
    questions = []
    for kind, swap in SWAPS.items():
        for image, captions in captions_of:
            for caption in dict.fromkeys(captions):
                wrong = swap(caption, captions)
                if wrong is not None and wrong not in captions:
                    questions.append(Question(image, (caption,), (wrong,), kind))
    return questions


def colour(caption: str, captions: Sequence[str]) -> str | None:
    """Swap the first colour."""
    named = {SAME_COLOUR.get(word, word) for word in _words_of(captions)}
    known = {*COLOURS, *SAME_COLOUR}
    return _first_replaced(caption, known, COLOURS, named)


def number(caption: str, captions: Sequence[str]) -> str | None:
    """Swap the first number from two to six."""
    return _first_replaced(caption, set(NUMBERS), NUMBERS, _words_of(captions))


def order(caption: str, captions: Sequence[str]) -> str | None:
    """Swap two nouns."""
    words = list(WORD.finditer(caption))
    lower = [match[0].lower() for match in words]
    for names in (set(NOUNS), set(NOUNS.values())):
        of_list = [at for at, word in enumerate(lower) if word in names]
        nouns = [at for at in of_list if _stands_alone(lower, at)]
        for first, second in itertools.pairwise(nouns):
            between = set(lower[first + 1 : second])
            are_different = lower[first] != lower[second]
            if are_different and not between <= JOINING:
                return _exchanged(caption, words[first], words[second])
    return None


def left_and_right(caption: str, captions: Sequence[str]) -> str | None:
    """Swap left and right."""
    words = list(WORD.finditer(caption))
    lower = ["", *(match[0].lower() for match in words), ""]
    sides = [match for at, match in enumerate(words, 1) if _is_side(*lower[at - 1 : at + 2])]
    if not sides:
        return None
    for match in reversed(sides):
        other = "left"
        if match[0].lower() == "left":
            other = "right"
        caption = _put(caption, match, other)
    return caption


def _is_side(before: str, word: str, after: str) -> bool:
    """Whether a word means left or right, and not what is left or is all right."""
    if word not in ("left", "right"):
        return False
    return before not in WORDS["before_no_side"] and after not in WORDS["after_no_side"]


SWAPS: dict[str, Swap] = {
    "colour": colour,
    "number": number,
    "order": order,
    "left and right": left_and_right,
}


def _words_of(captions: Iterable[str]) -> set[str]:
    """All words of some captions, in lower case."""
    words: set[str] = set()
    for caption in captions:
        words.update(word.lower() for word in WORD.findall(caption))
    return words


def _first_replaced(
    caption: str, known: set[str], choices: Sequence[str], taken: set[str]
) -> str | None:
    """Replace the first known word by a choice that is not taken."""
    matches = (match for match in WORD.finditer(caption) if match[0].lower() in known)
    first = next(matches, None)
    free = [choice for choice in choices if choice not in taken]
    if first is None or not free:
        return None
    digest = blake2b(caption.encode(), digest_size=8).digest()
    drawn = int.from_bytes(digest, "big") % len(free)
    replaced = _put(caption, first, free[drawn])
    return _with_article(replaced, first.start())


def _stands_alone(lower: Sequence[str], at: int) -> bool:
    """Whether the words beside a noun make it no part of a compound."""
    if at > 0 and lower[at - 1] not in BEFORE_A_NOUN:
        return False
    nouns = NOUNS.keys() | set(NOUNS.values())
    return at + 1 == len(lower) or lower[at + 1] not in nouns


def _exchanged(caption: str, first: re.Match[str], second: re.Match[str]) -> str:
    # The later one first, so that the earlier one's position stays.
    swapped = _put(caption, second, first[0])
    swapped = _with_article(swapped, second.start())
    swapped = _put(swapped, first, second[0])
    return _with_article(swapped, first.start())


def _put(caption: str, match: re.Match[str], word: str) -> str:
    word = word.lower()
    if match[0][0].isupper():
        word = word.capitalize()
    before = caption[: match.start()]
    after = caption[match.end() :]
    return before + word + after


def _with_article(caption: str, start: int) -> str:
    """Make the article before the word at `start` a or an."""
    article = re.search(r"\b([Aa])n?( +)$", caption[:start])
    if not article:
        return caption
    before = caption[: article.start()]
    letter, blanks = article.groups()
    if caption[start].lower() in "aeiou":
        letter += "n"
    return before + letter + blanks + caption[start:]
