"""How captions are split into the words of a vocabulary. A new tokenizer is a function and a line
in `TOKENIZERS`.
"""

import re

import regex

WORDS = r"\w+(?:'\w+)?|[^\w\s]"
_WORDS = re.compile(WORDS)
_ENDINGS = r"(?:s|m|d|ll|re|ve)\b"
_TREEBANK = re.compile(
    rf"\w+(?=n't\b)|n't\b|'{_ENDINGS}|\w+(?:(?:[-./]|'(?!{_ENDINGS}))\w+)*|\.{{2,}}|[^\w\s]"
)
_OPENING = re.compile(r'(?<![^\s(\[{<])"')

# Scripts that set no blanks between words. Korean and Vietnamese do; Tibetan marks its syllables.
NO_BLANKS = (
    "Han",
    "Hiragana",
    "Katakana",
    "Bopomofo",
    "Yi",
    "Thai",
    "Lao",
    "Khmer",
    "Myanmar",
    "Tai_Le",
    "New_Tai_Lue",
    "Tai_Tham",
    "Tai_Viet",
    "Javanese",
    "Balinese",
)
# Script_Extensions, so that the long-vowel sign of Hiragana and Katakana belongs to both.
_SCRIPTS = "[" + "".join(rf"\p{{scx={script}}}" for script in NO_BLANKS) + "]"
# Letters and numbers are what \w matches in `words`. Those of these scripts come after U+02FF,
# which is tried first because a script is slow to find out.
_ALONE = rf"[^\x00-\u02ff](?<={_SCRIPTS})(?<=[\p{{L}}\p{{N}}])"
_LETTER = rf"[\p{{L}}\p{{N}}_](?<!{_SCRIPTS})\p{{M}}*"
_UNICODE = regex.compile(
    rf"{_ALONE}\p{{M}}*|(?:{_LETTER})+(?:'(?:{_LETTER})+)?|[^\s\p{{L}}\p{{N}}_]\p{{M}}*|\w"
)
_CUT_BY_WORDS = regex.compile(rf"{_ALONE}|[^\x00-\u02ff](?<=[\p{{L}}\p{{N}}]\p{{M}})")


def words(caption: str) -> list[str]:
    """Split into lower-case words, with apostrophes kept inside words, and punctuation marks."""
    return _WORDS.findall(caption.lower())


def treebank(caption: str) -> list[str]:
    """Split in lower case as the Penn Treebank does: "dog", "'s"; "ca", "n't"; "t-shirt"; quotes as
    `` and ''.

    For vocabularies made with NLTK's tokenizer, such as SCAN's. On Flickr8k 15 of 35,000 captions
    differ from NLTK's result, most of them at abbreviations ("mr.").
    """
    opened = _OPENING.sub(" `` ", caption.lower())
    quoted = opened.replace('"', " '' ")
    parts = []
    for chunk in quoted.split():
        if chunk in ("``", "''"):
            parts.append(chunk)
        else:
            parts += _TREEBANK.findall(chunk)
    return parts


def unicode(caption: str) -> list[str]:
    """Split any script: as `words`, but scripts without blanks (`NO_BLANKS`) into characters.

    Combining marks stay with the letter before them, so Devanagari's vowel signs do not end a word.
    Captions without either are split as by `words`.
    """
    if needs_unicode(caption):
        return _UNICODE.findall(caption.lower())
    return words(caption)


def needs_unicode(caption: str) -> bool:
    """Whether `words` would take a sentence for one word, or cut words at combining marks."""
    if caption.isascii():
        return False
    return _CUT_BY_WORDS.search(caption.lower()) is not None
