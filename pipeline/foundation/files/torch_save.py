"""What `torch.save` wrote: tensors in plain containers, read by torch with `weights_only`.

Before torch is asked, the pickle in the file is followed as plain data (see `pickled`): only what
dense tensors in dicts and lists need may be named, and every tensor lies within its storage, which
the file has. So no file makes torch take memory that it does not fill.
"""

import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pipeline.foundation.files import archives, pickled, regular, restricted_pickle
from pipeline.foundation.files.expansion import Expansion
from pipeline.foundation.files.pickled import Call, Name, Outside, Pickle
from pipeline.foundation.files.restricted_pickle import are_sizes
from pipeline.foundation.parts import extras
from pipeline.foundation.parts.errors import ANYTHING, InputError, first_line, refusing

# How a file of torch before 1.6 begins, a pickle of a number; it holds five pickles, then values.
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
PICKLES = 5
ARCHIVE = b"PK\3\4"
CONTENT = "data.pkl"
# Bytes of each of the other members but the values of tensors, which are words and numbers.
LARGEST_WORD = 1000
# Bytes of a value, by the name of its type.
TYPES = {
    **dict.fromkeys(("float64", "int64", "uint64", "complex64"), 8),
    **dict.fromkeys(("float32", "int32", "uint32"), 4),
    **dict.fromkeys(("float16", "bfloat16", "int16", "uint16"), 2),
    **dict.fromkeys(("int8", "uint8", "bool", "float8_e4m3fn", "float8_e4m3fnuz"), 1),
    **dict.fromkeys(("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    "complex128": 16,
}
# Bytes of a value in each kind of storage.
STORAGES = {
    **{Name("torch", f"{kind}Storage"): 8 for kind in ("Double", "Long", "ComplexFloat")},
    **{Name("torch", f"{kind}Storage"): 4 for kind in ("Float", "Int")},
    **{Name("torch", f"{kind}Storage"): 2 for kind in ("Half", "BFloat16", "Short")},
    **{Name("torch", f"{kind}Storage"): 1 for kind in ("Char", "Byte", "Bool")},
    Name("torch", "ComplexDoubleStorage"): 16,
    Name("torch.storage", "UntypedStorage"): 1,
}
TENSORS = {Name("torch._utils", f"_rebuild_tensor{end}") for end in ("", "_v2", "_v3")}
TYPED = Name("torch._utils", "_rebuild_tensor_v3")
PARAMETER = Name("torch._utils", "_rebuild_parameter")
SIZE = Name("torch", "Size")
COUNTER = Name("collections", "Counter")
# What takes one text.
OF_TEXT = {Name("torch", "device"), Name("torch.serialization", "_get_layout")}
DTYPES = {Name("torch", name) for name in TYPES}
# What a file of tensors may name.
NAMES = {
    *(STORAGES.keys() | TENSORS | OF_TEXT | DTYPES | restricted_pickle.NAMES),
    *(PARAMETER, SIZE, COUNTER),
}
# How a name of torch begins -> what is held, and what to do.
OTHERS = {
    "torch._utils._rebuild_sparse": ("holds a sparse tensor", "save its .to_dense()"),
    "torch._utils._rebuild_qtensor": ("holds quantised values", "save .dequantize()"),
    "torch._utils._rebuild_nested": ("holds a nested tensor", "save its .to_padded_tensor(0)"),
    "torch._utils._rebuild_meta": ("holds a tensor without values", "load it before it is saved"),
    "torch._utils._rebuild_parameter_with": (
        "holds a parameter with attributes",
        "save its .detach()",
    ),
    "torch.nn.modules.": ("holds a whole network", "save its .state_dict()"),
}
# Sides of a tensor.
MOST_SIDES = 32


def is_archive(file: BinaryIO) -> bool:
    """Whether a zip archive is of `torch.save`."""
    names = zipfile.ZipFile(file).namelist()
    return any(name.endswith(CONTENT) for name in names)


def load(path: Path, content: bytes | None = None, also: type | None = None) -> Any:
    """Read a file of `torch.save`; without torch, one that holds NumPy's arrays alone.

    Args:
        path: The file. Its values are mapped into memory where it is of torch 1.6 or newer.
        content: The bytes that are read instead, as they are a part of that file.
        also: A class of plain attributes that the file may hold too.

    Returns:
        Dicts, lists, tuples, texts and numbers with tensors on the CPU, or with arrays.

    Raises:
        InputError: In one line, for anything else, or if torch is needed and not installed.
    """
    with _reading(path), _opened(path, content) as file:
        begin = file.read(len(LEGACY))
        file.seek(0)
        if begin != LEGACY and not begin.startswith(ARCHIVE):
            what = ""
            if content is None:
                what = archives.named(path)
            if what:
                raise InputError(f"{path}: is {what}")
            raise ValueError("it begins like none")
        names = NAMES
        if also is not None:
            names = NAMES | {Name(also.__module__, also.__qualname__)}
        if begin == LEGACY:
            held = _legacy(file, Expansion(path), names)
        else:
            held = _archive(file, Expansion(path), names)
        if not any(name.module.startswith("torch") for name in held.names):
            return restricted_pickle.arrays(held.tree)
        with refusing(ImportError, f"{extras.lacking(str(path), 'torch')}, or save it as .npy"):
            import torch  # noqa: F401
        file.seek(0)
        by_path = begin != LEGACY and content is None
        return _joined(held.tree, _by_torch(path if by_path else file, also))


class _LeftOut:
    """What torch makes of an array of NumPy: nothing."""

    __slots__ = ()

    def __new__(cls, *_: Any) -> "_LeftOut":
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        """Take no state."""


def _by_torch(source: Path | BinaryIO, also: type | None) -> Any:
    import torch

    of_numpy = restricted_pickle.NAMES - {restricted_pickle.ENCODED, pickled.ORDERED}
    allowed: list[Any] = []
    for name in of_numpy:
        allowed.append((_LeftOut, f"{name.module}.{name.name}"))
    if also is not None:
        allowed.append(also)
    with torch.serialization.safe_globals(allowed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.load(source, "cpu", weights_only=True, mmap=isinstance(source, Path))


def _joined(said: Any, made: Any) -> Any:
    """What torch made, with NumPy's arrays from what the pickle says."""
    if isinstance(said, Call) and said.name in restricted_pickle.NAMES:
        return restricted_pickle.arrays(said)
    if isinstance(said, dict):
        by_key = {}
        for (key, value), made_value in zip(said.items(), made.values(), strict=True):
            by_key[_joined(key, key)] = _joined(value, made_value)
        return by_key
    if isinstance(said, list | tuple):
        items = [_joined(*pair) for pair in zip(said, made, strict=True)]
        return type(said)(items)
    return made


@contextmanager
def _opened(path: Path, content: bytes | None) -> Iterator[BinaryIO]:
    if content is not None:
        yield io.BytesIO(content)
        return
    with regular.opened(path) as file:
        yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Raise an InputError, of one line, for what the block cannot read."""

    def why(error: Exception) -> str:
        if isinstance(error, pickled.ForeignName):
            return f"{path}: {_foreign(error.name)}"
        if isinstance(error, FileNotFoundError):
            return f"{path}: no such file"
        refused = re.search(r"WeightsUnpickler error: (.*)", str(error))
        said = refused[1][:200] if refused else first_line(error)
        return f"{path}: is damaged, cut short or no file of torch.save ({said})"

    with refusing(ANYTHING, why):
        yield


def _foreign(name: Name) -> str:
    """Say what a file is that names what is not read."""
    for begin, (what, advice) in OTHERS.items():
        if str(name).startswith(begin):
            return f"{what} ({name}): {advice}"
    alone = "save the tensors alone, torch.save({'sims': sims}, FILE)"
    if name.module.partition(".")[0] != "torch":
        return restricted_pickle.foreign(name, alone)
    return f"holds {name}, and not only dense tensors in dicts and lists; it is not read: {alone}"


def _archive(file: BinaryIO, expansion: Expansion, names: Set[Name]) -> Pickle:
    """Check an archive, and what its pickle says."""
    archive = zipfile.ZipFile(file)
    members = archive.infolist()
    if any(member.filename.endswith("/constants.pkl") for member in members):
        raise InputError(
            f"{expansion.path}: is a TorchScript archive, a program with its weights, which is not run: "
            "save the model's state_dict()"
        )
    (content,) = (member for member in members if member.filename.endswith(CONTENT))
    folder = content.filename.removesuffix(CONTENT)
    names_of_files = {member.filename.lower() for member in members}
    if len(names_of_files) < len(members):
        raise ValueError("a member is there twice")
    sizes: dict[str, int] = {}
    for member in members:
        name = member.filename.removeprefix(folder)
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise ValueError(f"{name!a}: is compressed, which torch.save does not")
        if name == CONTENT:
            continue
        if name.startswith("data/"):
            sizes[name.removeprefix("data/")] = member.file_size
        elif member.file_size > LARGEST_WORD:
            raise ValueError(f"{name!a}: is no member that torch.save writes")
    pickle = archive.read(content)
    held = pickled.read(io.BytesIO(pickle), len(pickle), expansion, names)
    storages = _storages(held.outside)
    for key, (values, width) in storages.items():
        size = sizes.get(key, 0)
        if key not in sizes or size < values * width:
            raise ValueError(f"storage {key!a}: {size:,} bytes instead of {values:,} x {width}")
    for call in held.calls:
        _check(call, expansion)
    return held


def _legacy(file: BinaryIO, expansion: Expansion, names: Set[Name]) -> Pickle:
    """Check a file of torch before 1.6: pickles, of which the fourth is of what was saved and the
    fifth of storages' keys, then the storages.
    """
    size = expansion.size
    for _ in range(PICKLES - 2):
        pickled.read(file, size, expansion, ())
    held = pickled.read(file, size, expansion, names)
    keys = pickled.read(file, size, expansion, ()).tree
    storages = _storages(held.outside)
    if type(keys) is not list or sorted(keys) != sorted(storages):
        raise ValueError("it lacks storages")
    needed = sum(values * width for values, width in storages.values())
    if needed > size - file.tell():
        raise ValueError("its storages are cut short")
    for call in held.calls:
        _check(call, expansion)
    return held


def _storages(outside: Iterable[Outside]) -> dict[str, tuple[int, int]]:
    """The storages that a pickle refers to: key -> how many values, and the bytes of each."""
    storages: dict[str, tuple[int, int]] = {}
    for value in outside:
        key, values, width = _storage(value)
        if storages.setdefault(key, (values, width)) != (values, width):
            raise ValueError(f"storage {key!a} has two types")
    return storages


def _storage(value: Any) -> tuple[str, int, int]:
    """The key of a storage, how many values it has, and the bytes of each."""
    if not isinstance(value, Outside) or type(value.identity) is not tuple:
        raise ValueError("a tensor has no storage")
    kind, stored, key, location, values, *view = value.identity
    if kind != "storage" or stored not in STORAGES or view not in ([], [None]):
        raise ValueError("a storage is of an unknown kind")
    if type(key) is not str or type(location) is not str:
        raise ValueError("a storage is of an unknown kind")
    if type(values) is not int or values < 0:
        raise ValueError("a storage is of an unknown kind")
    return key, values, STORAGES[stored]


def _check(call: Call, expansion: Expansion) -> None:
    """Check what torch would call; ValueError for what `torch.save` does not write."""
    name = call.name
    given = call.arguments
    if name in TENSORS:
        right = _check_tensor(call, expansion)
    elif name == PARAMETER:
        tensor, _, hooks = given
        right = isinstance(tensor, Call) and tensor.name in TENSORS and _is_empty(hooks)
    elif name == SIZE:
        right = all(are_sizes(sizes) for sizes in given)
    elif name == COUNTER:
        right = given == () or (len(given) == 1 and isinstance(given[0], dict))
    elif name in OF_TEXT or name == restricted_pickle.ENCODED:
        encoding = given[1:]
        right = type(given[0]) is str and encoding in ((), ("latin1",))
    elif name in restricted_pickle.NAMES:
        right = True  # `restricted_pickle` makes arrays of them, and torch gets none
    else:  # an object with plain attributes
        right = name not in STORAGES and name not in DTYPES and not given
    is_tensor = name in TENSORS or name == PARAMETER
    if not right or (is_tensor and call.state is not None):
        raise ValueError(f"it calls {name} as torch.save does not")


def _check_tensor(call: Call, expansion: Expansion) -> bool:
    """Whether a tensor lies within its storage. Values that it repeats are counted."""
    storage, offset, shape, strides, *more = call.arguments
    _, values, width = _storage(storage)
    if call.name == TYPED:
        dtype = more.pop(2)
        values = values * width // TYPES[dtype.name]
        width = TYPES[dtype.name]
    are_sides = are_sizes(shape) and are_sizes(strides) and are_sizes((offset,))
    if not are_sides or len(shape) != len(strides) or len(shape) > MOST_SIDES:
        raise ValueError(f"a tensor has the shape {shape!r:.80} with strides {strides!r:.80}")
    if not all(map(_is_empty, more[1:])):  # hooks, or what is to be done with the values
        return False
    last = offset
    count = 1
    for side, stride in zip(shape, strides, strict=True):
        last += (side - 1) * stride
        count *= max(side, 1)
    if 0 not in shape and last >= values:
        raise ValueError(f"a tensor {list(shape)} is larger than its storage of {values:,} values")
    repeated = count - max(values, 1)
    expansion.take(max(repeated, 0) * width)
    return True


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and not value)
