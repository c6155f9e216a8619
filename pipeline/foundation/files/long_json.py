"""Read a JSON file that does not fit in memory: its object by members, or lists in it by elements.

The limits are those of `parsing.from_json`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.foundation.files.parsing import in_plain_words, of_pairs, require_whole

BLANKS = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder(object_pairs_hook=of_pairs)


def members(
    parts: Iterable[str], *lists: str, longest: int | None = None
) -> Iterator[tuple[str, Any]]:
    """Read the members of the outermost object one at a time, or one element at a time of those
    that `lists` names.

    parts: the text in pieces, cut anywhere. With `lists`, other members are left out; without, a
        name may come twice. longest: the most characters of a member; None for any. KeyError if the
        outermost value is no object or lacks such a list; ValueError if it is no JSON or beyond the
        limits.
    """
    text = _Text(parts, longest)
    missing = list(lists)
    if text.next() != "{":
        text.value()
        raise KeyError(lists[0] if lists else "an object")
    for _ in text.members("{}"):
        if text.next() != '"':
            raise text.error("expected a name in double quotes")
        key = text.value()
        text.take(":")
        if lists and text.next() == "[":
            if key in lists and key not in missing:
                raise ValueError(f"has {key!r} twice")
            missing = [name for name in missing if name != key]
            for _ in text.members("[]"):
                element = text.value()
                if key in lists:
                    yield key, element
        else:
            value = text.value()
            if not lists:
                yield key, value
    if text.next():
        raise text.error("expected nothing behind the last bracket")
    if missing:
        raise KeyError(missing[0])


def nested(
    parts: Iterable[str], depth: int, longest: int | None = None
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Read objects in objects by their innermost members, one at a time.

    Args:
        parts: The text in pieces, cut anywhere.
        depth: How many objects are in one another: 2 for {"a": {"b": 1}}.
        longest: The most characters of a member; None for any.

    Yields:
        The names of a member, from the outermost object on, and its value. What is no object before
        that depth comes with fewer names. A name may come twice.

    Raises:
        ValueError: If it is no JSON, or beyond the limits.
    """
    text = _Text(parts, longest)
    yield from text.named((), depth)
    if text.next():
        raise text.error("expected nothing behind the last bracket")


def values(parts: Iterable[str], longest: int | None = None) -> Iterator[Any]:
    """Read JSON Lines: values one after another, of at most `longest` characters each."""
    text = _Text(parts, longest)
    while text.next():
        yield text.value()


def elements(parts: Iterable[str]) -> Iterator[Any]:
    """Read the outermost list by elements, as `members` reads an object."""
    text = _Text(parts)
    for _ in text.members("[]"):
        yield text.value()
    if text.next():
        raise text.error("expected nothing behind the last bracket")


class _Text:
    """A text that is consumed from its start; its parts are read when they are needed."""

    def __init__(self, parts: Iterable[str], longest: int | None = None) -> None:
        self.parts = iter(parts)
        self.longest = longest
        self.text, self.at, self.before = (
            "",
            0,
            0,
        )  # in memory; the position in it; how many characters were before it

    def next(self) -> str:
        """The next character that is no blank; "" at the end."""
        while True:
            self.at = BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches anything
            if self.at < len(self.text) or not self._more():
                return self.text[self.at : self.at + 1]

    def take(self, characters: str) -> str:
        """Take one of some characters."""
        token = self.next()
        if not token or token not in characters:
            raise self.error(f"expected {' or '.join(characters)}")
        self.at += 1
        return token

    def members(self, brackets: str) -> Iterator[None]:
        """Take the brackets and commas of an object or list; the caller takes a member each time
        this yields.
        """
        self.take(brackets[0])
        if self.next() == brackets[1]:
            self.take(brackets[1])
            return
        yield
        while self.take("," + brackets[1]) == ",":
            yield

    def named(self, names: tuple[str, ...], depth: int) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Take a value: the members of an object down to a depth, with their names."""
        if not depth or self.next() != "{":
            yield names, self.value()
            return
        for _ in self.members("{}"):
            if self.next() != '"':
                raise self.error("expected a name in double quotes")
            name = self.value()
            self.take(":")
            yield from self.named((*names, name), depth - 1)

    def value(self) -> Any:
        """Take a value."""
        self.next()
        while True:
            try:
                value, end = DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                wrong = ValueError(
                    f"{error.msg.removesuffix(' at')} at character {self.before + error.pos}"
                )
                if not self._more():
                    raise wrong from None
            except (RecursionError, ValueError) as error:
                raise in_plain_words(error) from None
            else:
                text = self.text[self.at : end]
                if (
                    end + 2 < len(self.text) or not self._more()
                ):  # a number may go on: 1 and 1e- do with 1e-5
                    self.at += len(text)
                    return require_whole(value, text)

    def error(self, what: str) -> ValueError:
        """What is wrong at the place."""
        return ValueError(f"{what} at character {self.before + self.at}")

    def _more(self) -> bool:
        """Read until the text is twice as long, so that a long value is parsed again only once for
        each doubling.
        """
        if self.longest is not None and len(self.text) - self.at > self.longest:
            raise ValueError(
                f"a value of more than {self.longest:,} characters at character "
                f"{self.before + self.at}"
            )
        read = [self.text[self.at :]]
        wanted = 2 * (len(self.text) - self.at) + 1
        while sum(map(len, read)) < wanted:
            part = next(self.parts, None)
            if part is None:
                break
            read.append(part)
        self.before += self.at
        self.text = "".join(read)
        self.at = 0
        return len(read) > 1
