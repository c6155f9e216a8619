"""Safetensors and archives whose headers lie: each is refused in one line."""

from __future__ import annotations

import json
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.foreign.opening import read
from pipeline.judge.systems.scores.judged import Columns

SCORES = np.arange(72, dtype=np.float32).reshape(6, 12)
COLUMNS = Columns(captions_per_image=2)
SIZE = SCORES.nbytes


def tensors(header: dict[str, Any] | bytes, content: bytes = SCORES.tobytes()) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "F32", "shape": [6, 12], "data_offsets": [0, SIZE]} | changes


HOSTILE: dict[str, tuple[bytes, str]] = {
    "overlapping": (tensors({"sims": entry(), "image_ids": entry()}), "the tensors before it end"),
    "a hole": (tensors({"sims": entry(data_offsets=[4, SIZE + 4])}, bytes(SIZE + 4)), "end at 0"),
    "bytes behind": (tensors({"sims": entry()}, bytes(SIZE + 9)), "its tensors have 288 of 297"),
    "200,000 axes": (tensors({"sims": entry(shape=[1] * 200_000 + [6, 12])}), "200002 axes"),
    "no values in 2^62 columns": (
        tensors({"sims": entry(shape=[0, 2**62], data_offsets=[0, 0])}, b""),
        "more values than there can be",
    ),
    "a name twice": (
        tensors(b'{"sims":%s,"sims":%s}' % ((json.dumps(entry()).encode(),) * 2)),
        "has 'sims' twice",
    ),
    "a list": (tensors(b'{"sims":[1]}'), "damaged"),
    "no object of sizes": (tensors({"sims": entry(shape=[6.0, 12])}), "has the shape"),
    "more bytes": (tensors({"sims": entry(dtype="F64")}), "288 bytes instead of"),
    "deep": (tensors(b'{"a":' + b"[" * 200_000), "nested too deeply"),
    "digits": (tensors(b'{"a":1' + b"0" * 5000 + b"}"), "more than 4,300 digits"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_header_that_lies_is_refused_in_one_line(what: str, tmp_path: Path) -> None:
    content, said = HOSTILE[what]
    (tmp_path / "s.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=said):
        open_system("s.safetensors", COLUMNS, root=tmp_path)


@pytest.mark.parametrize("length", [128, 640, 19_280])
def test_tensors_are_recognised_whatever_the_length_of_their_header(
    length: int, tmp_path: Path
) -> None:
    file = tmp_path / "s.safetensors"
    save_file({"sims": SCORES}, file, {"filler": ""})
    shortest = int.from_bytes(file.read_bytes()[:8], "little")
    save_file({"sims": SCORES}, file, {"filler": "x" * max(0, length - shortest)})
    assert int.from_bytes(file.read_bytes()[:8], "little") == length
    arrays = read(file)
    assert arrays is not None
    assert np.array_equal(arrays.arrays["sims"].read(), SCORES)


def test_an_archive_with_a_member_twice_or_elsewhere_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "s.npy", SCORES)
    content = (tmp_path / "s.npy").read_bytes()
    with zipfile.ZipFile(tmp_path / "twice.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("sims.npy", content)
        archive.writestr("sims.npy", content)
    np.savez(tmp_path / "far.npz", sims=SCORES)
    far = bytearray((tmp_path / "far.npz").read_bytes())
    directory = far.rindex(b"PK\1\2")
    far[directory + 42 : directory + 46] = struct.pack("<I", len(far) - 9)
    (tmp_path / "far.npz").write_bytes(far)
    for name, said in (("twice.npz", "a member twice"), ("far.npz", "damaged, cut short")):
        with pytest.raises(InputError, match=said):
            open_system(name, COLUMNS, root=tmp_path)
