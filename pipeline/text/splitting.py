"""From a caption to words and punctuation marks."""

from __future__ import annotations

import re

_WORDS = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
_ENDINGS = r"(?:s|m|d|ll|re|ve)\b"
_TREEBANK = re.compile(rf"\w+(?=n't\b)|n't\b|'{_ENDINGS}|\w+(?:(?:[-./]|'(?!{_ENDINGS}))\w+)*|\.{{2,}}|[^\w\s]")
_OPENING = re.compile(r'(?<![^\s(\[{<])"')


def words(caption: str) -> list[str]:
    """Lower-cased words, an apostrophe kept inside a word, and punctuation marks each on its own."""
    return _WORDS.findall(caption.lower())


def treebank(caption: str) -> list[str]:
    """Lower-cased, split as the Penn Treebank does: "dog", "'s"; "ca", "n't"; "t-shirt"; quotes as `` and ''.

    For vocabularies made with NLTK's tokenizer, as SCAN's are; on Flickr8k 15 of 35,000 captions come out otherwise
    than NLTK's, most of them at abbreviations ("mr.").
    """
    quoted = _OPENING.sub(" `` ", caption.lower()).replace('"', " '' ")
    return [part for chunk in quoted.split()
            for part in ([chunk] if chunk in ("``", "''") else _TREEBANK.findall(chunk))]


SPLITTINGS = {"words": words, "treebank": treebank}
