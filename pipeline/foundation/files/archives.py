"""What an archive is that holds neither arrays nor weights, and what to do with it."""

import shlex
import tarfile
import zipfile
from contextlib import suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from pipeline.foundation.files import regular

ZIP = b"PK\3\4"
# The files by which a folder of zarr is known.
OF_ZARR = ("zarr.json", ".zarray", ".zgroup")
LONGEST_HEADER = 1 << 20  # bytes of a name, or of other facts, in a tar
# The members of the tars that torch wrote before its version 0.2.
OF_TORCH = {"pickle", "storages", "tensors"}


class Headers:
    """A tar's bytes for reading its headers alone, of which none may claim more than a name's."""

    def __init__(self, file: BinaryIO) -> None:
        self.tell = file.tell
        self.seek = file.seek
        self._file = file

    def read(self, size: int) -> bytes:
        """The next bytes of a header, see `BinaryIO.read`."""
        if size > LONGEST_HEADER:
            raise tarfile.ReadError(f"a header claims {size:,} bytes")
        return self._file.read(size)


def named(path: Path) -> str:
    """Say what an archive is; "" for all that is none, and for zips without a zarr store."""
    with suppress(OSError):
        with regular.opened(path) as file:
            is_zip = file.read(len(ZIP)) == ZIP
        return _of_zarr(path) if is_zip else _tar(path)
    return ""


def _of_zarr(path: Path) -> str:
    """Say that a zip holds a zarr store, and how it is unpacked."""
    with suppress(zipfile.BadZipFile, ValueError, NotImplementedError):
        with zipfile.ZipFile(path) as archive:
            headers = [
                PurePosixPath(name)
                for name in archive.namelist()
                if name.rpartition("/")[2] in OF_ZARR
            ]
        if headers:
            first = min(headers, key=lambda name: len(name.parts))
            unpacked = path.with_suffix("")
            if unpacked == path or path.suffix == ".zarr":
                unpacked = path.with_name(f"{path.stem}-unpacked.zarr")
            command = f"python -m zipfile -e {shlex.quote(str(path))} {shlex.quote(str(unpacked))}"
            return (
                f"a zarr store packed into one file (ZipStore); unpack it, `{command}`, and name "
                f"{unpacked / first.parent}"
            )
    return ""


def _tar(path: Path) -> str:
    """Say that a file is a tar, of torch or of anything else."""
    try:
        with (
            regular.opened(path) as file,
            tarfile.open(fileobj=cast(Any, Headers(file)), mode="r:") as archive,
        ):
            names = {member.name for member in islice(archive, len(OF_TORCH) + 1)}
    except (tarfile.TarError, ValueError, EOFError):
        return ""
    if not names:
        return ""
    if names >= OF_TORCH:
        return (
            "a tar that torch wrote before its version 0.2, which is not read; if you trust it, write it "
            "anew, torch.save(torch.load(FILE, weights_only=False), NEW)"
        )
    return f"a tar archive; unpack it, `tar -xf {shlex.quote(str(path))}`, and name the file that is meant"
