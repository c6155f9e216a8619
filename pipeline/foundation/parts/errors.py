"""The exception for bad input, the warning for input that was changed, and the wording of counts
and unknown names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

Value = TypeVar("Value")
# Names that one message lists.
MANY = 20
# Names that one line lists of more.
FEW = 3


class InputError(Exception):
    """Bad input. The message, printed in one line, says what is wrong and what to do.

    The command line prints the message and exits with code 2; a library user may catch it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class InputWarning(UserWarning):
    """Some input was changed or left out. The command line prints the message once, in one line."""


@contextmanager
def refusing(
    kinds: type[Exception] | tuple[type[Exception], ...],
    why: str | Callable[[Any], str],
    kind: type[Exception] = InputError,
) -> Iterator[None]:
    """Raise `InputError` instead of errors that bad input causes in the block.

    why: the message, or a function that makes it from the error. kind: what is raised instead.
        Where `Exception` is named, as for bytes that may make a library raise anything, errors of
        this kind, InputErrors and those of a library that is not installed pass. An error of too
        little memory (`short_of_memory`) is replaced only if its kind is named.
    """
    try:
        yield
    except kinds as error:
        named = kinds if isinstance(kinds, tuple) else (kinds,)
        if Exception in named and isinstance(error, (kind, InputError, ModuleNotFoundError)):
            raise
        if short_of_memory(error) and "MemoryError" not in str(kinds):
            raise
        message = why if isinstance(why, str) else why(error)
        raise kind(message) from None


# What bytes that were made to break a reader may make it raise.
ANYTHING = (Exception, MemoryError)


def short_of_memory(error: Exception) -> bool:
    """Whether an error says that this machine, or a GPU, has too little memory; some libraries
    raise RuntimeError.
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    message = str(error)
    return "can't allocate memory" in message or "not enough memory" in message


def first_line(error: Exception) -> str:
    """Shorten another library's message to its first line of at most 200 characters; its kind if it
    has none.

    A line that ends with a colon is followed by the next one.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].endswith(":"):
        lines[0] += f" {lines[1]}"
    if not lines:
        return type(error).__name__
    return lines[0][:200]


def counted(number: int, noun: str) -> str:
    """Say how many of something there are: "1 image", "123,287 images", "2 queries"."""
    return f"{number:,} {_of(number, noun)}"


def sized(
    images: int, captions: int, of_images: str = "image", of_captions: str = "caption"
) -> str:
    """The size of a pool: "1 image x 5 captions", "1000 images x 5000 captions"."""
    return f"{images} {_of(images, of_images)} x {captions} {_of(captions, of_captions)}"


def _of(number: int, noun: str) -> str:
    """The singular or plural of a noun, by the number before it."""
    if number == 1:
        return noun
    if noun.endswith("query"):
        return f"{noun.removesuffix('y')}ies"
    return f"{noun}s"


def few(names: Sequence[str]) -> str:
    """List the first names, and say how many more there are: "a, b, c and 2 more"."""
    listed = ", ".join(names[:FEW])
    if len(names) > FEW:
        listed += f" and {len(names) - FEW} more"
    return listed


def unknown(kind: str, name: object, known: Iterable[str], listed: str = "") -> InputError:
    """The error for an unknown name: suggests at most three of the nearest, or lists all if there
    are few.

    Args:
        kind: What has such names: "recipe".
        name: As it was given.
        known: The names that there are.
        listed: What lists all of them, as the message says it.
    """
    given = str(name)
    hint = meant(given, list(known), listed)
    return InputError(f"unknown {kind} {given!r}; {hint}")


def look_up(kind: str, name: str, known: Mapping[Any, Value], listed: str = "") -> Value:
    """Look up a name, or raise the error of `unknown`."""
    if name not in known:
        raise unknown(kind, name, known, listed)
    return known[name]


def meant(name: str, known: Sequence[str], listed: str = "") -> str:
    """Say which of the names that there are may be meant, see `unknown`; one of several words also
    by its last.

    Args:
        name: As it was given.
        known: The names that there are.
        listed: What lists all of them.

    Returns:
        The end of a message.
    """
    by_last_word = [entry for entry in known if entry.rpartition(" ")[2] == name]
    near = by_last_word or get_close_matches(name, known, 1, cutoff=0.7)
    if near:
        return f"did you mean {near[0]}?"
    if len(known) <= MANY:
        return f"there are: {', '.join(known) or 'none'}"
    nearest = get_close_matches(name, known, 3, cutoff=0.4)
    hint = f"there are {len(known)}"
    if nearest:
        hint = f"the nearest of {len(known)}: {', '.join(nearest)}"
    if listed:
        hint += f"; {listed} has all"
    return hint


def similar(path: Path) -> str:
    """The end of a message on a missing path: another entry of its folder that may be meant; "" if
    none is near.
    """
    siblings = [file for file in path.parent.glob("*") if file.suffix == path.suffix]
    sibling_of = {file.stem: file for file in siblings if file.name != path.name}
    near = get_close_matches(path.stem, sibling_of, 1, cutoff=0.7)
    if not near:
        return ""
    return f"; did you mean {sibling_of[near[0]]}?"
