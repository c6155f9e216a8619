"""What a pickle says, as plain data: no name in it is imported, and nothing is called.

A pickle is a program for a small machine, which may name any function and have it called. Here its
instructions are followed on plain values alone. Where it would call a function, what it says of the
call is written down as a `Call`, which readers may understand. How much is written down is bounded
by the file's size, and no value is nested deeply or contains itself.
"""

import codecs
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from struct import Struct
from typing import Any, BinaryIO

from pipeline.foundation.files.expansion import Expansion

# Bytes that an instruction counts, about those of an object or of an entry that refers to one; and
# how many are counted at once.
COUNTED = 64
AT_ONCE = 1 << 20
# Levels of values in values, and bytes of a whole number; no file of arrays has more.
DEEPEST = 100
LARGEST_NUMBER = 128
TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"
# What a dict may have as a key, or a set as a member. The hash of a tuple takes as long as it is
# deep.
HASHED = (str, bytes, int, float, type(None))


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a function or class, of which nothing more is known."""

    module: str
    name: str

    def __str__(self) -> str:
        return ascii(f"{self.module}.{self.name}")[1:-1][:200]


@dataclass(eq=False, slots=True)
class Call:
    """What would have been made by a call, and then given a state."""

    name: Name
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class Outside:
    """A value that is not in the pickle but beside it, by what identifies it there."""

    identity: Any


class Ordered(dict[Any, Any]):
    """An `OrderedDict` of the pickle."""

    __slots__ = ()


@dataclass(frozen=True)
class Pickle:
    """What a pickle says."""

    tree: Any  # dicts, lists, tuples, sets, texts, bytes, numbers, None, and the kinds above
    names: set[Name]  # all names in it
    calls: list[Call]  # all calls, also those whose values it drops
    outside: list[Outside]  # all values beside it


class ForeignName(ValueError):
    """A pickle names what its reader does not know."""

    def __init__(self, name: Name) -> None:
        super().__init__(f"it names {name}")
        self.name = name


def read(file: BinaryIO, size: int, expansion: Expansion, names: Container[Name]) -> Pickle:
    """Read one pickle of an open file.

    Args:
        file: The file at the pickle's start; afterwards at its end.
        size: At most how many bytes the pickle has.
        expansion: Counts what it becomes.
        names: What it may name.

    Raises:
        ForeignName: If it names anything else.
        ValueError: If it is nested too deeply, contains itself, or has what no file of arrays has.
        InputError: If it becomes too much.
        Exception: Any other, such as IndexError, if it is damaged.
    """
    machine = _Machine(file, size, names)
    machine.run(expansion)
    tree = machine.stack.pop()
    expansion.take(COUNTED * _repeated(tree))
    return Pickle(tree, machine.names, machine.calls, machine.outside)


def _repeated(tree: Any) -> int:
    """How many values a tree has beyond those in memory, since some are referred to repeatedly."""
    numbers: dict[int, int] = {}  # a value's id -> how many values it and those in it are
    levels: dict[int, int] = {}  # a value's id -> how many levels it and those in it have
    entered: set[int] = set()
    distinct = 0
    waiting: list[tuple[Any, Sequence[Any] | None]] = [(tree, None)]
    while waiting:
        value, inner = waiting.pop()
        if inner is None:
            if id(value) in entered:
                continue
            entered.add(id(value))
            if len(entered) - len(numbers) > DEEPEST:
                raise ValueError(TOO_DEEP)
            inner = _inner(value)
            waiting.append((value, inner))
            for each in inner:
                if isinstance(each, CONTAINERS) and id(each) not in numbers:
                    if id(each) in entered:
                        raise ValueError("a value in it contains itself")
                    waiting.append((each, None))
            continue
        below = [id(each) for each in inner if isinstance(each, CONTAINERS)]
        single = 1 + len(inner) - len(below)
        numbers[id(value)] = single + sum(map(numbers.__getitem__, below))
        levels[id(value)] = 1 + max(map(levels.__getitem__, below), default=0)
        distinct += single
        if levels[id(value)] > DEEPEST:
            raise ValueError(TOO_DEEP)
    return numbers[id(tree)] - distinct


def _inner(value: Any) -> Sequence[Any]:
    """The values that a value consists of."""
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    if isinstance(value, Call):
        return (value.arguments, value.state)
    if isinstance(value, Outside):
        return (value.identity,)
    if isinstance(value, set | frozenset):
        return [*value]
    if isinstance(value, list | tuple):
        return value
    return ()


CONTAINERS = dict | list | tuple | set | frozenset | Call | Outside


class _Machine:
    """Follows the instructions of one pickle."""

    def __init__(self, file: BinaryIO, size: int, names: Container[Name]) -> None:
        self.file = file
        self.size = size
        self.allowed = names
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # the stacks below each mark
        self.memo: dict[int, Any] = {}
        self.names: set[Name] = set()
        self.calls: list[Call] = []
        self.outside: list[Outside] = []
        self.counted = 0

    def run(self, expansion: Expansion) -> None:
        """Follow all instructions; the value is then on the stack."""
        read = self.file.read
        values = VALUES
        steps = STEPS
        while True:
            code = read(1)
            if code == b".":
                break
            self.counted += COUNTED
            if self.counted > AT_ONCE:
                expansion.take(self.counted)
                self.counted = 0
            if code in values:
                value = values[code](self)  # may change which stack is the last
                self.stack.append(value)
            elif code in steps:
                steps[code](self)
            else:
                raise ValueError(f"it has the instruction {code!r}, which no file of arrays has")
        expansion.take(self.counted)

    def content(self, length: int) -> bytes:
        """Read so many bytes."""
        content = b""
        if 0 <= length <= self.size:
            content = self.file.read(length)
        if len(content) != length:
            raise EOFError("it is cut short")
        self.counted += length
        return content

    def sized(self, form: Struct) -> bytes:
        """Read a length, and so many bytes."""
        return self.content(self.number(form))

    def number(self, form: Struct) -> Any:
        """Read a number."""
        return form.unpack(self.file.read(form.size))[0]

    def line(self) -> bytes:
        """Read a line."""
        content = self.file.readline()
        if not content.endswith(b"\n"):
            raise EOFError("it is cut short")
        self.counted += len(content)
        return content[:-1]

    def last(self, number: int) -> list[Any]:
        """Take the last values from the stack."""
        if len(self.stack) < number:
            raise IndexError("it takes values that are not there")
        values = self.stack[-number:]
        del self.stack[-number:]
        return values

    def marked(self) -> list[Any]:
        """Take the values above the last mark from the stack."""
        values = self.stack
        self.stack = self.below.pop()
        return values

    def marked_dict(self) -> Any:
        """The keys and values above the last mark as a dict."""
        return _put({}, self.marked())

    def marked_tuple(self) -> tuple[Any, ...]:
        """The values above the last mark as a tuple."""
        return tuple(self.marked())

    def marked_set(self) -> set[Any]:
        """The values above the last mark as a set."""
        return {_hashed(value) for value in self.marked()}

    def repeated(self) -> Any:
        """The last value once more."""
        return self.stack[-1]

    def mark(self) -> None:
        """Mark a place on the stack."""
        self.below.append(self.stack)
        self.stack = []

    def remember(self, number: int) -> None:
        """Write down the last value under a number."""
        self.memo[number] = self.stack[-1]

    def remember_next(self) -> None:
        """Write down the last value under the next number."""
        self.remember(len(self.memo))

    def remember_by_line(self) -> None:
        """Write down the last value under the number of a line."""
        self.remember(_decimal(self.line()))

    def remembered_by_line(self) -> Any:
        """The value under the number of a line."""
        return self.memo[_decimal(self.line())]

    def drop(self) -> None:
        """Drop the last value, or a mark without values."""
        if self.stack:
            self.stack.pop()
        else:
            self.marked()

    def named(self, module: Any, name: Any) -> Name:
        """A name, if it is one of those that are known."""
        if type(module) is not str or type(name) is not str:
            raise ValueError("it has a name that is no text")
        known = Name(module, name)
        if known not in self.allowed:
            raise ForeignName(known)
        self.names.add(known)
        return known

    def name_by_stack(self) -> Name:
        """A name in the last two values."""
        return self.named(*self.last(2))

    def name_by_line(self) -> Name:
        """A name in two lines."""
        module = self.line().decode()
        return self.named(module, self.line().decode())

    def called(self, function: Any, arguments: Any) -> Any:
        """What a call would make."""
        if not isinstance(function, Name) or type(arguments) is not tuple:
            raise ValueError("it calls what is no name")
        if function == ORDERED:
            made = Ordered()
            for pair in chain.from_iterable(arguments):
                _put(made, [*pair])
            return made
        if function in SETS:
            return {_hashed(each) for each in chain.from_iterable(arguments)}
        call = Call(function, arguments)
        self.calls.append(call)
        return call

    def called_by_stack(self) -> Any:
        """What a call of the last two values, a name and arguments, would make."""
        return self.called(*self.last(2))

    def called_with_names(self) -> Any:
        """What a call with arguments by name would make."""
        function, arguments, by_name = self.last(3)
        if by_name:
            raise ValueError("it calls with arguments by name")
        return self.called(function, arguments)

    def called_by_line(self) -> Any:
        """What a call would make whose arguments come first, as Python 2 wrote it."""
        arguments = tuple(self.marked())
        return self.called(self.name_by_line(), arguments)

    def called_by_mark(self) -> Any:
        """What a call would make whose name and arguments are marked, as Python 2 wrote it."""
        function, *arguments = self.marked()
        return self.called(function, tuple(arguments))

    def beside(self, identity: Any) -> Outside:
        """A value that is not in the pickle."""
        value = Outside(identity)
        self.outside.append(value)
        return value

    def beside_by_line(self) -> Outside:
        """A value beside the pickle, by the identity in a line."""
        return self.beside(self.line().decode())

    def beside_by_stack(self) -> Outside:
        """A value beside the pickle, by the identity on the stack."""
        return self.beside(*self.last(1))

    def build(self) -> None:
        """Write down the state of what would have been made by a call."""
        made, state = self.last(2)
        if isinstance(made, Call) and made.state is None:
            made.state = state
        elif not isinstance(made, Ordered) or type(state) is not dict or {*state} != {METADATA}:
            raise ValueError("it changes what no file of arrays changes")
        self.stack.append(made)

    def put_one(self) -> None:
        """Put a key and its value into a dict."""
        pair = self.last(2)
        _put(self.stack[-1], pair)

    def put_marked(self) -> None:
        """Put the keys and values above the last mark into a dict."""
        pairs = self.marked()
        _put(self.stack[-1], pairs)

    def append(self) -> None:
        """Put a value into a list or a set."""
        self._extend(self.last(1))

    def extend(self) -> None:
        """Put the values above the last mark into a list or a set."""
        self._extend(self.marked())

    def _extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, set):
            target.update(map(_hashed, values))
        elif isinstance(target, list):
            target.extend(values)
        else:
            raise ValueError("it puts values into what is no list")


ORDERED = Name("collections", "OrderedDict")
SETS = {
    Name(module, name) for module in ("builtins", "__builtin__") for name in ("set", "frozenset")
}
# The only attribute of an `OrderedDict` that is written: that of a state dict of torch. It is not
# needed.
METADATA = "_metadata"


def _hashed(value: Any) -> Any:
    """A value that may be a dict's key."""
    if not isinstance(value, HASHED) and not isinstance(value, Call | Name):
        raise ValueError(f"a dict or set in it has a {type(value).__name__} as a key")
    return value


