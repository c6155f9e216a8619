"""Text files of annotations: what encoding they are in, and their contents part by part.

UTF-8 is read with or without a mark of byte order, UTF-16 with one. A file that is not UTF-8 and
has single letters beyond ASCII between others is read as Windows-1252, in which Excel saves. Bytes
that are no text in any other file are refused, or their rows are left out.
"""

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cached_property, partial
from itertools import chain
from pathlib import Path

from pipeline.foundation.files import regular, remote, unfetched
from pipeline.foundation.parts.errors import InputError, refusing

PART = 1 << 20  # bytes of a file that are read at once
BEGINNING = 1 << 16  # bytes by which a file is recognised
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# How the encodings are called.
NAMES = {"utf-8": "UTF-8", "utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
# Of text that was decoded with surrogateescape: letters beyond ASCII, and bytes that were none.
LETTER, WRONG = re.compile("[^\x00-\x7f\udc80-\udcff]"), re.compile("[\udc80-\udcff]+")


class TextFile:
    """A text file on this machine or in an object store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_damaged = False

    @cached_property
    def encoding(self) -> str:
        """The name of the encoding, for which the whole file is read unless a mark says it."""
        head = self._head()
        pointer = unfetched.pointer(head)
        if pointer:
            raise InputError(f"{self.path}: is {pointer}")
        marked_encoding = _marked_encoding(head)
        if marked_encoding is not None:
            return marked_encoding
        if b"\0" in head:
            raise InputError(
                f"{self.path}: holds zero bytes, so it is no text, or UTF-16 without a mark of its byte "
                "order; save it as UTF-8"
            )
        decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        wrong_bytes: list[str] = []
        has_letters = False
        for part in chain(self._bytes(), [b""]):
            decoded = decode(part, final=not part)
            if not is_text(decoded):
                wrong_bytes += WRONG.findall(decoded)
                has_letters = has_letters or LETTER.search(decoded) is not None
            elif not decoded.isascii():
                has_letters = True
        single_letters = sum(len(run) == 1 for run in wrong_bytes)
        is_western = not has_letters and single_letters >= 0.9 * len(wrong_bytes)
        self._is_damaged = bool(wrong_bytes) and not is_western
        return "cp1252" if wrong_bytes and is_western else "utf-8"

    @property
    def is_damaged(self) -> bool:
        """Whether a file in UTF-8 has bytes that are no text."""
        return self.encoding == "utf-8" and self._is_damaged

    @property
    def called(self) -> str:
        """What the encoding is called."""
        return NAMES[self.encoding]

    def parts(self, errors: str = "strict") -> Iterator[str]:
        """Read the contents, part by part; "surrogateescape" keeps bytes that are no text."""
        decode = codecs.getincrementaldecoder(self.encoding)(errors).decode
        before = 0
        with not_utf8(self.path):
            for content in chain(self._bytes(), [b""]):
                try:
                    yield decode(content, final=not content)
                except UnicodeDecodeError as error:
                    # The decoder's bytes may begin in the part before.
                    error.start += before + len(content) - len(error.object)
                    raise
                before += len(content)

    def lines(self, errors: str = "strict") -> Iterator[str]:
        """Read the lines with their ends, which may be any."""
        line_ends = io.IncrementalNewlineDecoder(None, translate=True)
        cut_line = ""
        for part in chain(self.parts(errors), [None]):
            decoded = cut_line + line_ends.decode(part or "", final=part is None)
            *lines, cut_line = decoded.split("\n")
            yield from (f"{line}\n" for line in lines)
        if cut_line:
            yield cut_line

    def beginning(self) -> str:
        """The first part of the contents, to recognise it by."""
        head = self._head()
        encoding = _marked_encoding(head) or "utf-8"
        return head.decode(encoding, "ignore")

    def _head(self) -> bytes:
        head = b""
        for part in self._bytes():
            head += part
            if len(head) >= BEGINNING:
                break
        return head[:BEGINNING]

    def _bytes(self) -> Iterator[bytes]:
        path = self.path
        with (
            refusing((FileNotFoundError, NotADirectoryError), f"{path}: no such annotation file"),
            refusing(IsADirectoryError, f"{path}: is a folder, expected an annotation file"),
            io.BytesIO(remote.read_bytes(path))
            if remote.address(path)
            else regular.opened(path) as file,
        ):
            yield from iter(partial(file.read, PART), b"")


def _marked_encoding(head: bytes) -> str | None:
    """The encoding that a mark of byte order says; None without one."""
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return encoding
    return None


def is_text(text: str) -> bool:
    """Whether text that was decoded with surrogateescape came from UTF-8 alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def not_utf8(path: Path) -> AbstractContextManager[None]:
    """Refuse bytes that are no text."""
    return refusing(
        UnicodeDecodeError,
        lambda error: f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8",
    )


def text_of(path: Path) -> str:
    """The contents of a text file."""
    return "".join(TextFile(path).parts())
