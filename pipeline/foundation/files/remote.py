"""Files in object stores, read and written through fsspec: s3://, gs://.

A path to one is a `Path`, in which pathlib has folded the two slashes to one: `s3:/bucket/key`.
"""

import hashlib
import os
import re
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.foundation import parts
from pipeline.foundation.files.digest import digest
from pipeline.foundation.parts.errors import ANYTHING, InputError, refusing

ADDRESS = re.compile(r"(s3|gs|gcs|az|abfs):/+(?=[^/])")
# Any address. In a path its slashes are folded, so an object store's is known by its scheme alone.
ANY = re.compile(r"(?:(?P<known>s3|gs|gcs|az|abfs):|[A-Za-z][A-Za-z0-9+.-]*://)")
WHOLE = re.compile(r"(s3|gs|gcs|az|abfs):/{1,2}(?P<bucket>[^/]+)(?P<key>/+[^/].*)?/*")
PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
COPIES = 4  # downloaded files that this machine keeps


def address(path: Path | str) -> str | None:
    """The address of a path in an object store, such as s3://bucket/key; None for a path of this
    machine.
    """
    text = path
    if not isinstance(text, str):
        text = text.as_posix()
    match = ADDRESS.match(text)
    if match is None:
        return None
    return f"{match[1]}://{text[match.end() :]}"


def is_address(path: Path | str) -> bool:
    """Whether a path begins like an address, complete or not, also of what is no object store."""
    return ANY.match(os.fspath(path)) is not None


def require_whole(path: str, with_key: bool = False) -> None:
    """Check an address as it was typed, without connecting. with_key: a bucket alone is not enough,
    to write there.
    """
    match = WHOLE.fullmatch(path)
    if match is None or (with_key and not match["key"]):
        raise InputError(
            f"{path!r}: expected the address of a {'place' if with_key else 'bucket or a place'} in an "
            f"object store ({', '.join(PACKAGES)}), such as s3://bucket/NAME"
        )


def absolute(path: Path) -> Path:
    """Make a path absolute, unless it is in an object store."""
    return path if address(path) else path.absolute()


def file_system(path: Path | str) -> tuple[Any, str]:
    """Connect to the object store of a path: fsspec's file system, and the path in it."""
    import fsspec

    where = address(path)
    assert where is not None
    scheme = where.partition(":")[0]
    with refusing(
        ImportError,
        lambda error: (
            f"{where}: {error}; "
            + (parts.extras.line("s3") if scheme == "s3" else f"pip install {PACKAGES[scheme]}")
        ),
    ):
        opened: tuple[Any, str] = fsspec.core.url_to_fs(where, use_listings_cache=False)
    return opened


def one_line(path: Path | str) -> AbstractContextManager[None]:
    """Turn the errors of an object store into an `OSError` of one line that names the path."""
    # Clients of object stores raise errors of their own: no credentials, no such bucket.
    return refusing(
        ANYTHING,
        lambda error: f"{address(path)}: {type(error).__name__}: {error}".splitlines()[0],
        OSError,
    )


def read_bytes(path: Path) -> bytes:
    """Read a file of an object store; OSError if that is not possible."""
    with one_line(path):
        files, name = file_system(path)
        content: bytes = files.cat_file(name)
        return content


def write(path: Path, file: Path) -> None:
    """Copy a file of this machine into an object store, whole or not at all; OSError if that is not
    possible.
    """
    with one_line(path):
        files, name = file_system(path)
        files.put_file(str(file), name)


class Listed(NamedTuple):
    """What an object store lists of a file."""

    bytes: int
    tag: str  # its ETag, in S3 the MD5 of most files uploaded in one piece; "" where it lists none


def found(folder: Path) -> dict[str, Listed]:
    """List all files below a folder of an object store by relative name, sorted; {} for a missing
    folder.
    """
    with one_line(folder):
        files, name = file_system(folder)
        try:
            every = files.find(name, detail=True)
        except FileNotFoundError:
            return {}
        return {
            key.removeprefix(name).lstrip("/"): Listed(
                int(each["size"]), str(each.get("ETag", "")).strip('"')
            )
            for key, each in sorted(every.items())
            if not key.endswith("/")
        }  # the web console's entry of a folder


def listed(folder: Path) -> dict[str, int]:
    """List names and sizes in bytes, see `found`."""
    return {name: each.bytes for name, each in found(folder).items()}


def is_same(path: Path, listed: Listed | None, file: Path) -> bool:
    """Whether a listed file has the same content as one of this machine; it is downloaded if the
    tag is not its MD5.
    """
    if listed is None or not file.exists() or listed.bytes != file.stat().st_size:
        return False
    content = file.read_bytes()
    return (
        listed.tag == hashlib.md5(content, usedforsecurity=False).hexdigest()
        or read_bytes(path) == content
    )


def copy(path: Path) -> Path:
    """Download a file, unless it is among the last few, which are kept for all processes of the
    user.

    The copy may be deleted when others are fetched, so open it at once. OSError if it cannot be
    fetched.
    """
    with one_line(path):
        files, name = file_system(path)
        described = files.info(name)
        version = str(described.get("ETag") or described.get("etag") or described.get("mtime"))
        place = (
            _folder() / f"{digest([address(path), described['size'], version])[:32]}{path.suffix}"
        )
        if place.exists():
            os.utime(place)
            return place
        partial = Path(tempfile.mkstemp(dir=place.parent, suffix=".partial")[1])
        try:
            files.get_file(name, str(partial))
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)
        _keep_few(place.parent)
        return place


def _folder() -> Path:
    """The folder of the copies. Only this user may open it, because its files are trusted."""
    folder = Path(tempfile.gettempdir(), f"pipeline-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077 or folder.is_symlink():
        raise InputError(
            f"{folder}: others may read or write it; remove it, or set TMPDIR to another folder"
        )
    return folder


def _keep_few(folder: Path) -> None:
    copies = sorted(
        (file for file in folder.iterdir() if file.suffix != ".partial"),
        key=lambda file: file.stat().st_mtime_ns,
    )
    for file in copies[:-COPIES]:
        file.unlink(missing_ok=True)
