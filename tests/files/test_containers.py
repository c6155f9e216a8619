"""Images in tars and Parquet are those of the files that were put there."""

from __future__ import annotations

import io
import os
import tarfile
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from pipeline.foundation.files import archives, containers, expansion
from pipeline.foundation.files.digest import of_folder
from pipeline.foundation.files.gallery_file import GalleryFile
from pipeline.foundation.parts.errors import InputError

CONTENT = {f"{number:03}.jpg": bytes([number]) * (number + 1) for number in range(5)}


@pytest.fixture(params=["tar", "parquet", "struct"])
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "tar":
        path = tmp_path / "0.tar"
        with tarfile.open(path, "w") as members:
            for name, content in CONTENT.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                members.addfile(info, io.BytesIO(content))
            link = tarfile.TarInfo("link.jpg")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            members.addfile(link)
        return path
    path, values = tmp_path / "0.parquet", list(CONTENT.values())
    images = (
        [{"bytes": value, "path": None} for value in values]
        if request.param == "struct"
        else values
    )
    parquet.write_table(pa.table({"key": list(CONTENT), "image": images}), path, row_group_size=2)
    return path


def names(container: Path) -> list[str]:
    return list(CONTENT) if container.suffix == ".tar" else [str(row) for row in range(5)]


def test_every_image_is_read_in_any_order(container: Path) -> None:
    for name, content in reversed(list(zip(names(container), CONTENT.values(), strict=True))):
        file = GalleryFile(str(container / name))
        assert file.content() == content
        assert file.changed_at() == container.stat().st_ctime_ns
    assert containers.opened(container).sizes() == dict(
        zip(names(container), map(len, CONTENT.values()), strict=True)
    )


@pytest.mark.parametrize("name", ["link.jpg", "9", "-1", "../000.jpg", "000.jpg/x"])
def test_what_is_not_there_is_not_read(container: Path, name: str) -> None:
    with pytest.raises(OSError, match=r"No such file"):
        GalleryFile(str(container / name)).content()


def test_a_container_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    for time, value in enumerate((b"first", b"second")):
        parquet.write_table(pa.table({"image": [value]}), path)
        os.utime(path, ns=(time, time))
        assert GalleryFile(str(path / "0")).content() == value


def test_the_digest_of_a_folder_is_of_paths_and_bytes(tmp_path: Path) -> None:
    found = set()
    for number, (name, content) in enumerate(
        (("a/x", "1"), ("b/x", "1"), ("a/x", "2"), ("a/y", "1"))
    ):
        file = tmp_path / str(number) / name
        file.parent.mkdir(parents=True)
        file.write_text(content)
        found.add(of_folder(tmp_path / str(number)))
    assert len(found) == 4
    file.rename(file.with_name("x"))
    assert of_folder(tmp_path / "3") == of_folder(tmp_path / "0")


@pytest.mark.parametrize("suffix", ["tar", "parquet"])
def test_a_damaged_file_is_an_error_of_one_line(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"0.{suffix}").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(OSError, match="not readable as") as error:
        GalleryFile(str(tmp_path / f"0.{suffix}" / "0")).content()
    assert "\n" not in str(error.value)


def test_a_folder_that_is_called_like_one_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "photos.tar").mkdir()
    (tmp_path / "photos.tar" / "a.jpg").write_bytes(b"a")
    assert GalleryFile(str(tmp_path / "photos.tar" / "a.jpg")).content() == b"a"


def test_a_member_of_any_size_is_not_read_into_memory(tmp_path: Path) -> None:
    path, size = tmp_path / "0.tar", 1 << 40
    info = tarfile.TarInfo("a.jpg")
    info.size = size
    with path.open("wb") as file:
        file.write(info.tobuf())
        file.truncate(size + 10_240)  # a hole, which takes no room
    with pytest.raises(OSError, match=r"has 1,099,511,627,776 bytes, more than"):
        containers.opened(path).read("a.jpg")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_name_of_gigabytes_is_refused_before_memory_is_taken(tmp_path: Path, kind: bytes) -> None:
    path, size = tmp_path / "0.tar", 7 << 30
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, size
    with path.open("wb") as file:
        file.write(info.tobuf(tarfile.GNU_FORMAT))
        file.truncate(size + 10_240)
    with pytest.raises(
        OSError, match=r"0\.tar: not readable as tar \(a header claims 7,516,192,768"
    ):
        containers.opened(path)
    assert archives.named(path) == ""