def _put(target: Any, pairs: list[Any]) -> Any:
    if not isinstance(target, dict):
        raise ValueError("it puts items into what is no dict")
    target.update(zip(map(_hashed, pairs[::2]), pairs[1::2], strict=True))
    return target


def _decimal(line: bytes) -> int | bool:
    """A whole number in digits, or the truth as Python 2 wrote it."""
    if line in (b"00", b"01"):
        return line == b"01"
    if len(line) > LARGEST_NUMBER:
        raise ValueError(f"it has a whole number of {len(line):,} digits")
    return int(line.removesuffix(b"L"))


def _quoted(line: bytes) -> str:
    """Text, or the bytes of an array, as Python 2 wrote them."""
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise ValueError("it has a text without quotes")
    return codecs.escape_decode(line[1:-1])[0].decode("latin1")


def _escaped(line: bytes) -> str:
    """Text with escapes, as Python 2 wrote it."""
    return line.decode("raw-unicode-escape")


Instruction = Callable[[_Machine], Any]


def _each(
    step: Callable[[_Machine, Any], Any], given: Mapping[bytes, Any]
) -> dict[bytes, Instruction]:
    """Instructions that do the same, each with a value of its own."""
    return {opcode: _with(step, value) for opcode, value in given.items()}


def _with(step: Callable[[_Machine, Any], Any], value: Any) -> Instruction:
    def follow(machine: _Machine) -> Any:
        return step(machine, value)

    return follow


