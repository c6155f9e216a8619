"""What to do with text that is not in UTF-8."""

import re
import shlex
from pathlib import Path

# Bytes that no text has.
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def unlike_utf8(path: Path) -> str:
    """Say that a text is of another encoding than UTF-8, and how it is converted."""
    return f"is no text in UTF-8, perhaps in Windows-1252 (Latin-1); {_converted(path, 'WINDOWS-1252')}"


def in_utf16(path: Path, start: bytes) -> str:
    """Say that a text is in UTF-16, by its first bytes; "" for any other file."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"is text in UTF-16; {_converted(path, 'UTF-16')}"
    even = start[: len(start) // 2 * 2]
    halves = {"UTF-16LE": (even[::2], even[1::2]), "UTF-16BE": (even[1::2], even[::2])}
    for order, (characters, zeros) in halves.items():
        if characters and not any(zeros) and not CONTROL.search(characters):
            return f"is text in UTF-16; {_converted(path, order)}"
    return ""


def _converted(path: Path, encoding: str) -> str:
    name = shlex.quote(str(path))
    return f"save it in UTF-8, such as by `iconv -f {encoding} -t UTF-8 {name} > utf8{path.suffix}`"