def test_a_member_with_holes_is_refused_by_its_reason(tmp_path: Path) -> None:
    """As old tars of GNU store it; its bytes are not the file's."""
    path = tmp_path / "0.tar"
    info = tarfile.TarInfo("a.jpg")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000010000\0" + b"00000001000\0"  # 512 bytes at 4,096
    header[483:495] = b"00000011000\0"
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header[:512])
    path.write_bytes(bytes(header[:512]) + b"x" * 512 + bytes(10_240))
    with pytest.raises(OSError, match="with holes"):
        containers.opened(path).read("a.jpg")


@pytest.mark.slow
def test_columns_that_are_too_many_or_of_one_name_are_refused(tmp_path: Path) -> None:
    one = pa.array(["a dog"])
    for name, names, expected in (
        ("twice", ["a", "caption", "caption"], "has 2 columns called 'caption'; leave one"),
        ("many", [str(number) for number in range(10_001)], "has 10,001 columns, more than"),
    ):
        path = tmp_path / f"{name}.parquet"
        parquet.write_table(pa.Table.from_arrays([one] * len(names), names=names), path)
        with pytest.raises(OSError, match=expected):
            containers.opened(path)


@pytest.mark.slow
def test_a_row_of_millions_of_captions_is_refused_before_they_are_objects(tmp_path: Path) -> None:
    path, count = tmp_path / "0.parquet", 5_000_000
    numbers = pa.array(np.zeros(count, np.int8))
    lists = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), numbers)
    parquet.write_table(pa.table({"captions": lists}), path)
    opened = containers.opened(path)
    assert isinstance(opened, containers.Parquet)
    with pytest.raises(InputError, match=r"0\.parquet: its .* bytes become more than"):
        next(opened.batches([0], 1))


@pytest.mark.slow
def test_a_dictionary_does_not_become_gigabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansion, "ALLOWED", 1 << 24)  # bytes, for the time they take
    path = tmp_path / "0.parquet"
    rows = pa.array(np.zeros(40, np.int32))
    photograph = pa.DictionaryArray.from_arrays(rows, pa.array([b"x" * 1_000_000]))
    text = pa.DictionaryArray.from_arrays(rows, pa.array(["x" * 1_000_000]))
    table = pa.table({"image": photograph, "caption": text})
    parquet.write_table(table, path, store_schema=False)
    opened = containers.opened(path)
    assert isinstance(opened, containers.Parquet)
    refusal = "0.parquet: its .* bytes become more than .*; write it again"
    for read in (opened.sizes, lambda: opened.read("0"), lambda: [*opened.batches([1], 1 << 16)]):
        with pytest.raises(InputError, match=refusal):
            read()
    coded = tmp_path / "1.parquet"  # a column that Arrow keeps as codes
    parquet.write_table(table, coded)
    opened = containers.opened(coded)
    assert isinstance(opened, containers.Parquet)
    with pytest.raises(InputError, match=r"its .* bytes become more"):
        next(opened.batches([1], 1 << 16))


def test_rows_come_in_order_and_many_at_once(tmp_path: Path) -> None:
    path, numbers = tmp_path / "0.parquet", list(range(1000))
    parquet.write_table(pa.table({"a": numbers, "b": numbers}), path, row_group_size=300)
    opened = containers.opened(path)
    assert isinstance(opened, containers.Parquet)
    for rows in (1, 600, 1 << 16):
        batches = [*opened.batches([1, 0], rows)]
        for column in (0, 1):
            assert [*chain.from_iterable(batch[column] for batch in batches)] == numbers
        assert max(len(batch[0]) for batch in batches) <= rows


def test_what_parquet_says_wrongly_is_said_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "0.parquet"
    parquet.write_table(pa.table({"image": ["a.jpg"], "caption": ["a"]}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-60] + b"\xff" * 40 + whole[-20:])
    with pytest.raises(OSError, match=r"0\.parquet: not readable as parquet"):
        containers.opened(path)
    year_146000 = pa.array([1 << 62], pa.timestamp("us"))
    parquet.write_table(pa.table({"caption": year_146000}), path)
    opened = containers.opened(path)
    assert isinstance(opened, containers.Parquet)
    with pytest.raises(ValueError, match="out of range"):
        next(opened.batches([0], 1))