def _constant(machine: _Machine, value: Any) -> Any:
    return value


def _empty(machine: _Machine, kind: Callable[[], Any]) -> Any:
    return kind()


def _whole(machine: _Machine, form: Struct) -> int:
    """A whole number, after its length in bytes."""
    length = machine.number(form)
    if length > LARGEST_NUMBER:
        raise ValueError(f"it has a whole number of {length:,} bytes")
    return int.from_bytes(machine.content(length), "little", signed=True)


def _latin(machine: _Machine, form: Struct) -> str:
    return machine.sized(form).decode("latin1")


def _unicode(machine: _Machine, form: Struct) -> str:
    return machine.sized(form).decode()


def _line(machine: _Machine, meaning: Callable[[bytes], Any]) -> Any:
    return meaning(machine.line())


def _tuple(machine: _Machine, length: int) -> tuple[Any, ...]:
    return tuple(machine.last(length))


def _remembered(machine: _Machine, form: Struct) -> Any:
    return machine.memo[machine.number(form)]


def _remember(machine: _Machine, form: Struct) -> None:
    machine.remember(machine.number(form))


# Forms of numbers.
BYTE = Struct("<B")
UINT2 = Struct("<H")
UINT4 = Struct("<I")
UINT8 = Struct("<Q")
INT4 = Struct("<i")
DOUBLE = Struct(">d")
# What an instruction puts on the stack; opcodes as in Python's `pickletools`. First numbers, texts
# and bytes, by the form of the number, or of the length before them.
VALUES: dict[bytes, Instruction] = {
    **_each(_constant, {b"N": None, b"\x88": True, b"\x89": False}),
    **_each(_Machine.number, {b"J": INT4, b"K": BYTE, b"M": UINT2, b"G": DOUBLE}),
    **_each(_whole, {b"\x8a": BYTE, b"\x8b": INT4}),
}
VALUES |= _each(_line, {b"I": _decimal, b"L": _decimal, b"F": float, b"S": _quoted, b"V": _escaped})
VALUES |= _each(_latin, {b"T": INT4, b"U": BYTE})
VALUES |= _each(_unicode, {b"X": UINT4, b"\x8c": BYTE, b"\x8d": UINT8})
VALUES |= _each(_Machine.sized, {b"B": UINT4, b"C": BYTE, b"\x8e": UINT8, b"\x96": UINT8})
# Containers.
VALUES |= _each(_empty, {b"]": list, b"}": dict, b")": tuple, b"\x8f": set})
VALUES |= _each(_tuple, {b"\x85": 1, b"\x86": 2, b"\x87": 3})
VALUES |= {
    b"l": _Machine.marked,
    b"d": _Machine.marked_dict,
    b"t": _Machine.marked_tuple,
    b"\x91": _Machine.marked_set,
}
# Values that are there already.
VALUES |= _each(_remembered, {b"h": BYTE, b"j": UINT4})
VALUES |= {b"2": _Machine.repeated, b"g": _Machine.remembered_by_line}
# Names, calls, and values beside the pickle.
VALUES |= {
    b"c": _Machine.name_by_line,
    b"\x93": _Machine.name_by_stack,
    b"R": _Machine.called_by_stack,
    b"\x81": _Machine.called_by_stack,
    b"\x92": _Machine.called_with_names,
    b"i": _Machine.called_by_line,
    b"o": _Machine.called_by_mark,
    b"P": _Machine.beside_by_line,
    b"Q": _Machine.beside_by_stack,
}
# What the other instructions do.
STEPS: dict[bytes, Instruction] = {
    **_each(_Machine.content, {b"\x80": 1, b"\x95": 8}),
    **_each(_remember, {b"q": BYTE, b"r": UINT4}),
}
STEPS |= {
    b"(": _Machine.mark,
    b"0": _Machine.drop,
    b"1": _Machine.marked,
    b"p": _Machine.remember_by_line,
    b"\x94": _Machine.remember_next,
    b"a": _Machine.append,
    b"e": _Machine.extend,
    b"\x90": _Machine.extend,
    b"s": _Machine.put_one,
    b"u": _Machine.put_marked,
    b"b": _Machine.build,
}
