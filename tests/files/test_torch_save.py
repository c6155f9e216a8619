"""Files of `torch.save` that claim what they do not have: each is refused in one line, before torch
is asked.
"""

from __future__ import annotations

import argparse
import io
import struct
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.foundation.files import torch_save
from pipeline.foundation.parts.errors import InputError

VALUES = np.arange(1000, dtype="<f4").tobytes()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def name(module: str, function: str) -> bytes:
    return f"c{module}\n{function}\n".encode()


def marked(*values: bytes) -> bytes:
    return b"(" + b"".join(values) + b"t"


def number(value: int) -> bytes:
    return b"\x8a\x08" + struct.pack("<q", value)


def sizes(*values: int) -> bytes:
    return marked(*map(number, values))


def storage(kind: str = "FloatStorage", count: int = 1000, key: str = "0") -> bytes:
    return (
        marked(text("storage"), name("torch", kind), text(key), text("cpu"), number(count)) + b"Q"
    )


HOOKS = name("collections", "OrderedDict") + b")R"


def tensor(stored: bytes, offset: int, shape: bytes, strides: bytes, hooks: bytes = HOOKS) -> bytes:
    arguments = marked(stored, number(offset), shape, strides, b"\x89", hooks)
    return name("torch._utils", "_rebuild_tensor_v2") + arguments + b"R"


def written(path: Path, tree: bytes, packed: int = zipfile.ZIP_STORED, **more: bytes) -> Path:
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + tree + b".")
        archive.writestr("a/version", b"3\n")
        archive.writestr("a/data/0", VALUES)
        for member, content in more.items():
            archive.writestr(f"a/{member}", content)
    return path


