"""Split captions into words and punctuation marks."""

from __future__ import annotations

import re

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
