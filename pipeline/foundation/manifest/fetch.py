"""Fetch the photographs whose addresses annotations name, into the folder of images. Only where the
user asks for it.

Addresses in a file from elsewhere are not trusted. Only http and https are fetched, only from
public addresses of the internet (also after a redirect, and checked on the connection itself),
without cookies or passwords, and no more than `LARGEST` bytes each. Photographs that cannot be
fetched are left out.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pipeline.foundation.files.atomic import write_bytes
from pipeline.foundation.files.gallery_file import IMAGE_SUFFIXES
from pipeline.foundation.files.left_out import LeftOut
from pipeline.foundation.parts.errors import InputError, counted

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 64 * 1024 * 1024
SECONDS = 20.0  # without a byte
WHOLE = 300.0  # seconds for a whole file
AT_ONCE = 16
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address stands in the last 32 bits
UNICAST = ipaddress.ip_network("2000::/3")
OnImage = Callable[[int], object]


@dataclass(frozen=True)
class Fetching:
    """Images that are named by their addresses are fetched into the folder."""

    on_start: OnImage = lambda count: None  # called with the number of images to fetch
    on_image: OnImage = lambda count: None  # called with 1 for each that is done


def is_address(file: str) -> bool:
    """Whether a file is named by an address, not by a path."""
    return file.lower().startswith(("http://", "https://"))


def fetched(
    table: pd.DataFrame,
    folder: Path | None,
    fetching: Fetching | None,
    left_out: LeftOut,
) -> pd.DataFrame:
    """The table of annotations with files that are fetched from its addresses; images without one
    are left out.
    """
    files = table["file"].unique().tolist()
    addresses = [file for file in files if isinstance(file, str) and is_address(file)]
    if not addresses:
        return table
    if fetching is None or folder is None:
        raise InputError(
            f"{counted(len(addresses), 'image')} given by address only, such as {addresses[0][:80]!r}; "
            "download them with --fetch into the folder --images, or with img2dataset, whose tars and "
            "Parquet files can be read"
        )
    fetching.on_start(len(addresses))
    file_of_address = {address: name_of(address) for address in addresses}

    def one(address: str) -> str:
        try:
            if not (folder / file_of_address[address]).exists():
                write_bytes(folder / file_of_address[address], content_of(address))
            return ""
        except (OSError, ValueError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}".splitlines()[0]
        finally:
            fetching.on_image(1)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        reasons = dict(zip(addresses, threads.map(one, addresses), strict=True))
    lost_addresses = {address: reason for address, reason in reasons.items() if reason}
    fetched_rows = table[~table["file"].isin(lost_addresses)].reset_index(drop=True)
    if fetched_rows.empty:
        first_address, reason = next(iter(lost_addresses.items()))
        raise InputError(
            f"could fetch none of {counted(len(lost_addresses), 'image')}, the first {first_address[:100]} ({reason})"
        )
    captions = table["file"].value_counts()
    # An address that is dead is no fault of the annotations.
    for address, reason in lost_addresses.items():
        example = f"{address[:1000]} ({reason})"
        left_out.add("not fetched", example, by_origin=True, count=int(captions[address]))
    local_files = [file_of_address.get(file, file) for file in fetched_rows["file"]]
    return fetched_rows.assign(file=local_files)


def name_of(address: str) -> str:
    """Name the file of an address."""
    try:
        suffix = PurePosixPath(urlsplit(address).path).suffix.lower()
    except ValueError:  # an invalid address is refused when it is fetched
        suffix = ""
    if suffix not in IMAGE_SUFFIXES:
        suffix = ".jpg"
    return hashlib.sha256(address.encode()).hexdigest()[:32] + suffix


def content_of(address: str) -> bytes:
    """Fetch a file's bytes."""
    opener = urllib.request.OpenerDirector()
    # No proxies of the environment, no file: and ftp:.
    for handler in (
        _Http(),
        _Https(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(address, headers={"User-Agent": "vse-pipeline"})
    with opener.open(request, timeout=SECONDS) as response:
        content = bytearray()
        deadline = time.monotonic() + WHOLE
        while len(content) <= LARGEST:
            image_bytes = response.read1(1 << 20)
            if not image_bytes:
                break
            content += image_bytes
            if time.monotonic() > deadline:
                raise OSError(f"takes longer than {WHOLE:.0f} s")
        lacking = response.length
    if not content:
        raise OSError("has no bytes")
    if len(content) > LARGEST:
        raise OSError(f"has more than {LARGEST:,} bytes")
    if lacking:
        raise OSError(f"ends {lacking:,} bytes early")
    return bytes(content)


def is_public(address: str) -> bool:
    """Whether an address is public, not one of this machine or its network."""
    ip_address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip_address, ipaddress.IPv6Address):
        ipv4_address = ip_address.ipv4_mapped or ip_address.sixtofour
        if ip_address in NAT64:
            ipv4_address = ipaddress.IPv4Address(int(ip_address) & 0xFFFFFFFF)
        if ipv4_address is None:
            return ip_address in UNICAST and ip_address.is_global
        ip_address = ipv4_address
    return ip_address.is_global and not ip_address.is_multicast


def _connect(*arguments: Any, **named: Any) -> socket.socket:
    """Connect; if the other side is not public, close the connection before a byte is sent."""
    connection = socket.create_connection(*arguments, **named)
    other = connection.getpeername()[0]
    if not is_public(other):
        connection.close()
        raise OSError(f"{other} is not a public address")
    return connection


def _guarded(
    connection: type[http.client.HTTPConnection],
) -> Callable[..., http.client.HTTPConnection]:
    """Make connections of a kind by `_connect`."""

    def opened(*arguments: Any, **named: Any) -> http.client.HTTPConnection:
        made = connection(*arguments, **named)
        made._create_connection = _connect  # type: ignore[attr-defined]
        return made

    return opened


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_guarded(http.client.HTTPConnection), req)  # type: ignore[arg-type]


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_guarded(http.client.HTTPSConnection), req)  # type: ignore[arg-type]