RIGHT = tensor(storage(), 0, sizes(10, 50), sizes(50, 1))
OUTSIDE = r"larger than its storage of 1,000 values"
HOSTILE: dict[str, tuple[bytes, str]] = {
    "an offset beyond": (tensor(storage(), 900, sizes(10, 50), sizes(50, 1)), OUTSIDE),
    "one value beyond": (tensor(storage(), 501, sizes(10, 50), sizes(50, 1)), OUTSIDE),
    "a negative offset": (tensor(storage(), -5, sizes(10, 50), sizes(50, 1)), "has the shape"),
    "negative strides": (tensor(storage(), 0, sizes(10, 50), sizes(-50, 1)), "has the shape"),
    "wide strides": (tensor(storage(), 0, sizes(2, 2), sizes(2**62, 1)), OUTSIDE),
    "one side more": (tensor(storage(), 0, sizes(10, 50), sizes(1)), "has the shape"),
    "sides that may change": (tensor(storage(), 0, b"]", sizes()), "has the shape"),
    "values that repeat": (
        tensor(storage(), 0, sizes(10**5, 5 * 10**5), sizes(0, 0)),
        "become more than",
    ),
    "sides of nothing": (tensor(storage(), 0, sizes(0, 2**62), sizes(1, 1)), "become more than"),
    "hooks": (
        tensor(storage(), 0, sizes(2), sizes(1), HOOKS + number(0) + b"Ns"),
        "as torch.save does not",
    ),
    "more values than bytes": (
        tensor(storage(count=10**12), 0, sizes(2), sizes(1)),
        "4,000 bytes instead of 1,000,000,000,000 x 4",
    ),
    "a negative count": (tensor(storage(count=-1), 0, sizes(2), sizes(1)), "unknown kind"),
    "no such storage": (tensor(storage(key="1"), 0, sizes(2), sizes(1)), "0 bytes instead of"),
    "one storage of two types": (
        marked(RIGHT, tensor(storage("DoubleStorage", 500), 0, sizes(2), sizes(1))),
        "has two types",
    ),
    "a storage that is none": (
        tensor(HOOKS, 0, sizes(2), sizes(1)),
        "has no storage",
    ),
    "a state for a tensor": (RIGHT + b"}" + text("data") + b"Nsb", "as torch.save does not"),
    "a call of a storage": (name("torch", "FloatStorage") + sizes(10**12) + b"R", "as torch.save"),
    "bytes by their number": (name("builtins", "bytearray") + sizes(10**12) + b"R", "bytearray"),
    "a size of text": (name("torch", "Size") + marked(text("x")) + b"R", "as torch.save does not"),
    "a tensor in itself": (b"]q\0" + RIGHT + b"ah\0a", "contains itself"),
    "a deep key": (b"})" + b"\x85" * 10**5 + b"Ns" + RIGHT, "has a tuple as a key"),
    "a whole number beyond": (b"\x8b\0\0\0\x7f" + RIGHT, "whole number"),
    "a quantised tensor": (name("torch._utils", "_rebuild_qtensor"), r"save \.dequantize\(\)"),
    "another function of torch": (name("torch", "load"), r"holds torch\.load"),
    "code": (name("os", "system") + marked(text("touch ran")) + b"R", "do not trust it"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise AssertionError("torch was asked")

    monkeypatch.setattr(torch, "load", load)
    tree, said = HOSTILE[what]
    path = written(tmp_path / "a.pt", tree)
    with pytest.raises(InputError, match=said) as caught:
        torch_save.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("packed", "more", "said"),
    [
        (zipfile.ZIP_DEFLATED, {}, "is compressed"),
        (zipfile.ZIP_STORED, {"byteorder": bytes(10**6)}, "no member that torch.save writes"),
        (zipfile.ZIP_STORED, {"DATA/0": VALUES}, "a member is there twice"),
        (zipfile.ZIP_STORED, {"constants.pkl": b"N."}, "is a TorchScript archive"),
    ],
)
def test_members_that_torch_does_not_write_are_refused(
    packed: int, more: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.pt", RIGHT, packed, **more)
    with pytest.raises(InputError, match=said):
        torch_save.load(path)


def test_what_is_right_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.pt", tensor(storage(), 3, sizes(10, 50), sizes(1, 10)))
    expected = np.frombuffer(VALUES, "<f4")[3:503].reshape(50, 10).T
    assert np.array_equal(torch_save.load(path).numpy(), expected)


OLD = {"_use_new_zipfile_serialization": False}


@pytest.mark.specification
@pytest.mark.parametrize("options", [{}, OLD])
def test_what_torch_wrote_is_read(tmp_path: Path, options: dict[str, Any]) -> None:
    """Also beside NumPy's arrays, which torch alone refuses."""
    whole = torch.arange(24.0).reshape(4, 6)
    half = torch.arange(6.0).bfloat16()
    state = OrderedDict(weight=whole, part=whole[1:, ::2])
    tree = {
        "state": state,
        "list": [half, (whole.T, None)],
        "expanded": torch.ones(3, 1).expand(3, 5),
        "parameter": torch.nn.Parameter(whole),
        "milestones": Counter([1, 1, 2]),
        "array": np.arange(3),
        "scalar": np.float64(2.5),
        np.int64(7): "seven",
        "type": torch.float16,
    }
    torch.save(tree, tmp_path / "a.pt", **options)
    read = torch_save.load(tmp_path / "a.pt")
    assert [*read] == [*tree]
    assert torch.equal(read["state"]["part"], whole[1:, ::2])
    assert torch.equal(read["list"][0], half)
    assert torch.equal(read["list"][1][0], whole.T)
    assert torch.equal(read["expanded"], torch.ones(3, 5))
    assert torch.equal(read["parameter"], whole)
    assert read["milestones"] == {1: 2, 2: 1}
    assert (read["array"].tolist(), read["scalar"], read["type"]) == ([0, 1, 2], 2.5, torch.float16)


def test_old_files_whose_values_are_not_there_are_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    torch.save({"a": torch.ones(1000)}, content, **OLD)
    path = tmp_path / "a.pt"
    for damaged, said in (
        (content.getvalue()[:-100], "its storages are cut short"),
        (content.getvalue()[:60], "is damaged, cut short"),
        (content.getvalue().replace(b"M\xe8\x03N", b"M\xff\xffN"), "its storages are cut short"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=said):
            torch_save.load(path)


def test_only_the_class_that_is_named_may_be_there_too(tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    torch.save({"opt": argparse.Namespace(lr=1), "a": torch.ones(1)}, path)
    with pytest.raises(InputError, match=r"holds argparse\.Namespace"):
        torch_save.load(path)
    assert torch_save.load(path, also=argparse.Namespace)["opt"].lr == 1
